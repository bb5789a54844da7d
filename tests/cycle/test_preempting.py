"""Preemption and nominated pods: plain and sharded decide alike on any fleet."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.local import LocalShards
from roadstead.cycle.plain import PlainCycle
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.pod import PodAffinityTerm, PodIdentity, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.run import RunPlan, build_profiles
from tests.builders import node, pod, require

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def apps(*names):
    return LabelSelector((require("app", "In", *names),))


def spread(key):
    return SpreadConstraint(key, 1, "DoNotSchedule", apps("a"), 1, "Honor", "Ignore", ())


def near(key, *names):
    return (PodAffinityTerm(key, apps(*names), ("default",), None),)


labels = st.sampled_from([{}, {"app": "a"}, {"app": "b"}])
keys = st.sampled_from([HOSTNAME, ZONE])
some_spread = st.one_of(st.just(()), keys.map(lambda key: (spread(key),)))
some_terms = st.one_of(st.just(()), st.builds(near, keys, st.sampled_from(["a", "b"])))
facts = st.builds(
    pod,
    cpu=st.sampled_from([500, 1000, 2000]),
    labels=labels,
    priority=st.integers(-1, 3),
    is_terminating=st.booleans(),
    pod_anti_affinity=some_terms,
)
waiting = st.builds(
    pod,
    cpu=st.sampled_from([1000, 2000, 3000]),
    labels=labels,
    priority=st.integers(1, 5),
    spread_constraints=some_spread,
    pod_affinity=some_terms,
    pod_anti_affinity=some_terms,
)
budgets = st.lists(
    st.builds(
        DisruptionBudget,
        st.just("default"),
        st.just("budget"),
        st.sampled_from([apps("a"), apps("a", "b"), None]),
        st.integers(0, 2),
        st.sampled_from([frozenset(), frozenset({"p1"})]),
    ),
    max_size=2,
)


class Fleet:
    """The same nodes, pods and nominations on one table and on shards."""

    def __init__(self, shards, found_budgets, kind):
        plan = RunPlan(cluster=ClusterFacts(budgets=tuple(found_budgets)))
        tie_break = TieBreak(kind, 3)
        self.classes = PodClasses()
        self.profiles = build_profiles(plan, self.classes)
        self.table = NodeTable(self.classes)
        self.plain = PlainCycle(self.table, self.profiles, tie_break, name_best=True)
        self.sharded = LocalShards(
            shards, lambda classes: build_profiles(plan, classes), tie_break, name_best=True
        )

    def add_node(self, number):
        each = node(f"n{number}", cpu=3000, labels={HOSTNAME: f"n{number}", ZONE: f"z{number % 2}"})
        self.table.add_node(each)
        self.sharded.add_nodes([each])

    def add_pod(self, number, of, name):
        who = PodIdentity(f"uid-p{number}", "default", f"p{number}", float(number % 3))
        info = self.classes.info(of)
        self.table.add_pod(name, info, uid=who.uid, key=who.key, started_s=who.started_s)
        self.sharded.add_pod(name, of, who)

    def nominate(self, of, name):
        self.table.nominate(name, self.classes.info(of))
        self.sharded.nominate(name, of)

    def plainly(self, number, of):
        return self.plain.decide(self._asked(self.classes, self.profiles, number, of))

    def on_shards(self, all_of_them):
        asked = [
            self._asked(self.sharded.cycle.classes, self.sharded.profiles, number, of)
            for number, of in enumerate(all_of_them)
        ]
        return self.sharded.decide(asked)

    @staticmethod
    def _asked(classes, profiles, number, of):
        info = classes.info(of)
        uid = f"uid-w{number}"
        signature = profiles["default-scheduler"].class_of(info, uid)
        return PodInCycle(uid, f"default/w{number}", info, signature)


def told(decision):
    diagnosis, after = decision.diagnosis, decision.post_filter
    return (
        decision.pod.uid,
        decision.node_name,
        decision.feasible,
        decision.total,
        decision.best,
        diagnosis and diagnosis.message(),
        after and (after.status, after.nominated_node, set(after.candidates), after.acceptable),
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_fleet_is_preempted_alike_on_one_table_and_on_shards(data):
    fleet = Fleet(
        data.draw(st.sampled_from([1, 2, 5])),
        data.draw(budgets),
        data.draw(st.sampled_from(["random", "first"])),
    )
    names = [f"n{number}" for number in range(data.draw(st.integers(1, 6)))]
    for number in range(len(names)):
        fleet.add_node(number)
    for number, of in enumerate(data.draw(st.lists(facts, max_size=12))):
        fleet.add_pod(number, of, data.draw(st.sampled_from(names)))
    for of in data.draw(st.lists(waiting, max_size=3)):
        fleet.nominate(of, data.draw(st.sampled_from([*names, "elsewhere"])))
    pending = data.draw(st.lists(waiting, min_size=1, max_size=5))
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from([*names, "elsewhere"]))
        pending[0] = replace(pending[0], nominated_node_name=name)
        fleet.nominate(pending[0], name)

    sharded = fleet.on_shards(pending)

    plain = [fleet.plainly(number, of) for number, of in enumerate(pending[: len(sharded)])]
    assert [told(each) for each in sharded] == [told(each) for each in plain]
    assert sharded


def test_a_batch_ends_where_preemption_was_tried():
    fleet = Fleet(1, (), "first")
    fleet.add_node(0)
    fleet.add_pod(0, pod(cpu=3000), "n0")
    urgent = pod(cpu=3000, priority=5)

    (decision,) = fleet.on_shards([urgent, pod(cpu=9000), urgent])

    assert decision.post_filter.nominated_node == "n0"
    assert [each.key for each in decision.post_filter.chosen.victims] == ["default/p0"]


def test_a_pod_that_was_placed_is_nominated_no_more():
    fleet = Fleet(1, (), "first")
    fleet.add_node(0)
    mine = pod(cpu=1000, priority=5, nominated_node_name="n0")
    fleet.nominate(mine, "n0")

    (decision,) = fleet.on_shards([mine, pod(cpu=2000)])

    assert decision.node_name == "n0"
    assert not fleet.sharded.shards[0].table.nominations


def test_the_room_that_a_nominated_pod_leaves_elsewhere_is_there_for_the_next():
    fleet = Fleet(2, (), "first")
    fleet.add_node(0)
    fleet.add_node(1)
    fleet.add_pod(0, pod(cpu=500, priority=9), "n1")
    mine = pod(cpu=3000, priority=5, nominated_node_name="n1")
    fleet.nominate(mine, "n1")
    small = pod(cpu=1000, priority=1)

    (decision,) = fleet.on_shards([mine, small])

    assert decision.node_name == "n0"
    assert fleet.on_shards([small])[0].node_name == "n1"


def test_a_pod_does_not_take_the_room_of_a_nominated_one_of_no_lower_priority():
    fleet = Fleet(2, (), "first")
    fleet.add_node(0)
    fleet.nominate(pod(cpu=2000, priority=3), "n0")

    low, equal, high = (pod(cpu=2000, priority=priority) for priority in (1, 3, 4))

    assert fleet.on_shards([low])[0].node_name is None
    assert fleet.on_shards([equal])[0].node_name is None
    assert fleet.on_shards([high])[0].node_name == "n0"
