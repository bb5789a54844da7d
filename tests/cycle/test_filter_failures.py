"""A Filter that fails, instead of refusing, ends the cycle with upstream's message."""

import numpy as np
import pytest

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.node_search import NodeSearch
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.facts.pod import PodIdentity
from roadstead.framework.plugin import (
    FilterPlugin,
    FilterResult,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
)
from roadstead.framework.tie_break import TieBreak
from roadstead.local.decision_paths import open_path
from roadstead.protocol.status import error, unschedulable
from tests.builders import node, pod, profile_of, table_of

TEXT = 'running "Asks" filter plugin: the oracle is silent'


class Asks(FilterPlugin):
    """A plugin that refuses n1 and fails on the nodes in `fails_on`."""

    name = "Asks"
    reads = Reads.NODE
    fails_on = frozenset({"n2"})

    def filter(self, state, pod, table):
        codes = [1 if name == "n1" else 2 * (name in self.fails_on) for name in table.names]
        answers = (unschedulable("no"), error("the oracle is silent"))
        return FilterResult(np.array(codes, dtype=np.int32), answers)

    def sign(self, pod):
        return ""


class Live(Asks):
    reads = Reads.ROW


def profiles_of(kind):
    points = {"preFilter": ["NodeResourcesFit"], "filter": ["NodeResourcesFit", "Asks"]}
    return lambda classes: {
        "default-scheduler": profile_of(points, plugins=[kind], classes=classes)
    }


def paths(kind, names):
    """Yield (decision, explanation) of a pod: alone, in a batch, and with 1 and 3 workers."""
    for name in ("plain", "batches", "1", "3"):
        path = open_path(name, profiles_of(kind))
        path.add_nodes(map(node, names))
        waiting = path.prepare(PodIdentity("u", "default", "p"), pod(cpu=100))
        explanation = path.explain(waiting)
        yield path.decide([waiting])[0], explanation


@pytest.mark.parametrize("kind", [Asks, Live])
def test_a_filter_that_fails_on_any_node_fails_the_cycle_even_if_others_fit(kind):
    for decision, explanation in paths(kind, ["n1", "n2", "n3", "n4"]):
        assert (decision.node_name, decision.error) == (None, TEXT)
        assert explanation.cycle_error == TEXT
        assert explanation.as_recorded()["cycleError"] == TEXT


class Raises(PreFilterPlugin):
    """A plugin that fails before any node is evaluated."""

    name = "Raises"

    def pre_filter(self, state, pod, table):
        return PreFilterResult(error("the oracle is silent"))

    def sign(self, pod):
        return ""


def test_if_prefilter_fails_no_node_has_passed():
    table = table_of(node("n1"), node("n2"))
    profile = profile_of({"preFilter": ["Raises"]}, plugins=[Raises], classes=table.classes)
    cycle = BatchBuilder(table, {"default-scheduler": profile}, TieBreak("first"))
    pod_class = table.classes.pod_class(pod(cpu=100))
    waiting = PodInCycle("u", "default/p", pod_class, profile.signature_of(pod_class, "u"))

    decision = cycle.begin([waiting]).decide(waiting)

    assert (decision.node_name, decision.feasible) == (None, 0)
    assert "the oracle is silent" in decision.error


def test_a_failing_prefilter_is_explained_as_the_error_of_the_cycle():
    table = table_of(node("n1"), node("n2"))
    profile = profile_of({"preFilter": ["Raises"]}, plugins=[Raises], classes=table.classes)
    cycle = PlainCycle(table, {"default-scheduler": profile}, TieBreak("first"))
    pod_class = table.classes.pod_class(pod(cpu=100))
    waiting = PodInCycle("u", "default/p", pod_class, profile.signature_of(pod_class, "u"))

    explanation = cycle.explain(waiting)

    assert explanation.cycle_error == cycle.decide(waiting).error
    assert "message" not in explanation.as_recorded()


@pytest.mark.parametrize("kind", [Asks, Live])
def test_if_no_node_fails_the_pod_is_placed_on_another_node(kind):
    for decision, explanation in paths(kind, ["n1", "n3"]):
        assert (decision.node_name, decision.error) == ("n3", "")
        assert explanation.cycle_error == ""


@pytest.mark.parametrize("cycle_of", [PlainCycle, BatchBuilder])
@pytest.mark.parametrize(
    ("start", "node_name", "why", "next_start"),
    [(0, None, TEXT, 2), (1, None, TEXT, 2), (2, None, TEXT, 2), (3, "n3", "", 0)],
)
def test_a_filter_fails_only_pods_whose_search_reaches_the_failing_node(
    cycle_of, start, node_name, why, next_start, monkeypatch
):
    """Upstream searches on after the found and refused nodes, without the node that failed."""
    monkeypatch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 1)
    table = table_of(*map(node, ("n0", "n1", "n2", "n3")))
    profiles = profiles_of(Asks)(table.classes)
    node_search = NodeSearch({"default-scheduler": 1})
    node_search.start = start
    cycle = cycle_of(table, profiles, TieBreak("first"), node_search=node_search)
    pod_class = table.classes.pod_class(pod(cpu=100))
    waiting = PodInCycle(
        "u", "default/p", pod_class, profiles["default-scheduler"].signature_of(pod_class, "u")
    )

    if cycle_of is PlainCycle:
        assert cycle.explain(waiting).cycle_error == why
        decision = cycle.decide(waiting)
    else:
        decision = cycle.begin([waiting]).decide(waiting)

    assert (decision.node_name, decision.error) == (node_name, why)
    assert node_search.start == next_start


class AsksOthers(Asks):
    """A plugin that fails on an earlier node than those on which `Asks` fails."""

    name = "AsksOthers"

    def filter(self, state, pod, table):
        fails = np.array([name == "n0" for name in table.names])
        return FilterResult.refuse(fails, error("the others are silent"))


def test_if_two_filters_fail_on_different_nodes_explanation_and_decision_agree():
    filters = ["NodeResourcesFit", "Asks", "AsksOthers"]
    points = {"preFilter": ["NodeResourcesFit"], "filter": filters}
    for name in ("plain", "batches"):
        path = open_path(
            name,
            lambda classes: {
                "default-scheduler": profile_of(points, plugins=[Asks, AsksOthers], classes=classes)
            },
        )
        path.add_nodes(map(node, ["n0", "n2", "n3"]))
        waiting = path.prepare(PodIdentity("u", "default", "p"), pod(cpu=100))

        explanation = path.explain(waiting)

        assert path.decide([waiting])[0].error == explanation.cycle_error == TEXT
