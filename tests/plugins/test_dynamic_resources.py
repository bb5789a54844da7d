"""DynamicResources by itself: statuses, PostFilter, hints, and what it refuses to decide."""

from dataclasses import replace

import pytest

from roadstead.config.plugin_args import DynamicResourcesArgs
from roadstead.devices.gates import GATE_NAMES, DeviceGates, gates_of
from roadstead.devices.readiness import BINDING_TIMEOUT_MS, has_failed
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import (
    AllocatedDevice,
    Allocation,
    ClaimSpec,
    Consumer,
    DeviceRequest,
    DeviceStatus,
)
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import ObjectChange, QueueingHint
from roadstead.framework.plugin import ON_NONE, Handle
from roadstead.framework.post_filter_answers import PostFilterView
from roadstead.plugins.dynamic_resources import DynamicResources
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SKIP, SUCCESS, Code, unresolvable
from tests.builders import node, pod, table_of
from tests.devices.fleet import (
    CLASS,
    DRIVER,
    GPU,
    SERVING,
    asking,
    claim,
    cluster,
    left_by,
    slice_of,
    using,
    with_template,
)

ON_N1 = (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("n1",)),)),)
HERE = Allocation((AllocatedDevice("r", DRIVER, "n1", "d0"),), node_terms=ON_N1)
P = Consumer("pods", "p", "p")
DEFAULTS = DynamicResourcesArgs()


class World:
    """The plugin over nodes n1, with two devices, and n2, with none."""

    def __init__(self, *claims, args=DEFAULTS, slices=None, nodes=None, classes=(CLASS,), **gates):
        self.table = table_of(*(nodes or (node("n1"), node("n2"))))
        slices = slices or [slice_of("n1", "d0", "d1")]
        facts = cluster(*claims, slices=slices, classes=classes)
        gates = DeviceGates(**gates)
        handle = Handle(self.table.classes, facts, gates=gates)
        self.devices, self.plugin = handle.storage.devices, DynamicResources(args, handle)

    def pre_filter(self, facts):
        pod_class = self.table.classes.pod_class(facts)
        return self.plugin.pre_filter(CycleState(2), pod_class, self.table).status

    def reasons(self, facts):
        """Return each node's reasons, () if it passes."""
        pod_class, state = self.table.classes.pod_class(facts), CycleState(2)
        assert self.plugin.pre_filter(state, pod_class, self.table).status == SUCCESS
        found = self.plugin.filter(state, pod_class, self.table)
        codes = [0] * len(self.table) if found.codes is None else found.codes.tolist()
        return [() if not code else found.statuses[code - 1].reasons for code in codes]

    def post_filter(self, facts, *refused, **view):
        nodes = {self.plugin.name: tuple(node(name) for name in refused)}
        failed = PostFilterView(2, 0, view.pop("pre_filter", SUCCESS), refused_nodes=nodes, **view)
        return self.plugin.post_filter(facts, failed)


def test_pods_without_claims_are_skipped():
    world = World()
    assert world.pre_filter(pod()) == SKIP
    assert world.pre_filter(with_template("p", "")) == SKIP
    assert world.plugin.sign(pod()) == ()
    assert world.plugin.effect(world.table.classes.pod_class(pod())) is ON_NONE


def test_nodes_need_devices_for_all_claims():
    world = World(claim("a"), claim("b"), claim("c"))
    assert world.reasons(using("p", "a", "b")) == [(), ("cannot allocate all claims",)]
    assert world.reasons(using("p", "a", "b", "c")) == [("cannot allocate all claims",)] * 2


def test_nodes_must_reach_allocated_claims():
    world = World(claim("a", allocation=HERE))
    refused = "resourceclaim not available on the node"
    assert world.reasons(using("p", "a")) == [(), (refused,)]


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (
            claim("a", allocation=HERE, is_in_flight=True),
            unresolvable("resource claim default/a is in the process of being allocated"),
        ),
        (claim("b"), unresolvable('could not find ResourceClaim "default/a"')),
    ],
)
def test_pre_filter_refuses_claims_that_cannot_be_used_now(found, status):
    assert World(found).pre_filter(using("p", "a")) == status


def test_classes_are_needed_only_for_claims_without_an_allocation():
    found = claim("a")
    (request,) = found.spec.requests
    requests = (replace(request, device_class="no"),)
    found = replace(found, spec=replace(found.spec, requests=requests))
    text = "request r: device class no does not exist"

    assert World(found).pre_filter(using("p", "a")) == unresolvable(text)
    allocated = replace(found, allocation=HERE)
    assert World(allocated).pre_filter(using("p", "a")) == SUCCESS


