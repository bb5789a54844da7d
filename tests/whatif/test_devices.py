"""What-if questions about pods whose extended resource devices serve."""

from roadstead.whatif.changes import reduced
from roadstead.whatif.drain import drain
from roadstead.whatif.evictions import EvictionRules
from tests.actors.world import inputs_of, plan_of
from tests.builders import node
from tests.devices.fleet import GPU, SERVING, asking, claim, cluster, slice_of
from tests.whatif.questions import fit_of, running

NODES = [node("n1"), node("n2")]
SLICES = [slice_of("n1", "d0", "d1"), slice_of("n2", "d0", "d1", "d2")]


def plan(*claims):
    facts = cluster(*claims, slices=SLICES, classes=(SERVING,))
    return plan_of(cluster=facts, feature_gates={"DRAExtendedResource": True})


def test_replicas_are_counted_until_no_device_is_left():
    result = fit_of(NODES, asking("x", 1), plan=plan())
    assert result.replicas == 5
    assert result.next.message.startswith("0/2 nodes are available: 2 cannot allocate all claims.")


def test_replicas_of_a_shared_claim_are_its_consumers():
    result = fit_of(NODES, asking("x", 1, claims=("a",)), plan=plan(claim("a")))
    assert result.replicas in (1, 2), "all on the node of the claim's device"


def test_a_drained_pod_gets_devices_elsewhere():
    inputs = inputs_of(NODES, (), [running("p", "n1", asking("uid-p", 2))])
    rules = EvictionRules(with_bare=True)
    result = drain(inputs, plan(), NODES[:1], rules)
    assert (result.is_complete, result.counts["moved"]) == (True, 1)
    more = inputs_of(NODES, (), [running("p", "n1", asking("uid-p", 4))])
    assert drain(more, plan(), NODES[:1], rules).counts["pending"] == 1


def test_a_reduced_request_asks_for_fewer_devices():
    facts = asking("p", 2, 2, claims=("a",))

    three, none = reduced(facts, GPU, 3), reduced(facts, GPU, 0)

    assert [each.count for each in three.extended_requests] == [2, 1]
    assert (none.extended_requests, [each.name for each in none.device_claims]) == ((), ["a"])
