import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.cycle import local as local_module
from roadstead.cycle import sharded as sharded_module
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.local import LocalShards
from roadstead.cycle.messages import EvaluateRequest
from roadstead.cycle.plain import PlainCycle
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from tests.actors import fleets
from tests.builders import MIB, node, pod
from tests.strategies import ZONE

WEB = fleets.apps("web")


def profiles_of(classes):
    return {
        each.scheduler_name: Profile(each, in_tree_registry(), Handle(classes))
        for each in default_config().profiles
    }


def in_cycle(number, facts, classes, profiles, attempt=1):
    uid = f"u{number}"
    signature = profiles[facts.scheduler_name].signature(facts, uid)
    return PodInCycle(uid, f"default/p{number}", classes.info(facts), signature, attempt)


class Plain:
    """One table, one pod after another."""

    def __init__(self, inputs, tie_break):
        table = NodeTable()
        for facts in inputs.nodes:
            table.add_node(facts)
        for _, facts, name in inputs.running:
            table.add_pod(name, table.classes.info(facts))
        self.classes, self.profiles = table.classes, profiles_of(table.classes)
        self.cycle = PlainCycle(table, self.profiles, tie_break, name_best=True)

    def pod(self, number, facts):
        return in_cycle(number, facts, self.classes, self.profiles)

    def decide(self, facts):
        return [self.cycle.decide(self.pod(*each)) for each in enumerate(facts)]


class Local:
    """The same over shards, a batch at a time."""

    def __init__(self, inputs, shards, tie_break):
        self.shards = LocalShards(shards, profiles_of, tie_break, name_best=True)
        self.shards.add_nodes(inputs.nodes)
        for _, facts, name in inputs.running:
            self.shards.add_pod(name, facts)

    def pod(self, number, facts):
        return in_cycle(number, facts, self.shards.cycle.classes, self.shards.profiles)

    def decide(self, facts, batch=10):
        waiting = [self.pod(*each) for each in enumerate(facts)]
        decisions = []
        while waiting:
            decided = self.shards.decide(waiting[:batch])
            decisions += decided
            waiting = waiting[len(decided) :]
        return decisions


def told(decision):
    """All that a decision says, free of codes and classes."""
    diagnosis = decision.diagnosis
    why = (diagnosis.message(""), diagnosis.plugins) if diagnosis else None
    return (
        decision.pod.key,
        decision.node_name,
        decision.feasible,
        decision.total,
        decision.best_size,
        decision.best,
        why,
        decision.error,
    )


def zoned(*zones):
    return fleets.inputs_of([fleets.host(number, zone) for number, zone in enumerate(zones)], [])


@given(
    fleets.inputs(),
    st.integers(1, 6),
    st.integers(1, 12),
    st.sampled_from([TieBreak("first"), TieBreak("random", 3)]),
)
def test_any_sharding_gives_the_decisions_of_one_table(inputs, shards, batch, tie_break):
    facts = [each for _, each in inputs.pending]

    alone = Plain(inputs, tie_break).decide(facts)
    together = Local(inputs, shards, tie_break).decide(facts, batch)

    assert [told(each) for each in together] == [told(each) for each in alone]


@given(fleets.inputs(), st.integers(1, 6))
def test_any_sharding_gives_one_explanation(inputs, shards):
    plain, local = Plain(inputs, TieBreak()), Local(inputs, shards, TieBreak())
    for number, (_, facts) in enumerate(inputs.pending):
        alone = plain.cycle.explain(plain.pod(number, facts))
        together = local.shards.explain(local.pod(number, facts))

        assert together.as_expected() == alone.as_expected()
        assert together.message == alone.message


def test_a_batch_that_needs_no_other_look_is_decided_at_once():
    local = Local(zoned("a", "b"), 2, TieBreak("first"))
    pods = [local.pod(number, pod(cpu=100)) for number in range(6)]

    assert len(local.shards.decide(pods)) == 6


def test_a_batch_ends_where_a_placement_changes_more_than_its_row():
    local = Local(zoned("a", "b", "c"), 3, TieBreak("first"))
    alone = pod(labels={"app": "web"}, pod_anti_affinity=(fleets.near(WEB),))
    pods = [local.pod(number, alone) for number in range(3)]

    assert [each.node_name for each in local.shards.decide(pods)] == ["n0"]
    assert [each.node_name for each in local.shards.decide(pods[1:])] == ["n1"]


