"""An explanation on a terminal: headline, scores, and refusals."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.explain import Explanation, PluginScores
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.taints import Taint
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.protocol.status import Code, Status, error, unresolvable
from roadstead.report.explain_table import ShownLimits, heading_lines, print_explanation
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
    pod = PodInCycle("u", "default/p", classes.pod_class(facts), "class")
    return PlainCycle(table, profiles, TieBreak()).explain(pod)


WIDTHS = (80, 120, 200)


def printed(explanation: Explanation, top: int | None = None, width: int = 100) -> list[str]:
    out = io.StringIO()
    print_explanation(Console(file=out, width=width), explanation, ShownLimits.of(top))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def cells(lines: list[str], start: str) -> list[list[str]]:
    return [line.split() for line in lines if line.split()[:1] == [start]]


def under(lines: list[str], title: str) -> list[str]:
    """Return the lines below a title, up to the next empty line."""
    (start,) = [at for at, line in enumerate(lines) if line.startswith(title)]
    rest = lines[start + 1 :]
    return rest[: rest.index("")] if "" in rest else rest


def scored(nodes: int, plugins: int, name: str = "ip-10-0-{}.eu-central-1.internal") -> Explanation:
    """Return an explanation in which every plugin gives every node a different score."""
    base = explained(*[4000] * nodes)
    names = tuple(sorted(name.format(number) for number in range(nodes)))
    lines = []
    for plugin in range(plugins):
        given = 1_000_003 * (plugin + 1) + np.arange(nodes, dtype=np.int64) * (plugin + 1)
        lines.append(PluginScores(f"Plugin{chr(65 + plugin)}WithALongName", 1, given, given))
    total = np.sum([each.normalized for each in lines], axis=0, dtype=np.int64)
    return replace(base, names=names, scores=tuple(lines), total=total)


def test_scores_of_the_best_node_are_raw_normalized_and_weighted_and_sum_up_to_the_total() -> None:
    lines = under(printed(explained(4000, 8000)), "Scores of n-1")

    assert cells(lines, "TaintToleration") == [["TaintToleration", "0", "100", "3", "300"]]
    assert cells(lines, "NodeAffinity") == [["NodeAffinity", "–", "–", "2", "–"]]
    weighted = [line.split()[-1] for line in lines[1:-1]]
    assert lines[-1].split() == ["total", str(sum(int(each) for each in weighted if each != "–"))]


def test_nodes_are_sorted_best_first_and_equals_by_name() -> None:
    lines = printed(explained(2000, 8000, 2000))

    table = under(lines, "Weighted scores of 3 nodes")
    assert [line.split()[0] for line in table if line.startswith("n-")] == ["n-1", "n-0", "n-2"]
    assert lines[:2] == ["default/p: 3 of 3 nodes are feasible", "n-1 has the highest total"]


def test_a_nominated_node_is_first() -> None:
    lines = printed(replace(explained(2000, 8000, 2000), nominated="n-2"))

    table = under(lines, "Weighted scores of 3 nodes")
    assert [line.split()[0] for line in table if line.startswith("n-")] == ["n-2", "n-1", "n-0"]


def test_equally_good_nodes_are_counted() -> None:
    lines = printed(explained(4000, 4000))

    assert lines[1] == "2 nodes have the highest total; n-0 is the first of them by name"


def test_the_plugin_that_decides_between_the_nodes_is_first() -> None:
    base = explained(4000, 4000)
    near, far = np.array([1, 2]), np.array([1, 90])
    lines = (PluginScores("Near", 1, near, near), PluginScores("Far", 1, far, far))

    heading = under(printed(replace(base, scores=lines, total=near + far)), "Weighted")[0]

    assert heading.split() == ["node", "total", "Far", "Near"]


@pytest.mark.parametrize("width", [40, *WIDTHS])
@pytest.mark.parametrize(("nodes", "plugins"), [(30, 9), (300, 14), (3, 1)])
def test_no_width_cuts_a_line_a_digit_or_a_name(width: int, nodes: int, plugins: int) -> None:
    explanation = scored(nodes, plugins)

    lines = printed(explanation, top=0, width=width)

    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "…" not in text
    numbers = set(re.findall(r"(?<![\d,])[\d,]+(?![\d,])", text))
    for line in explanation.scores:
        assert line.normalized is not None
        assert {f"{each:,}" for each in line.normalized.tolist()} <= numbers
    assert {f"{each:,}" for each in explanation.total.tolist()} <= numbers
    # Names of plugins are broken between words only, and node names not at all if they fit.
    assert all(f"{chr(65 + at)}With" in text.replace("\n", "") for at in range(plugins))
    if width >= 80:
        assert all(any(line.startswith(name) for line in lines) for name in explanation.names)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_block_of_columns_repeats_node_and_total(width: int) -> None:
    explanation = scored(12, 14)
    best, total = explanation.names[-1], f"{int(explanation.total.max()):,}"

    lines = printed(explanation, width=width)

    headings = [line.split()[:2] for line in lines if line.startswith("node ")]
    rows = [line for line in lines if line.startswith(f"{best}  ")]
    assert len(headings) == len(rows) > 0
    assert all(line.split()[1] == total for line in rows)


def test_a_plugin_with_equal_scores_has_a_line_if_there_is_no_column_for_it() -> None:
    explanation = scored(30, 5)
    same = np.full(30, 77, dtype=np.int64)
    constant = tuple(PluginScores(f"Constant{at}", 2, same, same) for at in range(4))
    explanation = replace(explanation, scores=(*constant, *explanation.scores))

    narrow, wide = (" ".join(printed(explanation, width=width)) for width in (80, 200))

    assert "The same on all 30 nodes: " in narrow
    assert "Constant3 154" in narrow
    assert "The same" not in wide


def test_a_name_longer_than_the_line_is_wrapped() -> None:
    explanation = scored(3, 2, name="{}" + "x" * 200)

    lines = printed(explanation, width=80)

    assert max(map(len, lines)) <= 80
    assert "".join(lines).count("x") >= 600


def test_a_heading_is_broken_between_the_words_of_a_name() -> None:
    assert heading_lines("NodeResourcesBalancedAllocation") == [
        "Node",
        "Resources",
        "Balanced",
        "Allocation",
    ]
    assert heading_lines("GPUShare") == ["GPUShare"]
    assert heading_lines("my-plugin_that_is_lower") == ["my-plugin_", "that_is_lo", "wer"]


@pytest.mark.parametrize(("width", "lines"), [(55, 4), (60, 3), (200, 1)])
def test_a_heading_is_broken_only_if_the_table_would_not_fit(width: int, lines: int) -> None:
    explanation = scored(3, 1)
    named = replace(explanation.scores[0], plugin="NodeResourcesBalancedAllocation")

    rows = printed(replace(explanation, scores=(named,)), width=width)

    title = next(at for at, row in enumerate(rows) if row.startswith("Weighted scores"))
    first = next(at for at, row in enumerate(rows) if at > title and row.startswith("node"))
    assert first - title == lines


def test_nodes_filtered_out_are_counted_by_plugin_and_reason_with_their_first_names() -> None:
    lines = printed(explained(4000, *[500] * 5, 4000, taint="gpu"))

    assert under(lines, "Filtered out: 6 of 7 nodes") == [
        "nodes  plugin and reason",
        "    5  NodeResourcesFit: Insufficient cpu",
        "       n-1, n-2, n-3 and 2 more",
        "    1  TaintToleration: node(s) had untolerated taint {gpu: }",
        "       n-0",
    ]


def test_nodes_with_equal_reasons_in_any_order_are_grouped() -> None:
    both = (unresolvable("a", "b"), unresolvable("b", "a"))

    lines = printed(replace(explained(500, 500), statuses=both))

    assert under(lines, "Filtered out")[1:] == ["    2  a, b", "       n-0, n-1"]


def test_preemption_may_help_on_a_node_that_is_only_full() -> None:
    refused = explained(500)
    full = replace(refused, statuses=(_full(refused.statuses[0]),))

    assert "Insufficient cpu (preemption may help)" in "\n".join(printed(full))
    assert "preemption may" not in "\n".join(printed(refused))


def _full(status: Status | None) -> Status:
    assert status is not None
    return replace(status, code=Code.UNSCHEDULABLE)


def test_a_pod_that_fits_nowhere_has_its_message_instead_of_scores() -> None:
    lines = printed(explained(500, 500))

    assert lines[0] == "default/p: no node is feasible"
    assert lines[1].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert not any("cores" in line for line in lines)


def test_a_pod_that_pre_filter_rejects_is_rejected_on_every_node() -> None:
    explanation = explained(*[4000] * 5)
    rejected = replace(unresolvable("claim not found"), plugin="VolumeBinding")
    outcome = replace(explanation.pre_filter, status=rejected)

    none = np.zeros(0, np.int64)
    explanation = replace(explanation, pre_filter=outcome, feasible=none, scores=(), total=none)

    lines = printed(explanation)

    assert "    5  VolumeBinding: claim not found" in lines
    assert "       every node" in lines


def test_nodes_excluded_by_pre_filter_have_no_plugin() -> None:
    excluded = unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]")
    lines = printed(replace(explained(500), statuses=(excluded,)))

    assert "    1  node(s) didn't satisfy plugin(s) [NodeAffinity]" in lines


def test_a_pod_without_any_node_has_only_its_message() -> None:
    lines = printed(explained())

    assert lines == ["default/p: no node is feasible", "no nodes available to schedule pods"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"nominated": "n-1"}, "n-1 is chosen: it is nominated, and other nodes are not compared"),
        (
            {"score_error": "bad term"},
            "n-1 is chosen: it is the only feasible node, and needs no score",
        ),
        ({"is_terminating": True}, "default/p: is being deleted: the scheduler skips it"),
        ({"cycle_error": "bad term"}, "default/p: scheduling it fails: bad term"),
        (
            {"pre_enqueue": replace(error("waiting for a"), plugin="SchedulingGates")},
            "default/p: does not enter the queue: SchedulingGates: waiting for a",
        ),
        (
            {"unsupported": "DefaultPreemption: spec.priority"},
            "Whether preemption would help is not known: DefaultPreemption: spec.priority",
        ),
    ],
)
def test_unusual_facts_are_printed_at_the_top(changes: dict[str, object], text: str) -> None:
    lines = printed(replace(explained(4000, 8000), **changes))

    assert text in lines[:3]


def test_names_that_look_like_markup_are_printed_unchanged() -> None:
    refused = explained(500)
    odd = replace(refused, statuses=(unresolvable("taint {[red]x[/red]: }"),))

    assert any("taint {[red]x[/red]: }" in line for line in printed(odd))


def test_candidates_of_a_preemption_are_listed_with_victims_best_first() -> None:
    classes = PodClasses()
    table = NodeTable(classes)
    for name, priority in (("n1", 5), ("n2", 1)):
        table.add_node(NodeFacts(name, (), (("cpu", 1000), ("memory", 1 << 33)), 10))
        low = classes.pod_class(replace(ASKS, priority=priority))
        table.add_pod(name, low, uid=f"default/on-{name}")
    urgent = classes.pod_class(replace(ASKS, priority=9))
    cycle = PlainCycle(table, build_profiles(RunPlan(), classes), TieBreak("first"))

    lines = printed(cycle.explain(PodInCycle("u", "default/urgent", urgent, "class")))

    assert "Preemption would make room on n2: 1 pod is evicted" in lines
    start = next(i for i, line in enumerate(lines) if line.startswith("Preemption: nodes"))
    assert [line.split() for line in lines[start:] if "default/on-" in line] == [
        ["n2", "0", "default/on-n2", "(1)"],
        ["n1", "0", "default/on-n1", "(5)"],
    ]
