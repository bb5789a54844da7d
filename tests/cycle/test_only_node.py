"""The only node, or a fitting nominated node, is chosen whatever scoring returns."""

import numpy as np
import pytest

from roadstead.facts.pod import PodIdentity
from roadstead.framework.plugin import (
    FilterPlugin,
    FilterResult,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)
from roadstead.local.decision_paths import open_path
from roadstead.protocol.status import Status, error
from tests.builders import node, pod, profile_of

PATHS = ("plain", "batches", "1", "3")


class Unprepared(PreScorePlugin, ScorePlugin):
    """A plugin whose PreScore fails."""

    name = "Unprepared"
    reads = Reads.NODE

    def pre_score(self, state, pod, table, feasible):
        return error("the oracle is silent")

    def score(self, state, pod, table):
        return np.zeros(len(table), dtype=np.int64)

    def sign(self, pod):
        return ""


class TooHigh(Unprepared):
    """A plugin whose scores are out of range."""

    def pre_score(self, state, pod, table, feasible):
        return Status()

    def score(self, state, pod, table):
        return np.full(len(table), 101, dtype=np.int64)


WORDS = {
    Unprepared: 'running PreScore plugin "Unprepared": the oracle is silent',
    TooHigh: 'applying score defaultWeights on Score plugins: plugin "Unprepared" returns an '
    "invalid score 101, it should in the range of [0, 100] after normalizing",
}


def fleet(path_name, kind, *names):
    points = {
        "preFilter": ["NodeResourcesFit"],
        "filter": ["NodeResourcesFit"],
        "preScore": ["Unprepared"],
        "score": ["Unprepared"],
    }

    def profiles_of(classes):
        return {"default-scheduler": profile_of(points, plugins=[kind], classes=classes)}

    path = open_path(path_name, profiles_of)
    path.add_nodes(
        node(name, cpu=1000, labels={"topology.kubernetes.io/zone": name}) for name in names
    )
    return path


def decided(path, facts, name="p"):
    who = PodIdentity(f"uid-{name}", "default", name)
    (decision,) = path.decide([path.prepare(who, facts)])
    return decision


@pytest.mark.parametrize("kind", [Unprepared, TooHigh])
@pytest.mark.parametrize("path_name", PATHS)
def test_among_several_nodes_a_failing_score_fails_the_pod(path_name, kind):
    decision = decided(fleet(path_name, kind, "n1", "n2", "n3"), pod(cpu=600))

    assert decision.node_name is None
    assert decision.error.partition(" (tests/")[0] == WORDS[kind]
    assert decision.feasible == 3


@pytest.mark.parametrize("kind", [Unprepared, TooHigh])
@pytest.mark.parametrize("path_name", PATHS)
def test_the_only_feasible_node_is_chosen_although_scoring_fails(path_name, kind):
    path = fleet(path_name, kind, "n1", "n2", "n3")
    for name in ("n1", "n3"):
        path.add_pod(name, pod(cpu=600))

    decision = decided(path, pod(cpu=600))

    assert (decision.node_name, decision.error) == ("n2", "")
    assert (decision.feasible, decision.best_size, decision.total) == (1, 1, 0)


@pytest.mark.parametrize("kind", [Unprepared, TooHigh])
@pytest.mark.parametrize("path_name", PATHS)
def test_a_fitting_nominated_node_is_chosen_although_scoring_fails(path_name, kind):
    path = fleet(path_name, kind, "n1", "n2", "n3")

    decision = decided(path, pod(cpu=600, nominated_node_name="n2"))

    assert (decision.node_name, decision.error) == ("n2", "")
    assert (decision.feasible, decision.best_size, decision.total) == (1, 1, 0)


@pytest.mark.parametrize("path_name", PATHS)
def test_a_full_nominated_node_does_not_avoid_a_failing_score(path_name):
    path = fleet(path_name, Unprepared, "n1", "n2", "n3")
    path.add_pod("n2", pod(cpu=600))

    decision = decided(path, pod(cpu=600, nominated_node_name="n2"))

    assert decision.error == WORDS[Unprepared]
    assert decision.feasible == 2


@pytest.mark.parametrize("path_name", PATHS)
def test_a_pod_that_leaves_one_feasible_node_lets_the_next_pod_use_it(path_name):
    path = fleet(path_name, Unprepared, "n1", "n2")
    assert decided(path, pod(cpu=600), "first").error
    path.add_pod("n1", pod(cpu=600))

    assert decided(path, pod(cpu=600), "second").node_name == "n2"
    assert decided(path, pod(cpu=600), "third").node_name is None


