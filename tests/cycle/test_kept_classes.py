"""The cached results of a class equal new results, whatever happened to rows meanwhile."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.node_search import NodeSearch
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.extenders.extender import Extender
from roadstead.extenders.sequence import Extenders
from roadstead.framework.plugin import Reads, ScorePlugin
from roadstead.framework.tie_break import TieBreak
from tests.builders import (
    MIB,
    ROW_PLUGINS,
    named,
    node,
    pod,
    prefer,
    profile_of,
    require,
    table_of,
    taint,
    term,
)
from tests.extenders.servers import config_of

NODES = ("n0", "n1", "n2", "n3")
ZONES = (prefer(5, term(require("zone", "In", "a"))), prefer(1, term(require("zone", "In", "b"))))
PODS = (
    pod(cpu=300, preferred_node_terms=ZONES),
    pod(cpu=700, images=("app:v1",), container_count=1),
    pod(cpu=100, preferred_node_terms=ZONES[:1]),
)
TAINTS = ((), (taint("slow", effect="PreferNoSchedule"),), (taint("off"),))


def facts_of(name, taints=()):
    images = {"app:v1": 4000 * MIB} if name == "n0" else None
    labels = {"zone": "abcd"[int(name[1:])]}
    return node(name, cpu=1000, labels=labels, taints=taints, images=images)


class Kept:
    """A plain cycle over four nodes: the same for all pods, or a new one for each. Each pod is
    explained before it is decided, with the same result."""

    def __init__(self, is_kept):
        self.table = table_of(*map(facts_of, NODES))
        self.profiles = {"default-scheduler": profile_of(ROW_PLUGINS, classes=self.table.classes)}
        self.cycle = PlainCycle(self.table, self.profiles, TieBreak("first"))
        self.is_kept, self.placed = is_kept, []

    def decide(self, which):
        if not self.is_kept:
            self.cycle = PlainCycle(self.table, self.profiles, TieBreak("first"))
        pod_class = self.table.classes.pod_class(PODS[which])
        asked = PodInCycle(f"u{len(self.placed)}", "ns/p", pod_class, which)
        explained = self.cycle.explain(asked)
        decision = self.cycle.decide(asked)
        if decision.node_name is None:
            assert decision.diagnosis.message() == explained.diagnosis.message()
        else:
            assert decision.node_name == min(explained.best)
            assert decision.total == explained.total.max()
        self.placed.append((asked, decision.node_name))
        why = decision.diagnosis and decision.diagnosis.message()
        return decision.node_name, decision.total, decision.feasible, decision.best_size, why

    def leave(self, which):
        if self.placed:
            asked, name = self.placed[which % len(self.placed)]
            if name is not None:
                self.table.remove_pod(name, asked.pod_class, uid=asked.uid)
                self.placed[which % len(self.placed)] = asked, None

    def taint(self, which):
        self.table.update_node(facts_of(NODES[which % 4], TAINTS[which % 3]))


steps = st.tuples(
    st.sampled_from(["decide", "decide", "decide", "leave", "taint"]), st.integers(0, 11)
)


@given(st.lists(steps, max_size=25))
@example([("decide", 0)] * 14)
@example([*[("decide", 1)] * 5, ("leave", 0), ("decide", 1), ("leave", 1), ("decide", 0)])
@example([*[("decide", 0), ("decide", 1), ("taint", 4)] * 4, ("taint", 0), ("decide", 0)])
def test_a_cached_class_is_decided_like_a_new_one(program):
    kept, anew = Kept(is_kept=True), Kept(is_kept=False)
    for name, which in program:
        which = which % len(PODS) if name == "decide" else which
        assert getattr(kept, name)(which) == getattr(anew, name)(which)


class Rates:
    """An extender that refuses one node, names an unknown one, and scores another."""

    def call(self, verb, payload):
        names = payload["NodeNames"]
        if verb == "prioritize":
            return [{"Host": "n2", "Score": 3}]
        refused = {"n1": "too loud", "ghost": "unseen"}
        return {"NodeNames": [each for each in names if each != "n1"], "FailedNodes": refused}


def decided(facts, points, **verbs):
    table = table_of(*map(facts_of, NODES))
    config = config_of(node_cache_capable=True, weight=2, **verbs)
    node_search = NodeSearch({}, Extenders([Extender(config, Rates())]))
    profile = profile_of(points, plugins=[TooHighOnceNormalized], classes=table.classes)
    cycle = PlainCycle(
        table, {"default-scheduler": profile}, TieBreak("first"), node_search=node_search
    )
    return cycle.decide(PodInCycle("u", "ns/p", table.classes.pod_class(facts), "class"))


class TooHighOnceNormalized(ScorePlugin):
    name = "TooHigh"
    reads = Reads.NODE
    normalizes = True

    def score(self, state, pod, table):
        return table.arrivals * 0

    def normalize(self, state, pod, raw, extremes):
        return raw + 101

    def sign(self, pod):
        return ""


WITHOUT_SCORES = {**ROW_PLUGINS, "preScore": [], "score": []}
BOTH = {"filter_verb": "filter", "prioritize_verb": "prioritize"}


def test_without_scoring_plugins_extenders_scores_are_the_totals():
    decision = decided(pod(cpu=100), WITHOUT_SCORES, **BOTH)
    assert (decision.node_name, decision.best_size) == ("n2", 1)

    alone = decided(pod(cpu=100), WITHOUT_SCORES, filter_verb="filter")
    assert (alone.node_name, alone.total, alone.best_size) == ("n0", 1, 3)
    assert decision.total == 60


def test_refusals_by_extenders_and_of_unknown_nodes_are_counted():
    decision = decided(
        pod(cpu=100, required_node_terms=(named("n1"),)), ROW_PLUGINS, filter_verb="filter"
    )

    assert decision.diagnosis.message().startswith("0/4 nodes are available: ")
    assert decision.diagnosis.reasons()["too loud"] == 1
    assert decision.diagnosis.reasons()["unseen"] == 1
    assert "Extender" in decision.diagnosis.plugins


@pytest.mark.parametrize("verbs", [{}, {"filter_verb": "filter"}])
def test_a_score_out_of_range_after_normalization_fails_the_pod(verbs):
    points = {**ROW_PLUGINS, "score": ["TooHigh"]}
    decision = decided(pod(cpu=100), points, **verbs)

    assert decision.node_name is None
    assert 'plugin "TooHigh" returns an invalid score 101' in decision.error