def test_alternatives_need_their_gate():
    found = claim("a")
    (request,) = found.spec.requests
    either = replace(request, device_class="", alternatives=(request,))
    found = replace(found, spec=replace(found.spec, requests=(either,)))

    assert World(found).pre_filter(using("p", "a")) == SUCCESS
    refused = World(found, prioritized_list=False).pre_filter(using("p", "a"))
    assert "DRAPrioritizedList feature gate is disabled" in refused.message


def test_pre_enqueue_gates_pods_whose_claims_do_not_exist():
    world = World(claim("a"))
    assert world.plugin.pre_enqueue(using("p", "a")) == SUCCESS
    assert world.plugin.pre_enqueue(with_template("p", None)).is_rejected


class TestPostFilter:
    def test_a_claim_that_only_this_pod_reserves_is_deallocated(self):
        world = World(claim("a", allocation=HERE, reserved_for=(P,)))
        found = world.post_filter(using("p", "a"), "n2")
        assert found.status.message == "deallocation of ResourceClaim completed"
        assert (found.deallocated, found.deallocatable) == ("default/a", ("default/a",))

    @pytest.mark.parametrize("uid", ["p", "q"])
    def test_a_claim_that_others_reserve_is_not(self, uid):
        consumers = (Consumer("pods", "q", "q"), Consumer("pods", "r", "r"))
        world = World(claim("a", allocation=HERE, reserved_for=consumers))
        found = world.post_filter(using(uid, "a"), "n2")
        assert (found.status.message, found.deallocated) == ("still not schedulable", "")

    def test_nodes_without_free_devices_are_not_the_claims_fault(self):
        world = World(claim("a", allocation=HERE), claim("b", 9))
        found = world.post_filter(using("p", "a", "b"), "n2")
        assert found.status.message == "still not schedulable"

    def test_without_claims_or_after_its_own_refusal_there_is_nothing_to_free(self):
        world = World(claim("a", allocation=HERE))
        own = replace(unresolvable("x"), plugin=world.plugin.name)
        for found in (
            world.post_filter(pod(), "n2"),
            world.post_filter(using("p", "a"), pre_filter=own),
        ):
            assert found.status.message == "no new claims to deallocate"

    def test_without_its_pre_filter_it_fails_as_upstream(self):
        world = World()
        found = world.post_filter(pod(), unreached=(world.plugin.name,))
        assert (found.status.code, found.status.message) == (Code.ERROR, "not found")


class TestHints:
    def asked(self, old, new, facts=None):
        world = World(claim("a"))
        facts = facts or using("p", "a")
        return world.plugin.after_claim_change(facts, ObjectChange(old, new), ClusterFacts())

    def test_any_claim_that_loses_its_allocation_helps(self):
        old = claim("x", allocation=HERE)
        assert self.asked(old, claim("x")) is QueueingHint.QUEUE
        assert self.asked(old, claim("x"), using("p", "no")) is QueueingHint.QUEUE_SKIP

    def test_changes_of_the_status_of_own_claims_help(self):
        own, other = claim("a"), claim("x")
        reserved = replace(own, allocation=HERE, reserved_for=(P,))
        assert self.asked(None, own) is QueueingHint.QUEUE
        assert self.asked(None, other) is QueueingHint.QUEUE_SKIP
        assert self.asked(own, reserved) is QueueingHint.QUEUE
        assert self.asked(own, replace(own, finalizers=("f",))) is QueueingHint.QUEUE_SKIP