def test_decided_pods_are_counted_on_their_shard():
    local = Local(zoned("a", "b"), 2, TieBreak("first"))

    local.decide([pod(cpu=3000)] * 3)

    counts = {
        name: shard.table.row_facts(name)["pod_count"]
        for shard in local.shards.shards
        for name in shard.table.node_names()
    }
    assert counts == {"n0": 1, "n1": 1}


def test_a_removed_pod_gives_its_room_back():
    local = Local(zoned("a"), 1, TieBreak("first"))
    local.shards.add_pod("n0", pod(cpu=4000))
    assert local.decide([pod(cpu=1000)])[0].node_name is None

    local.shards.remove_pod("n0", pod(cpu=4000))

    assert local.decide([pod(cpu=1000)])[0].node_name == "n0"


def test_a_removed_node_is_not_decided_on_any_more():
    local = Local(zoned("a", "b"), 2, TieBreak("first"))
    assert local.decide([pod(cpu=100)])[0].node_name == "n0"

    local.shards.remove_node("n0")

    assert local.decide([pod(cpu=200)])[0].node_name == "n1"


def test_a_node_that_comes_later_is_decided_on():
    local = Local(zoned(), 2, TieBreak("first"))
    nowhere = local.decide([pod()])[0]
    assert (nowhere.node_name, nowhere.diagnosis.message("")) == (
        None,
        "no nodes available to schedule pods",
    )

    local.shards.add_nodes([node("late")])

    assert local.decide([pod()])[0].node_name == "late"


@pytest.mark.parametrize(("late", "settled"), [([], 3), ([fleets.host(2)], 1)])
def test_a_batch_ends_at_a_row_that_knows_too_little_of_nodes_that_came_since(late, settled):
    local = Local(zoned(), 2, TieBreak("first"))
    with_image = fleets.host(0, labels={"disk": "ssd"}, images={"app:v1": 700 * MIB})
    local.shards.add_nodes([with_image, fleets.host(1)])
    local.decide([pod(cpu=100, node_name="n1")])
    there = pod(cpu=100, node_selector={"disk": "ssd"})

    local.shards.add_nodes(late)

    assert len(local.shards.decide([local.pod(number, there) for number in range(3)])) == settled


def test_shards_that_never_agree_are_a_broken_invariant(monkeypatch):
    monkeypatch.setattr(local_module, "MAX_ROUNDS", 1)

    with pytest.raises(AssertionError, match="never agreed"):
        Local(zoned("a"), 1, TieBreak()).decide([pod()])


def test_of_distinct_pods_as_many_are_asked_about_as_one_answer_has_room_for(monkeypatch):
    monkeypatch.setattr(sharded_module, "MIN_CLASSES", 2)
    monkeypatch.setattr(sharded_module, "MAX_NAMED", 12)
    local = Local(zoned(*"aabb"), 2, TieBreak("first"))
    pods = [local.pod(number, pod(cpu=1 + number)) for number in range(9)]
    alike = [local.pod(number, pod(cpu=1)) for number in range(9)]
    cycle = local.shards.cycle
    assert len(cycle.together(pods)) == 2, "how many nodes there are is not known yet"

    local.shards.decide(pods[:1])

    assert len(cycle.together(pods)) == 6
    assert len(cycle.together(alike)) == 9


def test_an_empty_batch_decides_nothing():
    assert Local(zoned("a"), 1, TieBreak()).shards.decide([]) == []


def test_a_node_of_which_two_shards_tell_is_asked_about_again():
    shards = LocalShards(2, profiles_of, TieBreak("first"))
    shards.add_nodes([node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"})])
    facts = pod(cpu=1)
    pods = [in_cycle(0, facts, shards.cycle.classes, shards.profiles)]
    first, second = shards.shards
    (moved,) = second.table.columns.names
    stale = second.table.facts(second.table.row_of(moved))
    first.table.add_node(stale, 2)
    request = shards.cycle.begin(pods)

    following = shards.cycle.absorb([each.evaluate(request) for each in (first, second)])
    again = shards.cycle.absorb([each.evaluate(following) for each in (first, second)])

    assert isinstance(again, EvaluateRequest)
    second.table.remove_node(moved)
    while isinstance(again, EvaluateRequest):
        again = shards.cycle.absorb([each.evaluate(again) for each in (first, second)])
    assert again.decide(pods[0]).feasible == 2
