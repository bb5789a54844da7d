"""Batches on one node table decide like single pods in turn."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.cycle import class_cache
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.tentative import Tentative
from roadstead.facts.pod import SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.table import NodeTable
from tests.actors import fleets
from tests.builders import node, pod, require, table_of
from tests.kernel.test_equality import (
    DECIDING,
    PROFILES,
    TIE_BREAKS,
    Plain,
    World,
    compiled_kernel,
    fleet_world,
    play,
    profiles_of,
    worlds,
)


class Cycle:
    """A BatchBuilder, and the cache's part: confirming placed pods."""

    def __init__(self, world, config, tie_break, compiled_kernel, node_search=None):
        self.table = NodeTable()
        for facts, running in world.clusters:
            self.table.add_node(facts)
            for each in running:
                self.table.add_pod(facts.name, self.table.classes.pod_class(each))
        self.classes, self.profiles = (
            self.table.classes,
            profiles_of(config)(self.table.classes),
        )
        self.cycle = BatchBuilder(self.table, self.profiles, tie_break, node_search=node_search)
        self.cycle.compiled_kernel = compiled_kernel
        self.tentative = Tentative(self.table)

    def decide(self, pods):
        decisions = []
        while len(decisions) < len(pods):
            decisions += self.batch(self.cycle.next_batch(pods[len(decisions) :]))
        return decisions

    def batch(self, pods):
        batch, decisions = self.cycle.begin(pods), []
        while len(decisions) < len(pods):
            coming = pods[len(decisions) :]
            if run := batch.decide_by_kernel(coming):
                decisions += run
                continue
            decision = batch.decide(coming[0])
            if decision is None:
                break
            decisions.append(decision)
        batch.flush()
        assert decisions, "a batch decides at least one pod"
        self.cycle.record_length(len(pods), len(decisions))
        self.tentative.record_decisions(decisions)
        for each in decisions:
            if each.node_name is not None:
                placed = [each.pod.uid], [each.node_name], [each.pod.pod_class]
                assert self.tentative.confirm(*placed) == [], "it is on its node already"
        self.table.validate()
        return decisions

    def remove(self, pod, node_name):
        self.table.remove_pod(node_name, pod.pod_class, uid=pod.uid)


@DECIDING
@given(worlds(), PROFILES, TIE_BREAKS, st.booleans())
def test_batches_are_decided_like_single_pods_in_turn(world, config, tie_break, with_kernel):
    ours = Cycle(world, config, tie_break, compiled_kernel() if with_kernel else None)

    assert play(ours, world) == play(Plain(world, config, tie_break, None), world)


@DECIDING
@given(fleets.inputs(), TIE_BREAKS, st.booleans())
def test_pods_with_constraints_across_nodes_are_decided_like_single_ones(
    inputs, tie_break, with_kernel
):
    world, config = fleet_world(inputs), default_config().profiles[0]
    ours = Cycle(world, config, tie_break, compiled_kernel() if with_kernel else None)

    assert play(ours, world) == play(Plain(world, config, tie_break, None), world)


@given(fleets.inputs(), st.data())
def test_cached_results_of_classes_are_recomputed_where_the_table_changed(inputs, data):
    world, config = fleet_world(inputs), default_config().profiles[0]
    paths = Cycle(world, config, TieBreak(), None), Plain(world, config, TieBreak(), None)
    facts = [each for batch in world.batches for each, _ in batch]
    there = []
    for number in range(data.draw(st.integers(1, 8))):
        chosen = data.draw(st.sampled_from(facts or [pod()]))
        found = []
        for path in paths:
            pod_class = path.classes.pod_class(chosen)
            profile = path.profiles[config.scheduler_name]
            asked = PodInCycle(
                f"u{number}", f"ns/u{number}", pod_class, profile.signature_of(pod_class, "")
            )
            found.append(path.decide([asked])[0])
        assert found[0].node_name == found[1].node_name
        if found[0].node_name is not None:
            there.append((found[0].node_name, *(each.pod for each in found)))
        if there and data.draw(st.booleans()):
            name, ours, theirs = there.pop()
            paths[0].remove(ours, name)
            paths[1].remove(theirs, name)
        if data.draw(st.booleans()):
            changed = replace(
                data.draw(st.sampled_from(inputs.nodes)), unschedulable=number % 2 > 0
            )
            paths[0].table.update_node(changed)
            paths[1].cycle.table.update_node(changed)


def spreading(cpu):
    selector = LabelSelector((require("app", "In", "web"),))
    evenly = SpreadConstraint("zone", 1, "DoNotSchedule", selector, 1, "Honor", "Ignore", ())
    return pod(cpu=cpu, labels={"app": "web"}, spread_constraints=(evenly,))


