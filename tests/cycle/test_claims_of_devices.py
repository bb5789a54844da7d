"""Batches of pods with claims of devices decide as one pod after another, without substitutes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.config.plugin_args import DynamicResourcesArgs
from roadstead.cycle.batch import CompiledKernel, pod_in_cycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.devices import substitutes
from roadstead.devices.allocator import STEPS_PER_S
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import (
    AttributeFacts,
    ClaimSpec,
    DeviceConstraint,
    DeviceFacts,
    DeviceRequest,
    DevicesFacts,
    ExactRequest,
    Placement,
    SliceFacts,
)
from roadstead.facts.pod import PodIdentity
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.nodes.table import NodeTable
from roadstead.plugins.dynamic_resources import DynamicResources
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.plugins.node_name import NodeName
from roadstead.storage import AssumedClaims
from tests.builders import node
from tests.devices.fleet import CLASS, DRIVER, claim, owned, using, with_template

NAME = "default-scheduler"
RANDOM = TieBreak("random", 7)
MODEL = f'device.attributes["{DRIVER}"].model == "a"'
FAILING = f'device.attributes["{DRIVER}"].absent == "a"'


def asked(count=1, *selectors, name="r", device_class="gpu"):
    return DeviceRequest(name, device_class, selectors, count=count)


SHAPES = {
    "one": ClaimSpec((asked(),)),
    "two": ClaimSpec((asked(2),)),
    "model": ClaimSpec((asked(1, MODEL),)),
    "same": ClaimSpec((asked(2),), (DeviceConstraint((), f"{DRIVER}/socket"),)),
    "either": ClaimSpec(
        (
            DeviceRequest(
                "r", alternatives=(ExactRequest("a", "gpu", (MODEL,)), ExactRequest("b", "gpu"))
            ),
        )
    ),
    "failing": ClaimSpec((asked(1, FAILING),)),
    "unknown": ClaimSpec((asked(device_class="none"),)),
}


def device(name, model="a", socket=0):
    attributes = (
        AttributeFacts("model", "string", model),
        AttributeFacts("socket", "int", socket),
    )
    return DeviceFacts(name, attributes)


def fleet(*, reached_by_all):
    """Return slices of three nodes, and one that all reach."""
    four = device("d0"), device("d1", "b"), device("d2", "a", 1), device("d3", "b", 1)
    local = [
        SliceFacts(name, DRIVER, name, 1, 1, Placement(node_name=name), devices=four)
        for name in ("n0", "n1", "n2")
    ]
    everywhere = SliceFacts(
        "net", DRIVER, "net", 1, 1, Placement(all_nodes=True), devices=(device("e0"), device("e1"))
    )
    return (*local, everywhere) if reached_by_all else tuple(local)


class World:
    """A table with a profile, its storage, and the pods that were placed."""

    def __init__(self, devices, nodes=4, timeout_s=10.0):
        """timeout_s: filterTimeout of DynamicResources."""
        config = default_config().profiles[0]
        config = replace(
            config, args={**config.args, DynamicResources.name: DynamicResourcesArgs(timeout_s)}
        )
        self.table = NodeTable()
        self.handle = Handle(self.table.classes, ClusterFacts(devices=devices))
        self.profile = Profile(config, in_tree_registry(), self.handle)
        for number in range(nodes):
            self.table.add_node(node(f"n{number}", cpu=3000))
        self.claims = AssumedClaims(self.handle.storage)
        self.on = {}

    @property
    def devices(self):
        return self.handle.storage.devices

    def coming(self, pods):
        classes = self.table.classes
        return [
            pod_in_cycle(
                PodIdentity(uid, "default", uid), classes.pod_class(facts), self.profile, classes
            )
            for uid, facts in pods
        ]

    def end(self, uid):
        """Remove a placed pod, and free what it used."""
        name, pod_class = self.on.pop(uid)
        self.table.remove_pod(name, pod_class, uid=uid)
        self.claims.release([uid])


class Batches(World):
    """Decides as a scheduler: devices are allocated ahead, and assumed after the batch."""

    def __init__(self, devices, *, kernel, timeout_s=10.0):
        super().__init__(devices, timeout_s=timeout_s)
        self.coverage = DecisionCounts()
        code = CompiledKernel(load(), self.coverage) if kernel else None
        self.cycle = BatchBuilder(
            self.table, {NAME: self.profile}, RANDOM, compiled_kernel=code, allocates_devices=True
        )

    def decide(self, pods):
        found, left = {}, self.coming(pods)
        while left:
            batch_pods = self.cycle.next_batch(left)
            batch, decisions = self.cycle.begin(batch_pods), []
            while len(decisions) < len(batch_pods):
                some = batch.decide_by_kernel(batch_pods[len(decisions) :])
                if not some:
                    one = batch.decide(batch_pods[len(decisions)])
                    some = [] if one is None else [one]
                decisions += some
                if not some or some[-1].node_name is None:
                    break
            batch.flush()
            assert decisions, "a fresh batch decides at least one pod"
            self.cycle.record_length(len(batch_pods), len(decisions))
            self.handle.storage.ahead.undo()
            for each in decisions:
                found[each.pod.uid] = contents(each)
                if each.node_name is not None:
                    self.assume(each.pod, each.node_name)
            left = left[len(decisions) :]
        return found

    def assume(self, pod, name):
        self.on[pod.uid] = name, pod.pod_class
        facts = self.table.facts(self.table.row_of(name))
        assert self.claims.assume(pod.uid, pod.pod_class.facts, facts) is not None
        self.claims.confirm(pod.uid)


class OneByOne(World):
    def __init__(self, devices, *, timeout_s=10.0):
        super().__init__(devices, timeout_s=timeout_s)
        self.cycle = PlainCycle(self.table, {NAME: self.profile}, RANDOM)

    def decide(self, pods):
        found = {}
        for pod in self.coming(pods):
            decision = self.cycle.decide(pod)
            found[pod.uid] = contents(decision)
            if decision.node_name is not None:
                self.on[pod.uid] = decision.node_name, pod.pod_class
                self.cycle.confirm(pod)
        return found


def contents(decision):
    diagnosis = decision.diagnosis
    why = diagnosis and (diagnosis.pre_filter, dict(diagnosis.refused), diagnosis.refused_nodes)
    return decision.node_name, decision.error, why


def made(shapes, cpu_milli=100):
    """Return pods p0, p1 … with claims of their own of some shapes, and these claims."""
    pods, claims = [], []
    for number, shape in enumerate(shapes):
        uid = f"p{number}"
        claims.append(owned(f"c-{uid}", uid, spec=SHAPES[shape]))
        pods.append((uid, with_template(uid, f"c-{uid}", cpu=cpu_milli)))
    return pods, claims


def facts_of(claims, *, reached_by_all=False):
    return DevicesFacts(fleet(reached_by_all=reached_by_all), (CLASS,), tuple(claims))


@pytest.mark.parametrize("reached_by_all", [False, True])
@pytest.mark.parametrize("kernel", [False, True])
@given(
    shapes=st.lists(st.sampled_from([*SHAPES]), min_size=1, max_size=14),
    shared=st.lists(st.integers(0, 2), max_size=3),
    cut=st.integers(0, 14),
    ended=st.sets(st.integers(0, 6), max_size=3),
)
@settings(max_examples=25, deadline=None)
def test_batches_decide_as_one_pod_after_another(
    kernel, reached_by_all, shapes, shared, cut, ended
):
    pods, claims = made(shapes)
    claims += [claim(f"shared-{number}", 2) for number in range(3)]
    pods += [(f"s{n}", using(f"s{n}", f"shared-{name}", cpu=100)) for n, name in enumerate(shared)]
    pods += [(f"x{number}", using(f"x{number}", cpu=1000)) for number in range(2)]
    pods = [pods[number * 7 % len(pods)] for number in range(len(pods))]
    pods = [*dict(pods).items()]
    devices = facts_of(claims, reached_by_all=reached_by_all)
    ours, theirs = Batches(devices, kernel=kernel), OneByOne(devices)

    for part in (pods[:cut], pods[cut:]):
        assert ours.decide(part) == theirs.decide(part)
        assert ours.devices.claims == theirs.devices.claims
        ours.devices.validate()
        for uid in sorted({f"p{number}" for number in ended} & ours.on.keys()):
            ours.end(uid)
            theirs.end(uid)


@pytest.mark.parametrize("kernel", [False, True])
@given(
    shapes=st.lists(st.sampled_from(["one", "same", "either"]), min_size=1, max_size=10),
    steps=st.integers(1, 8),
)
@settings(max_examples=15, deadline=None)
def test_searches_that_end_early_end_alike_for_pods_with_and_without_substitutes(
    kernel, shapes, steps
):
    pods, claims = made(shapes)
    devices = facts_of(claims)
    ours = Batches(devices, kernel=kernel, timeout_s=steps / STEPS_PER_S)
    theirs = OneByOne(devices, timeout_s=steps / STEPS_PER_S)

    assert ours.decide(pods) == theirs.decide(pods)
    assert ours.devices.claims == theirs.devices.claims


def test_the_kernel_decides_pods_of_one_template_and_is_kept():
    pods, claims = made(["one"] * 5 + ["model"] * 2)
    world = Batches(facts_of(claims), kernel=True)

    for part in (pods[:4], pods[4:]):
        found = world.decide(part)
        assert all(name is not None for name, _, _ in found.values())

    assert world.coverage.by_kernel == len(pods)


def test_pods_of_one_template_have_one_signature_until_a_claim_is_allocated():
    pods, claims = made(["one", "one", "two"])
    world = World(facts_of(claims))
    first, second, other = world.coming(pods)

    assert first.signature == second.signature != other.signature
    assert first.substitute is second.substitute is not None

    node_facts = world.table.facts(0)
    world.claims.assume("p0", first.pod_class.facts, node_facts)
    assert not world.profile.substitutes_for(first.substitute, first.pod_class)
    assert world.profile.substitutes_for(second.substitute, second.pod_class)
    (again,) = world.coming(pods[:1])
    assert again.substitute is None


@pytest.mark.parametrize(
    "change",
    [{"is_terminating": True}, {"owner_uid": "other"}, {"is_in_flight": True}],
)
def test_a_claim_that_cannot_be_allocated_is_read_itself(change):
    pods, claims = made(["one"])
    world = World(facts_of([replace(claims[0], **change)]))
    assert world.coming(pods)[0].substitute is None


def test_pods_whose_shapes_are_forgotten_within_a_batch_are_decided_alike(monkeypatch):
    monkeypatch.setattr(substitutes, "SHAPES_MAX", 1)
    pods, claims = made(["one", "two", "model", "same", "one", "two"])
    ours, theirs = Batches(facts_of(claims), kernel=True), OneByOne(facts_of(claims))
    assert ours.decide(pods) == theirs.decide(pods)
    assert ours.devices.claims == theirs.devices.claims


def test_errors_name_the_claim_of_the_pod():
    pods, claims = made(["failing", "failing"])
    found = Batches(facts_of(claims), kernel=True).decide(pods)
    assert all(f"claim default/c-{uid}" in error for uid, (_, error, _) in found.items())


def test_users_plugins_see_the_claims_of_each_pod(monkeypatch):
    monkeypatch.setattr(NodeName, "is_guarded", True)
    pods, claims = made(["one"])
    world = World(facts_of(claims))
    assert world.coming(pods)[0].substitute is None


def test_a_batch_with_claims_that_changed_after_the_lease_reads_them():
    pods, claims = made(["one", "one"])
    world = Batches(facts_of(claims), kernel=True)
    leased = world.coming(pods)
    world.devices.apply([replace(claims[1], is_terminating=True)])

    batch = world.cycle.begin(world.cycle.next_batch(leased))
    assert [each.node_name is not None for each in batch.decide_by_kernel(leased)] == [True]
    assert batch.decide_by_kernel(leased[1:]) == []
    assert batch.decide(leased[1]) is None, "its class is evaluated once the first is assumed"
    world.handle.storage.ahead.undo()
    (found,) = world.decide(pods[1:]).values()
    assert found[2][0].reasons == ('resourceclaim "c-p1" is being deleted',)