@pytest.mark.parametrize("path_name", PATHS)
def test_an_explanation_names_the_only_node_as_chosen(path_name):
    path = fleet(path_name, Unprepared, "n1", "n2")
    path.add_pod("n1", pod(cpu=600))
    explained = path.explain(path.prepare(PodIdentity("u", "default", "p"), pod(cpu=600)))

    assert explained.best == ["n2"]
    assert explained.cycle_error == ""
    assert explained.score_error == WORDS[Unprepared]
    # The recordings score single nodes, too.
    assert explained.as_recorded()["cycleError"] == WORDS[Unprepared]


@pytest.mark.parametrize("path_name", PATHS)
def test_an_explanation_has_no_best_node_if_scoring_fails(path_name):
    path = fleet(path_name, Unprepared, "n1", "n2")
    explained = path.explain(path.prepare(PodIdentity("u", "default", "p"), pod(cpu=600)))

    assert explained.cycle_error == WORDS[Unprepared]
    assert explained.best == []


@pytest.mark.parametrize("path_name", PATHS)
def test_an_explanation_has_no_refusals_if_no_node_refuses(path_name):
    path = fleet(path_name, Unprepared, "n1", "n2")
    asked = path.prepare(PodIdentity("u", "default", "p"), pod(cpu=600))

    entry = path.explain(asked).as_recorded()
    assert entry["filter"] == [0, 0]
    assert "filterStatuses" not in entry

    path.add_pod("n1", pod(cpu=600))
    assert len(path.explain(asked).as_recorded()["filterStatuses"]) == 1


class NamesOne(PreFilterPlugin):
    """A plugin whose PreFilter names only n1."""

    name = "NamesOne"
    reads = Reads.NODE

    def pre_filter(self, state, pod, table):
        return PreFilterResult(node_names=frozenset({"n1"}))

    def sign(self, pod):
        return ""


class FailsOnN1(FilterPlugin):
    name = "FailsOnN1"
    reads = Reads.NODE

    def filter(self, state, pod, table):
        failed = np.array([name == "n1" for name in table.names])
        return FilterResult.refuse(failed, error("the oracle is silent"))

    def sign(self, pod):
        return ""


def found_nodes(path_name, kind):
    fit = "NodeResourcesFit"
    at = {NamesOne: {"preFilter": [fit, "NamesOne"], "filter": [fit]}}
    points = at.get(kind, {"preFilter": [fit], "filter": [fit, kind.name]})

    def profiles_of(classes):
        return {"default-scheduler": profile_of(points, plugins=[kind], classes=classes)}

    path = open_path(path_name, profiles_of)
    path.add_nodes(node(name, cpu=1000) for name in ("n1", "n2", "n3"))
    return path


@pytest.mark.parametrize("path_name", PATHS)
def test_an_explanation_names_the_plugins_of_the_decision(path_name):
    path = found_nodes(path_name, NamesOne)
    asked = path.prepare(PodIdentity("u", "default", "p"), pod(cpu=2000))

    explained, decision = path.explain(asked), decided(path, pod(cpu=2000))

    assert decision.diagnosis.restricted_by == ("NamesOne",)
    assert explained.diagnosis == decision.diagnosis


@pytest.mark.parametrize("kind", [NamesOne, FailsOnN1])
@pytest.mark.parametrize("path_name", PATHS)
def test_a_nominated_node_is_evaluated_before_all_others_and_alone(path_name, kind):
    path = found_nodes(path_name, kind)
    facts = pod(cpu=600, nominated_node_name="n2")
    asked = path.prepare(PodIdentity("u", "default", "p"), facts)

    explained = path.explain(asked)
    decision = decided(path, facts)

    assert (decision.node_name, decision.error, decision.feasible) == ("n2", "", 1)
    assert explained.as_recorded()["nominatedFits"] is True
    assert explained.best == ["n2"]


@pytest.mark.parametrize("path_name", PATHS)
def test_a_full_nominated_node_outside_the_named_ones_reports_its_shortage(path_name):
    path = found_nodes(path_name, NamesOne)
    for name in ("n1", "n2"):
        path.add_pod(name, pod(cpu=600))

    decision = decided(path, pod(cpu=600, nominated_node_name="n2"))

    assert decision.node_name is None
    assert decision.diagnosis.reasons() == {
        "Insufficient cpu": 2,
        "node(s) didn't satisfy plugin(s) [NamesOne]": 1,
    }