def test_the_kernels_state_of_one_class_is_not_used_for_another_that_spreads_alike():
    zones = [(node(f"n-{zone}", labels={"zone": zone}), []) for zone in "ab"]
    ours = Cycle(World(zones), default_config().profiles[0], TieBreak("first"), compiled_kernel())

    def decided(name, facts):
        pod_class = ours.classes.pod_class(facts)
        signature = ours.profiles["default-scheduler"].signature_of(pod_class, "")
        (decision,) = ours.decide([PodInCycle(name, f"ns/{name}", pod_class, signature)])
        return decision

    one, _ = decided("one", spreading(100)), decided("other", spreading(100))
    ours.remove(one.pod, one.node_name)

    assert one.node_name == "n-a"
    assert decided("larger", spreading(200)).node_name == "n-a"
    assert ours.cycle.compiled_kernel.decision_counts.by_kernel == 3


WEB, NEAR_DB = {"app": "web"}, (fleets.near(fleets.apps("db")),)
RIVAL = pod(
    labels={"app": "rival"},
    preferred_pod_anti_affinity=(fleets.near(fleets.apps("web"), fleets.HOSTNAME, 50),),
)


def shunned(*, full=False):
    """Two nodes of a zone; a pod on the first one has anti-affinity, preferred, to web pods."""
    filler = [pod(cpu=3000)] if full else []
    rows = [(fleets.host(n, "a", cpu=4000), filler + [RIVAL] * (not n)) for n in range(2)]
    return lambda *batches: World(rows, [[(facts, False) for facts in each] for each in batches])


def decided_alike(world, with_kernel=True):
    """Return the decisions of both paths, which are equal: (node, total) per pod."""
    config, tie_break = default_config().profiles[0], TieBreak("first")
    ours = Cycle(world, config, tie_break, compiled_kernel() if with_kernel else None)
    found = play(ours, world)
    assert found == play(Plain(world, config, tie_break, None), world)
    return [(each[1], each[3]) for each in found]


def test_a_class_made_feasible_by_a_placement_is_scored_with_earlier_pods():
    db = pod(cpu=100, labels={"app": "db"}, node_selector={fleets.HOSTNAME: "n0"})
    web = pod(cpu=100, labels=WEB, pod_affinity=NEAR_DB)

    found = decided_alike(shunned()([db, web]))

    assert [name for name, _ in found] == ["n0", "n1"]


def test_a_class_without_a_feasible_row_does_not_affect_a_similar_class():
    web = pod(cpu=100, labels=WEB)
    nowhere = pod(cpu=100, labels=WEB, node_name="elsewhere")

    found = decided_alike(shunned()([web], [nowhere, web]))

    assert [name for name, _ in found] == ["n1", None, "n1"]
    assert found[2][1] > 500


@pytest.mark.parametrize("with_kernel", [False, True])
def test_a_class_that_fits_again_is_scored_with_earlier_pods(with_kernel):
    world, config = shunned(full=True)(), default_config().profiles[0]
    web, totals = pod(cpu=2000, labels=WEB), []
    for path in (Cycle, Plain):
        code = compiled_kernel() if with_kernel and path is Cycle else None
        ours = path(world, config, TieBreak("first"), code)
        profile, pod_class = ours.profiles["default-scheduler"], ours.classes.pod_class(web)
        asked = PodInCycle("u", "ns/u", pod_class, profile.signature_of(pod_class, ""))
        assert ours.decide([asked])[0].node_name is None
        filler = PodInCycle("", "", ours.classes.pod_class(pod(cpu=3000)), "")
        for name in ("n0", "n1"):
            ours.remove(filler, name)
        (decision,) = ours.decide([asked])
        assert decision.node_name == "n1"
        totals.append(decision.total)

    assert totals[0] == totals[1]


def test_a_batch_over_a_large_table_has_few_classes(monkeypatch):
    monkeypatch.setattr(class_cache, "MAX_RESULTS", 0)
    table = table_of(*(node(f"n{number}") for number in range(3)))
    profiles = profiles_of(default_config().profiles[0])(table.classes)
    cycle = BatchBuilder(table, profiles, TieBreak())
    (profile,) = profiles.values()

    def asked(count, cpu):
        pod_classes = [table.classes.pod_class(pod(cpu=cpu(number))) for number in range(count)]
        keys = [profile.signature_of(pod_class, "") for pod_class in pod_classes]
        rows = enumerate(zip(pod_classes, keys, strict=True))
        return [
            PodInCycle(f"u{n}", f"default/p{n}", pod_class, key) for n, (pod_class, key) in rows
        ]

    distinct, alike = asked(40, lambda number: number + 1), asked(40, lambda _: 5)

    assert list(cycle.next_batch(distinct)) == distinct[: class_cache.MIN_CLASSES]
    assert list(cycle.next_batch(alike)) == alike

    cycle.compiled_kernel = compiled_kernel()

    assert list(cycle.next_batch(distinct)) == distinct, "classes of one shape share results"

    monkeypatch.setattr(class_cache, "MAX_TOTALS", 3 * 20)

    assert list(cycle.next_batch(distinct)) == distinct[:20], "totals are not shared"
