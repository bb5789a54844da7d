"""An explanation on a terminal: headline, scores, and refusals."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.explain import Explanation
from roadstead.cycle.plain import PlainCycle
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.taints import Taint
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.protocol.status import Code, Status, error, unresolvable
from roadstead.report.explain_table import print_explanation
from roadstead.run import RunPlan, build_profiles

ASKS = PodFacts(requests=(("cpu", 1000),), nonzero_cpu_milli=1000, container_count=1)


def explained(*cpu_milli: int, taint: str = "", facts: PodFacts = ASKS) -> Explanation:
    classes = PodClasses()
    profiles = build_profiles(RunPlan(), classes)
    table = NodeTable(classes)
    taints = (Taint(taint, "", "NoSchedule"),) if taint else ()
    for index, amount in enumerate(cpu_milli):
        allocatable = (("cpu", amount), ("memory", 1 << 33))
        table.add_node(NodeFacts(f"n-{index}", (), allocatable, 10, taints if not index else ()))
    pod = PodInCycle("u", "default/p", classes.info(facts), "class")
    return PlainCycle(table, profiles, TieBreak()).explain(pod)


def printed(explanation: Explanation, top: int = 0) -> list[str]:
    out = io.StringIO()
    print_explanation(Console(file=out, width=100), explanation, top)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def cells(lines: list[str], start: str) -> list[list[str]]:
    return [line.split() for line in lines if line.split()[:1] == [start]]


def test_scores_are_raw_normalized_and_weighted_and_add_up_to_the_total() -> None:
    lines = printed(explained(4000, 8000))

    (taints, *_) = cells(lines, "TaintToleration")
    assert taints == ["TaintToleration", "0", "100", "3", "300"]
    (affinity, *_) = cells(lines, "NodeAffinity")
    assert affinity == ["NodeAffinity", "–", "–", "2", "–"]
    begin = next(i for i, line in enumerate(lines) if line.split()[:2] == ["n-1", "total"])
    block = [line.split() for line in lines[begin + 1 : begin + 9]]
    assert int(lines[begin].split()[-1]) == sum(int(row[-1]) for row in block if row[-1] != "–")


def test_nodes_come_best_first_and_equals_by_name() -> None:
    lines = printed(explained(2000, 8000, 2000))

    order = [line.split()[0] for line in lines if line.split()[1:2] == ["total"]]
    assert order == ["n-1", "n-0", "n-2"]
    assert lines[:2] == ["default/p: 3 of 3 nodes can take it", "n-1 is the best"]


def test_equally_good_nodes_are_told() -> None:
    lines = printed(explained(4000, 4000))

    assert lines[1] == "2 are equally good: one of them is taken, n-0 if it is the first"


def test_refusals_are_counted_by_reason_and_told_by_node() -> None:
    lines = printed(explained(4000, 500, 4000, 900, taint="gpu"))

    assert cells(lines, "NodeResourcesFit")[-1] == ["NodeResourcesFit", "Insufficient", "cpu", "2"]
    (refused,) = cells(lines, "n-0")
    assert refused[:4] == ["n-0", "TaintToleration", "cannot", "help"]
    assert " ".join(refused[4:]) == "node(s) had untolerated taint {gpu: }"


def test_a_node_that_is_merely_full_may_be_helped_by_preemption() -> None:
    refused = explained(500)
    full = replace(refused, statuses=(_full(refused.statuses[0]),))

    assert cells(printed(full), "n-0")[0][2:4] == ["may", "help"]


def _full(status: Status | None) -> Status:
    assert status is not None
    return replace(status, code=Code.UNSCHEDULABLE)


def test_a_pod_that_fits_nowhere_has_no_scores_but_its_message() -> None:
    lines = printed(explained(500, 500))

    assert lines[0] == "default/p: no node can take it"
    assert lines[1].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert not any("Scores" in line for line in lines)


def test_nodes_that_pre_filter_left_out_have_no_plugin() -> None:
    excluded = unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]")
    lines = printed(replace(explained(500), statuses=(excluded,)))

    assert cells(lines, "n-0")[0][1:4] == ["–", "cannot", "help"]


def test_a_pod_without_any_node_is_told_so() -> None:
    lines = printed(explained())

    assert lines == ["default/p: no node can take it", "no nodes available to schedule pods"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"nominated": "n-1"}, "n-1 is taken: it is nominated, and other nodes are not compared"),
        (
            {"score_error": "bad term"},
            "n-1 is taken: it is the only one, so that nothing needs to be scored",
        ),
        ({"is_terminating": True}, "It is being deleted: the scheduler skips it"),
        ({"cycle_error": "bad term"}, "default/p: scheduling it fails: bad term"),
        (
            {"pre_enqueue": replace(error("waiting for a"), plugin="SchedulingGates")},
            "It does not enter the queue: SchedulingGates: waiting for a",
        ),
        (
            {"unsupported": "DefaultPreemption: spec.priority"},
            "Whether preemption would help is not known: DefaultPreemption: spec.priority",
        ),
    ],
)
def test_what_is_out_of_the_ordinary_stands_at_the_head(
    changes: dict[str, object], text: str
) -> None:
    lines = printed(replace(explained(4000, 8000), **changes))

    assert text in lines[:3]


def test_names_that_look_like_markup_are_printed_as_they_are() -> None:
    refused = explained(500)
    odd = replace(refused, statuses=(unresolvable("taint {[red]x[/red]: }"),))

    assert any("taint {[red]x[/red]: }" in line for line in printed(odd))


def test_only_so_many_nodes_are_shown() -> None:
    lines = printed(explained(*[4000] * 3, *[10] * 4), top=2)

    assert [line for line in lines if line.startswith("…")] == ["… and 1 more", "… and 2 more"]


def test_candidates_of_a_preemption_stand_with_their_victims_the_best_first() -> None:
    classes = PodClasses()
    table = NodeTable(classes)
    for name, priority in (("n1", 5), ("n2", 1)):
        table.add_node(NodeFacts(name, (), (("cpu", 1000), ("memory", 1 << 33)), 10))
        low = classes.info(replace(ASKS, priority=priority))
        table.add_pod(name, low, uid=f"default/on-{name}")
    urgent = classes.info(replace(ASKS, priority=9))
    cycle = PlainCycle(table, build_profiles(RunPlan(), classes), TieBreak("first"))

    lines = printed(cycle.explain(PodInCycle("u", "default/urgent", urgent, "class")))

    assert "Preemption would make room on n2: 1 pod goes" in lines
    start = next(i for i, line in enumerate(lines) if line.startswith("Preemption: nodes"))
    assert [line.split() for line in lines[start:] if "default/on-" in line] == [
        ["n2", "0", "default/on-n2", "(1)"],
        ["n1", "0", "default/on-n1", "(5)"],
    ]
