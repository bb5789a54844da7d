"""What-if questions about pods whose extended resource devices serve, or that have claims."""

from dataclasses import replace

from roadstead.whatif.changes import reduced
from roadstead.whatif.drain import drain
from roadstead.whatif.evictions import EvictionRules
from roadstead.whatif.grow import grow
from roadstead.whatif.sandbox import Sandbox
from tests.actors.world import identity, inputs_of, plan_of
from tests.builders import node
from tests.devices.fleet import (
    GPU,
    SERVING,
    asking,
    claim,
    cluster,
    owned,
    slice_of,
    using,
    with_template,
)
from tests.whatif.questions import fit_of, running
from tests.whatif.test_grow import catalog, shape

NODES = [node("n1"), node("n2")]
SLICES = [slice_of("n1", "d0", "d1"), slice_of("n2", "d0", "d1", "d2")]


def plan(*claims):
    facts = cluster(*claims, slices=SLICES, classes=(SERVING,))
    return plan_of(cluster=facts, featureGates={"DRAExtendedResource": True})


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


def test_each_replica_has_its_own_claims_of_templates():
    templated = with_template("uid-x", "x-g", cpu=100)
    of_x = plan(owned("x-g", "uid-x"))
    result = fit_of(NODES, templated, plan=of_x)
    assert result.replicas == 5
    assert result.next.message.startswith("0/2 nodes are available: 2 cannot allocate all claims.")
    given = inputs_of(NODES, [(identity("x"), templated)])
    assert Sandbox(given, of_x).copy_of(given.pending[0])[1].device_claims[0].generated == "x+1-g"


def test_a_drained_pod_gets_a_new_claim_from_its_template():
    rules = EvictionRules(with_bare=True)
    of_p = plan(owned("p-g", "uid-p", count=2))
    inputs = inputs_of(NODES, (), [running("p", "n1", with_template("uid-p", "p-g"))])
    assert drain(inputs, of_p, NODES[:1], rules).counts["moved"] == 1


def test_added_nodes_have_devices_only_by_slices():
    templated = with_template("uid-x", "x-g", cpu=100)
    pending = [(identity("x"), templated)]
    result = grow(
        inputs_of(NODES[:1], pending), plan(owned("x-g", "uid-x", count=4)), catalog(shape("small"))
    )
    assert [each.pod for each in result.pending] == ["default/x"]


def taken(sandbox):
    """Return how many devices another pod finds: of five, those that no claim has."""
    copies = [sandbox.copy_of((identity("x"), with_template("uid-x", "x-g"))) for _ in range(5)]
    placed = sandbox.schedule(copies).placed
    sandbox.remove(who.uid for who, _ in copies)
    return 5 - len(placed)


def sandbox_with(*pods):
    """Return a sandbox with pending pods, each with a claim from a template; p of two devices."""
    claims = [owned("x-g", "uid-x"), owned("p-g", "uid-p", count=2), claim("shared")]
    return Sandbox(inputs_of(NODES, pods), plan(*claims))


def test_a_pod_that_is_put_back_has_its_devices_again():
    pod = identity("p"), with_template("uid-p", "p-g")
    sandbox = sandbox_with(pod)
    (uid, name), *_ = sandbox.result_of_inputs.placed.items()
    assert taken(sandbox) == 2

    sandbox.remove([uid])
    assert taken(sandbox) == 0
    sandbox.restore_removed([(pod, name)])
    assert taken(sandbox) == 2
    (again,) = sandbox.pods_on(name)
    sandbox.remove([again[0].uid])
    assert taken(sandbox) == 0


def test_pods_that_are_put_back_share_their_claim_again():
    pods = [(identity(each), using(f"uid-{each}", "shared")) for each in ("a", "b")]
    sandbox = sandbox_with(*pods)
    node_of = dict(sandbox.result_of_inputs.placed)
    assert taken(sandbox) == 1

    for gone in ([pods[0]], pods):
        sandbox = sandbox_with(*pods)
        sandbox.remove(who.uid for who, _ in gone)
        assert taken(sandbox) == (0 if len(gone) == 2 else 1)
        sandbox.restore_removed([(each, node_of[each[0].uid]) for each in gone])
        assert taken(sandbox) == 1


def test_a_preempted_pod_comes_back_with_its_devices():
    low = identity("p"), with_template("uid-p", "p-g", cpu=3000)
    sandbox = sandbox_with(low)
    high = identity("high"), replace(with_template("uid-x", "x-g", cpu=4000), priority=9)
    sandbox.change_nodes(
        [
            replace(each, unschedulable=True)
            for each in NODES
            if each.name not in sandbox.result_of_inputs.placed.values()
        ]
    )
    copy = sandbox.copy_of(high)
    scheduled = sandbox.schedule([copy])
    assert [each.uid for each in scheduled.preempted] == [low[0].uid]

    sandbox.remove([copy[0].uid])
    sandbox.change_nodes(NODES)
    assert taken(sandbox) == 0
    sandbox.restore_preempted(scheduled.preempted)
    assert taken(sandbox) == 2
