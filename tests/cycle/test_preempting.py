"""Preemption and nominated pods: batches decide like single pods in turn on any fleet."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.pod import PodAffinityTerm, PodIdentity, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.tie_break import TieBreak
from roadstead.local.decision_paths import BatchPath, PathOptions, PlainPath
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
    """The same nodes, pods and nominations, decided pod by pod and in batches."""

    def __init__(self, found_budgets=(), kind="first"):
        plan = RunPlan(cluster=ClusterFacts(budgets=tuple(found_budgets)))
        tie_break = TieBreak(kind, 3)
        self.plain, self.beside = self.paths = tuple(
            path(lambda classes: build_profiles(plan, classes), PathOptions(tie_break=tie_break))
            for path in (PlainPath, BatchPath)
        )

    def add_node(self, number):
        each = node(f"n{number}", cpu=3000, labels={HOSTNAME: f"n{number}", ZONE: f"z{number % 2}"})
        for path in self.paths:
            path.add_nodes([each])

    def add_pod(self, number, of, name):
        who = PodIdentity(f"uid-p{number}", "default", f"p{number}", float(number % 3))
        for path in self.paths:
            path.add_pod(name, of, who)

    def nominate(self, of, name):
        for path in self.paths:
            path.nominate(name, of)

    def one_by_one(self, all_of_them):
        return [self.plain.decide([each])[0] for each in self._asked(self.plain, all_of_them)]

    def together(self, all_of_them):
        return self.beside.decide(self._asked(self.beside, all_of_them))

    @staticmethod
    def _asked(path, all_of_them):
        return [
            path.prepare(PodIdentity(f"uid-w{number}", "default", f"w{number}"), of)
            for number, of in enumerate(all_of_them)
        ]


def contents(decision):
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
def test_batches_preempt_like_single_pods_in_turn_on_any_fleet(data):
    fleet = Fleet(data.draw(budgets), data.draw(st.sampled_from(["random", "first"])))
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

    together = fleet.together(pending)

    alone = fleet.one_by_one(pending[: len(together)])
    assert [contents(each) for each in together] == [contents(each) for each in alone]
    assert together


def test_a_batch_ends_where_preemption_was_tried():
    fleet = Fleet()
    fleet.add_node(0)
    fleet.add_pod(0, pod(cpu=3000), "n0")
    urgent = pod(cpu=3000, priority=5)

    (decision,) = fleet.together([urgent, pod(cpu=9000), urgent])

    assert decision.post_filter.nominated_node == "n0"
    assert [each.key for each in decision.post_filter.chosen.victims] == ["default/p0"]


def test_a_placed_pod_is_not_nominated_any_more():
    fleet = Fleet()
    fleet.add_node(0)
    mine = pod(cpu=1000, priority=5, nominated_node_name="n0")
    fleet.nominate(mine, "n0")

    (decision,) = fleet.together([mine, pod(cpu=2000)])

    assert decision.node_name == "n0"
    assert not fleet.beside.table.nominations


def test_resources_that_a_nominated_pod_leaves_elsewhere_are_free_for_the_next():
    fleet = Fleet()
    fleet.add_node(0)
    fleet.add_node(1)
    fleet.add_pod(0, pod(cpu=500, priority=9), "n1")
    mine = pod(cpu=3000, priority=5, nominated_node_name="n1")
    fleet.nominate(mine, "n1")
    small = pod(cpu=1000, priority=1)

    (decision,) = fleet.together([mine, small])

    assert decision.node_name == "n0"
    assert fleet.together([small])[0].node_name == "n1"


def test_a_pod_does_not_use_resources_of_a_nominated_pod_of_no_lower_priority():
    fleet = Fleet()
    fleet.add_node(0)
    fleet.nominate(pod(cpu=2000, priority=3), "n0")

    low, equal, high = (pod(cpu=2000, priority=priority) for priority in (1, 3, 4))

    assert fleet.together([low])[0].node_name is None
    assert fleet.together([equal])[0].node_name is None
    assert fleet.together([high])[0].node_name == "n0"
