"""Pods of simulated runs get claims of devices from templates, and the claims end with them."""

from dataclasses import replace

from roadstead.devices.claim_maker import ClaimMaker
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import DevicesFacts
from roadstead.facts.pod import PodClaim, PodIdentity
from roadstead.run import RunPlan
from roadstead.simulator.virtual_cluster import VirtualCluster
from tests.builders import node, pod
from tests.devices.fleet import CLASS, claim, slice_of
from tests.simulator.plays import plan_of, played

TEMPLATES = (("default/one", claim("c").spec),)
FACTS = pod(cpu=100, device_claims=(PodClaim("gpu", template_name="one"),))
N1 = node("n1", cpu=4000, pods=10)


def cluster(*claims):
    slices = (slice_of("n1", "d0", "d1"),)
    return ClusterFacts(devices=DevicesFacts(slices, (CLASS,), claims, templates=TEMPLATES))


def identity(name):
    return PodIdentity(f"uid-{name}", "default", name)


def claims_of(found):
    return {each.key: each for each in found.facts().devices.claims}


def test_each_pod_gets_a_claim_and_a_device_of_its_own():
    found = VirtualCluster(RunPlan(cluster=cluster()))
    found.add_nodes([N1])

    found.submit([(identity(name), FACTS) for name in "abc"], 0.0)
    found.run(0.0)

    assert [found.node_of(f"uid-{name}") for name in "abc"].count("n1") == 2
    made = claims_of(found)
    assert set(made) == {"default/a-gpu", "default/b-gpu", "default/c-gpu"}
    devices = [
        r.device for each in made.values() if each.allocation for r in each.allocation.results
    ]
    assert sorted(devices) == ["d0", "d1"]


def test_claims_end_with_their_pods_and_wake_those_that_wait():
    found = VirtualCluster(RunPlan(cluster=cluster()))
    found.add_nodes([N1])
    found.submit([(identity(name), FACTS) for name in "abc"], 0.0)
    found.run(0.0)

    found.remove([(identity("a"), FACTS)], 1.0)
    found.run(60.0)

    assert found.node_of("uid-c") == "n1"
    assert set(claims_of(found)) == {"default/b-gpu", "default/c-gpu"}


def test_a_run_uses_devices_again_and_has_no_claims_in_the_end():
    arrivals = [(at_s, f"p{at_s}", FACTS, 10.0) for at_s in range(6)]
    plan = plan_of([N1], arrivals, cluster=cluster(), horizon_s=200.0)

    heard = played(plan)[0]

    assert len(heard.of("bound")) == 6
    assert len(heard.of("done")) == 6


def test_an_explanation_frees_the_devices_of_the_pod():
    found = VirtualCluster(RunPlan(cluster=cluster()))
    found.add_nodes([N1])
    found.submit([(identity(name), FACTS) for name in "ab"], 0.0)
    found.run(0.0)

    explanation = found.explain((identity("a"), FACTS))

    assert explanation.as_recorded()["feasible"] == ["n1"]


def test_a_claim_without_its_template_is_not_made():
    unknown = replace(FACTS, device_claims=(PodClaim("gpu", template_name="none"),))
    ((_, facts),), made = ClaimMaker(TEMPLATES).with_claims([(identity("a"), unknown)])

    assert made == ()
    assert facts.device_claims[0].generated is None


def test_named_claims_are_consumed_by_each_pod_itself():
    using = replace(FACTS, device_claims=(PodClaim("gpu", claim_name="shared"),))
    found = VirtualCluster(RunPlan(cluster=cluster(claim("shared"))))
    found.add_nodes([N1])

    found.submit([(identity(name), using) for name in "ab"], 0.0)
    found.run(60.0)

    shared = claims_of(found)["default/shared"]
    assert [each.uid for each in shared.reserved_for] == ["uid-a", "uid-b"]
