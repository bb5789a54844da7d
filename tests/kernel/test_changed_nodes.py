"""A table whose nodes change one by one decides like a newly built one."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.facts.taints import Taint, Toleration
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from tests import strategies
from tests.builders import GIB, MIB, named, node, pod, prefer, require, term
from tests.kernel.test_equality import (
    AMOUNTS,
    DECIDING,
    MODEST_PODS,
    PROFILES,
    ROOMY,
    ROOMY_NODES,
    TIE_BREAKS,
    compiled_kernel,
    contents,
    resized,
)

DEFAULT = default_config().profiles[0]
LIKED = ((100, "ssd"), (30, "hdd"))
LOST = Taint("node.kubernetes.io/unreachable", "", "NoExecute")
RATHER_NOT = Taint("old", "", "PreferNoSchedule")


@dataclass
class Fleet:
    """A cycle over a table that changes; each decision is compared with that of a new table."""

    config: object
    tie_break: TieBreak
    compiled_kernel: CompiledKernel | None = field(default_factory=compiled_kernel)
    alone: int = 0

    def __post_init__(self):
        self.table = NodeTable()
        classes = self.table.classes
        names = self.config.scheduler_name
        self.ours, self.theirs = (
            Profile(self.config, in_tree_registry(), Handle(classes)) for _ in range(2)
        )
        self.cycle = BatchBuilder(
            *(self.table, {names: self.ours}, self.tie_break), compiled_kernel=self.compiled_kernel
        )
        self.pods = {}
        self.number = 0

    def put(self, facts):
        if self.table.has_node(facts.name):
            self.table.update_node(facts)
        else:
            self.table.add_node(facts)

    def drop(self, name):
        self.table.remove_node(name)
        self.pods = {uid: each for uid, each in self.pods.items() if each[0] != name}

    def end(self, uid):
        name, pod_class = self.pods.pop(uid)
        self.table.remove_pod(name, pod_class, uid=uid)

    def anew(self):
        """Return an equal table with its rows in another order."""
        table = NodeTable(self.table.classes)
        for row in reversed(range(len(self.table))):
            table.add_node(self.table.facts(row), int(self.table.arrivals[row]))
        for uid, (name, pod_class) in self.pods.items():
            table.add_pod(name, pod_class, uid=uid)
        return table

    def coming(self, kinds):
        for facts in kinds:
            self.number += 1
            pod_class = self.table.classes.pod_class(facts)
            uid = f"u{self.number}"
            yield PodInCycle(uid, f"ns/{uid}", pod_class, self.ours.signature_of(pod_class, uid))

    def expected(self, pods):
        """Return the decisions of a new table, pod by pod and without the kernel."""
        profiles = {self.config.scheduler_name: self.theirs}
        cycle = BatchBuilder(self.anew(), profiles, self.tie_break)
        return [cycle.begin([each]).decide(each) for each in pods]

    def decide_alone(self, facts):
        """Decide a pod as a simulated run does, and compare its node."""
        (one,) = self.coming([facts])
        (expected,) = self.expected([one])
        name = self.cycle.place_one(one)
        if name is None:
            self.decide([one], [expected])
            return
        self.alone += 1
        assert name == expected.node_name
        self.pods[one.uid] = name, one.pod_class

    def decide_together(self, kinds):
        pods = list(self.coming(kinds))
        self.decide(pods, self.expected(pods))

    def decide(self, pods, expected):
        """Decide pods in batches and compare all about each decision."""
        done = 0
        while done < len(pods):
            some = self.cycle.next_batch(pods[done:])
            batch, decided = self.cycle.begin(some), []
            while len(decided) < len(some):
                run = batch.decide_by_kernel(some[len(decided) :])
                decision = None if run else batch.decide(some[len(decided)])
                if not run and decision is None:
                    break
                decided += run or [decision]
                batch.flush()
            self.cycle.record_length(len(some), len(decided))
            for ours, theirs in zip(decided, expected[done:], strict=False):
                assert contents(ours) == contents(theirs)
                if ours.node_name is not None:
                    self.pods[ours.pod.uid] = ours.node_name, ours.pod.pod_class
            done += len(decided)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("alone"), st.integers(0, 11)),
        st.tuples(st.just("alone"), st.integers(0, 11)),
        st.tuples(st.just("together"), st.lists(st.integers(0, 11), min_size=1, max_size=4)),
        st.tuples(st.just("put"), ROOMY_NODES),
        st.tuples(st.just("change"), st.integers(0, 11)),
        st.tuples(st.just("drop"), st.integers(0, 11)),
        st.tuples(st.just("end"), st.integers(0, 11)),
    ),
    min_size=4,
    max_size=24,
)


def changed(facts, number):
    """Return a node with other facts, chosen by a number, and back again."""
    taint = (LOST, RATHER_NOT)[number % 2]
    if number % 3 == 0:
        return replace(facts, unschedulable=not facts.unschedulable)
    kept = tuple(each for each in facts.taints if each != taint)
    return replace(facts, taints=kept if len(kept) < len(facts.taints) else (*kept, taint))


def play(fleet, clusters, kinds, steps):
    for facts, _ in clusters:
        fleet.put(facts)
    for what, argument in steps:
        names = sorted(fleet.table.node_names())
        if what == "put":
            fleet.put(argument)
        elif what == "end" and fleet.pods:
            fleet.end(sorted(fleet.pods)[argument % len(fleet.pods)])
        elif what == "change" and names:
            row = fleet.table.row_of(names[argument % len(names)])
            fleet.put(changed(fleet.table.facts(row), argument))
        elif what == "drop" and names:
            fleet.drop(names[argument % len(names)])
        elif what == "alone":
            fleet.decide_alone(kinds[argument % len(kinds)])
        elif what == "together":
            fleet.decide_together([kinds[each % len(kinds)] for each in argument])
    fleet.table.validate()


@DECIDING
@given(
    ROOMY,
    st.lists(MODEST_PODS, min_size=1, max_size=3),
    AMOUNTS,
    STEPS,
    PROFILES,
    TIE_BREAKS,
    st.booleans(),
)
def test_pods_between_changes_of_nodes_are_decided_as_on_a_new_table(
    clusters, kinds, amounts, steps, config, tie_break, has_kernel
):
    sized = [resized(each, by) for each in kinds for by in amounts]
    play(
        Fleet(config, tie_break, compiled_kernel() if has_kernel else None), clusters, sized, steps
    )


@DECIDING
@given(
    strategies.clusters,
    st.lists(st.one_of(strategies.pods, MODEST_PODS), min_size=1, max_size=4),
    STEPS,
    TIE_BREAKS,
    st.booleans(),
)
def test_so_are_pods_with_constraints_across_nodes(clusters, kinds, steps, tie_break, has_kernel):
    play(
        Fleet(DEFAULT, tie_break, compiled_kernel() if has_kernel else None), clusters, kinds, steps
    )


class CountedBuilds:
    """Compiled code that counts how often the totals of all rows are computed."""

    def __init__(self):
        self.builds = 0
        loaded = load()

        def build(*arguments):
            self.builds += 1
            loaded.build(*arguments)

        self.code = replace(loaded, build=build)


def counted_fleet(nodes=6):
    counted = CountedBuilds()
    fleet = Fleet(DEFAULT, TieBreak(), CompiledKernel(counted.code, DecisionCounts()))
    for number in range(nodes):
        fleet.put(node(f"n{number}", cpu=4000))
    return fleet, counted


@pytest.mark.parametrize(
    "change",
    [
        {"taints": (LOST,)},
        {"unschedulable": True},
        {"labels": {"disk": "ssd"}},
        {"cpu": 8000},
        {"pods": 0},
    ],
    ids=str,
)
def test_a_changed_node_leaves_the_totals_of_the_others_as_they_are(change):
    fleet, counted = counted_fleet()
    kinds = [pod(cpu=100), pod(cpu=200), pod(cpu=300, labels={"app": "web"})]
    for facts in kinds * 2:
        fleet.decide_alone(facts)
    before = counted.builds

    for number in range(3):
        fleet.put(node(f"n{number}", **({"cpu": 4000} | change)))
        for facts in kinds:
            fleet.decide_alone(facts)
        fleet.put(node(f"n{number}", cpu=4000))
        for facts in kinds:
            fleet.decide_alone(facts)

    assert counted.builds == before
    assert fleet.alone == fleet.number


def test_a_node_with_a_score_that_no_other_has_is_decided_with_new_totals():
    fleet, counted = counted_fleet()
    likes = pod(cpu=100, preferred_node_terms=(prefer(7, term(require("disk", "In", "ssd"))),))
    fleet.put(node("n1", cpu=4000, labels={"disk": "ssd"}))
    for _ in range(3):
        fleet.decide_alone(likes)
    before = counted.builds

    fleet.put(node("n2", cpu=4000, taints=(RATHER_NOT,)))
    for _ in range(3):
        fleet.decide_alone(likes)

    assert counted.builds > before
    fleet.put(node("n3", cpu=4000, labels={"disk": "ssd"}))
    fleet.put(node("n1", cpu=4000))
    for _ in range(3):
        fleet.decide_alone(likes)
    assert fleet.alone == fleet.number


@pytest.mark.parametrize("has_kernel", [True, False])
def test_scores_are_normalized_again_when_the_best_node_no_longer_has_its_score(has_kernel):
    """n1 has the highest raw score, n2 a lower one, which counts fully once n1 has lost its own."""
    fleet = Fleet(DEFAULT, TieBreak(), compiled_kernel() if has_kernel else None)
    for number in range(4):
        labels = {1: {"disk": "ssd"}, 2: {"disk": "hdd"}}.get(number)
        fleet.put(node(f"n{number}", labels=labels))
    terms = [prefer(weight, term(require("disk", "In", disk))) for weight, disk in LIKED]
    likes, large = pod(cpu=100, preferred_node_terms=tuple(terms)), pod(cpu=3600, memory=7 * GIB)
    fleet.decide_alone(replace(large, required_node_terms=(named("n2"),)))
    fleet.decide_alone(likes)
    assert [name for name, _ in fleet.pods.values()] == ["n2", "n1"]

    fleet.put(node("n1"))
    fleet.decide_alone(likes)

    assert [name for name, _ in fleet.pods.values()] == ["n2", "n1", "n2"]


def test_a_shape_not_used_since_a_change_is_not_decided_by_outdated_results():
    fleet = Fleet(DEFAULT, TieBreak())
    for name, cpu in (("roomy", 64_000), ("small", 4000)):
        fleet.put(node(name, cpu=cpu))
    known, new = pod(cpu=100), pod(cpu=100, labels={"app": "web"})
    fleet.decide_alone(known)

    fleet.put(node("roomy", cpu=64_000, taints=(LOST,)))
    for facts in (new, known):
        fleet.decide_alone(facts)

    assert [name for name, _ in fleet.pods.values()] == ["roomy", "small", "small"]
    assert fleet.alone == 3


def test_shapes_with_equal_scores_differ_once_a_taint_is_tolerated_by_one_of_them():
    fleet = Fleet(DEFAULT, TieBreak())
    roomy = {"cpu": 64_000, "memory": 128 * GIB}
    for facts in (node("roomy", **roomy), node("small")):
        fleet.put(facts)
    tolerant, other = pod(cpu=100, tolerations=(Toleration("", "Exists", "", ""),)), pod(cpu=100)
    for facts in (tolerant, other):
        fleet.decide_alone(facts)

    fleet.put(node("roomy", **roomy, taints=(LOST,)))
    for facts in (tolerant, other, tolerant, tolerant):
        fleet.decide_alone(facts)

    chosen = [name for name, _ in fleet.pods.values()]
    assert chosen == ["roomy", "roomy", "roomy", "small", "roomy", "roomy"]


def test_a_changed_node_keeps_the_score_of_its_images():
    fleet = Fleet(DEFAULT, TieBreak())
    for number in range(3):
        fleet.put(node(f"n{number}", images={"app:v1": 900 * MIB} if number == 1 else {}))
    facts = pod(cpu=100, images=("app:v1",))
    fleet.decide_alone(facts)

    fleet.put(node("n1", images={"app:v1": 900 * MIB}, labels={"disk": "ssd"}))
    fleet.decide_alone(facts)

    assert [name for name, _ in fleet.pods.values()] == ["n1", "n1"]


def test_many_changes_between_pods_of_a_class_are_all_applied():
    fleet, _ = counted_fleet(nodes=3)
    rare, frequent = pod(cpu=20), pod(cpu=10)
    fleet.decide_alone(rare)
    for number in range(700):
        fleet.decide_alone(frequent)
        if number % 2:
            fleet.end(f"u{fleet.number - 1}")
            fleet.end(f"u{fleet.number}")
        if number % 100 == 50:
            fleet.put(node(f"n{number % 3}", cpu=4000, taints=(LOST,) if number % 200 > 99 else ()))
            fleet.decide_alone(rare)

    assert fleet.alone == fleet.number