class TestExtendedResources:
    def world(self, *claims, nodes=None, **how):
        return World(*claims, nodes=nodes, classes=(SERVING,), extended_resource=True, **how)

    def test_devices_serve_them_where_the_node_does_not_offer_them(self):
        offering = node("n2", others={GPU: 1})
        world = self.world(nodes=(node("n1"), offering, node("n3")))
        refused = ("cannot allocate all claims",)
        assert world.reasons(asking("p", 2)) == [(), (), refused]
        assert world.reasons(asking("p", 3)) == [refused, (), refused]

    def test_claims_of_the_pod_are_allocated_first(self):
        world = self.world(claim("a"), claim("x"))
        refused = ("cannot allocate all claims",)
        assert world.reasons(asking("p", 1, claims=("a",))) == [(), refused]
        assert world.reasons(asking("p", 1, claims=("a", "x"))) == [refused, refused]

    def test_a_claim_that_was_left_is_in_the_way_and_deleted(self):
        left = left_by("p", allocation=HERE)
        world, facts = self.world(left), asking("p", 1)
        assert world.reasons(facts) == [("cannot schedule extended resource claim",)] * 2
        found = world.post_filter(facts, "n1", "n2")
        assert found.status.reasons == ("deletion of ResourceClaim completed",)
        assert found.deallocated == left.key

    def test_nothing_is_deleted_without_one(self):
        found = self.world().post_filter(asking("p", 9), "n1", "n2")
        assert found.status.reasons == ("still not schedulable",)

    def test_an_allocated_claim_that_the_node_does_not_reach_is_deallocated(self):
        world = self.world(claim("a", allocation=HERE))
        facts = asking("p", 1, claims=("a",))
        assert world.post_filter(facts, "n2").status.reasons == ("still not schedulable",)
        reachable = (slice_of("n1", "d0", "d1"), slice_of("n2", "d0"))
        world = self.world(claim("a", allocation=HERE), slices=reachable)
        assert world.post_filter(facts, "n2").deallocated == "default/a"

    def test_without_gate_or_class_they_are_not_the_plugins(self):
        assert World(classes=(SERVING,)).pre_filter(asking("p", 1)) == SKIP
        assert World(extended_resource=True).pre_filter(asking("p", 1)) == SKIP
        assert self.world().pre_filter(pod()) == SKIP

    def test_a_pod_of_which_only_sums_are_known_is_refused_not_guessed(self):
        asks = pod(others={GPU: 1})
        with pytest.raises(UnsupportedError, match="DRAExtendedResource"):
            self.world().pre_filter(asks)
        assert World(extended_resource=True).pre_filter(asks) == SKIP


def test_gates_have_the_names_of_kube_scheduler():
    assert gates_of(()) == DeviceGates()
    assert gates_of([("DRADeviceTaints", True)]) == DeviceGates(taints=True)
    assert len(GATE_NAMES) == len(DeviceGates.__slots__)


class TestBindingConditions:
    DEVICE = AllocatedDevice(
        *("r", DRIVER, "n1", "d0"),
        binding_conditions=("Ready",),
        binding_failure_conditions=("Failed",),
    )

    def failed(self, now_ms, *conditions, device=DEVICE):
        statuses = (DeviceStatus(DRIVER, "n1", "d0", None, conditions),) if conditions else ()
        allocation = Allocation((device,), allocated_ms=0)
        return has_failed(claim("a", allocation=allocation, statuses=statuses), now_ms)

    def test_conditions_must_hold_in_time(self):
        late = BINDING_TIMEOUT_MS + 1
        assert not self.failed(BINDING_TIMEOUT_MS)
        assert self.failed(late)
        assert self.failed(late, ("Ready", "False"))
        assert not self.failed(late, ("Ready", "True"))

    def test_a_failure_counts_at_once(self):
        assert self.failed(0, ("Failed", "True"))
        assert not self.failed(0, ("Failed", "False"), ("Ready", "True"))

    def test_devices_without_conditions_never_fail(self):
        plain = AllocatedDevice("r", DRIVER, "n1", "d0")
        assert not self.failed(BINDING_TIMEOUT_MS + 1, device=plain)
        assert not has_failed(claim("a"), BINDING_TIMEOUT_MS + 1)


def test_a_search_that_takes_too_long_refuses_the_node():
    """As upstream: the node is refused, and the pod is not failed."""
    every = claim("a", spec=ClaimSpec((DeviceRequest("r", "gpu", mode="All"),)))
    facts = using("p", "a")
    assert World(every).reasons(facts)[0] == (), "there is time"
    hurried = World(every, args=DynamicResourcesArgs(1e-9))
    assert hurried.reasons(facts)[0] == ("timed out trying to allocate devices",)
    assert World(every, args=DynamicResourcesArgs(0.0)).reasons(facts)[0] == (), "0 has no end"


def test_nodes_are_screened_after_changes_of_table_and_devices():
    """The screen follows nodes that are added, removed and put on the row of another."""
    world, facts = World(claim("a", 2)), using("p", "a")
    refused = ("cannot allocate all claims",)
    assert world.reasons(facts) == [(), refused]
    world.table.remove_node("n1")
    world.table.add_node(node("n3"))
    assert world.reasons(facts) == [refused, refused]
    world.devices.put_slice(slice_of("n3", "d0", "d1"))
    assert world.reasons(facts) == [refused, ()]


def test_claims_with_and_without_allocation_need_the_same_node():
    there = replace(claim("a"), allocation=replace(HERE, results=()))
    world = World(there, claim("b"), slices=[slice_of("n1", "d0"), slice_of("n2", "d0")])
    assert world.reasons(using("p", "a", "b")) == [(), ("resourceclaim not available on the node",)]
