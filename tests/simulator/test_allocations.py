"""The tables `devices` and `allocations` of a run: who has which device when, and their check."""

import json
from dataclasses import replace
from types import SimpleNamespace
from weakref import WeakSet

import pytest

from roadstead.api.run_check import check_folder
from roadstead.api.run_folder import write_summary
from roadstead.api.run_query import RunQuery
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import (
    AllocatedDevice,
    Allocation,
    ClaimSpec,
    Consumer,
    CounterSetFacts,
    DeviceCapacity,
    DeviceFacts,
    DeviceRequest,
    DevicesFacts,
)
from roadstead.facts.pod import PodClaim, PodIdentity
from roadstead.simulator.allocation_rows import AllocationRows
from roadstead.simulator.scenario import DecisionDelay, InitialPod, PodLifecycle
from tests.builders import node, pod
from tests.devices.fleet import CLASS, DRIVER, GPU, SERVING, asking, claim, slice_of
from tests.simulator.plays import plan_of
from tests.simulator.test_repeated_runs import play_into

ONE = pod(device_claims=(PodClaim("gpu", template_name="one"),))
SHARED = pod(device_claims=(PodClaim("own", claim_name="shared"),))
WANTED = DeviceRequest("r", "gpu")
HEADS = "time_us // 1000000, what, claim, pod, node, device, share"


def devices(*claims, slices=None, classes=(CLASS,), wanted=WANTED):
    slices = (slice_of("n1", "d0", "d1"),) if slices is None else slices
    templates = (("default/one", ClaimSpec((wanted,))),)
    return ClusterFacts(devices=DevicesFacts(slices, classes, claims, templates=templates))


def played(folder, arrivals, cluster, *, gates=(), **more):
    """Play a plan; return the rows of its allocations, after its tables were checked."""
    settings = {"featureGates": dict.fromkeys(gates, True)}
    plan = plan_of([node("n1")], arrivals, cluster=cluster, settings=settings, **more)
    write_summary(folder, play_into(folder, plan))
    assert check_folder(folder).violations == ()
    return list(RunQuery(folder).execute(f"SELECT {HEADS} FROM allocations").rows)


def asked(folder, sql):
    return list(RunQuery(folder).execute(sql).rows)


def test_a_device_is_allocated_with_the_bind_and_freed_with_the_end(tmp_path):
    rows = played(tmp_path, [(1.0, "a", ONE, 5.0)], devices())

    assert rows == [
        (1, "allocated", "default/a-gpu", 0, "n1", "d0", None),
        (1, "reserved", "default/a-gpu", 0, "n1", None, None),
        (6, "unreserved", "default/a-gpu", 0, None, None, None),
        (6, "deallocated", "default/a-gpu", 0, None, "d0", None),
    ]
    assert asked(tmp_path, "SELECT claims FROM classes") == [("*-gpu",)]
    assert asked(tmp_path, "SELECT DISTINCT pool, slice, node FROM devices") == [("n1", "n1", "n1")]


def test_a_claim_of_several_pods_keeps_its_device_until_the_last_one_ends(tmp_path):
    arrivals = [(1.0, "a", SHARED, 5.0), (2.0, "b", SHARED, 9.0)]

    rows = played(tmp_path, arrivals, devices(claim("shared")))

    assert [row[:4] for row in rows] == [
        (1, "allocated", "default/shared", 0),
        (1, "reserved", "default/shared", 0),
        (2, "reserved", "default/shared", 1),
        (6, "unreserved", "default/shared", 0),
        (11, "unreserved", "default/shared", 1),
        (11, "deallocated", "default/shared", 1),
    ]


def test_a_preempted_pod_frees_its_device(tmp_path):
    big = pod(cpu=3000)
    large, urgent = replace(big, device_claims=ONE.device_claims), replace(big, priority=10)
    arrivals = [(1.0, "a", large, None), (5.0, "b", urgent, None)]

    rows = played(tmp_path, arrivals, devices())

    assert [row[:4] for row in rows if row[0] == 5] == [
        (5, "unreserved", "default/a-gpu", 0),
        (5, "deallocated", "default/a-gpu", 0),
    ]
    assert asked(tmp_path, "SELECT ending FROM pods WHERE number = 0") == [("preempted",)]
    sql = "SELECT pod, nominated, victims FROM attempts WHERE outcome = 'pending'"
    assert asked(tmp_path, sql) == [(1, "n1", "default/a")]


def test_claims_for_extended_resources_are_recorded_under_their_names(tmp_path):
    facts = replace(asking("x", 1), claims_as=None)

    rows = played(
        tmp_path,
        [(1.0, "a", facts, 5.0)],
        devices(classes=(SERVING,)),
        gates=["DRAExtendedResource"],
    )

    assert [row[1] for row in rows] == ["allocated", "reserved", "unreserved", "deallocated"]
    assert rows[0][2].startswith("default/a-extended-resources-")
    assert asked(tmp_path, "SELECT claims, from_devices FROM classes") == [("", GPU)]


@pytest.mark.parametrize("is_on", [False, True])
def test_counters_of_slices_bound_the_devices_that_consume_them(tmp_path, is_on):
    consumes = (CounterSetFacts("die", (("slots", "4"),)),)
    found = replace(
        slice_of("n1"),
        devices=tuple(DeviceFacts(name, consumes=consumes) for name in ("d0", "d1")),
        shared_counters=(CounterSetFacts("die", (("slots", "7"),)),),
    )
    gates = ["DRAPartitionableDevices"] if is_on else []

    rows = played(tmp_path, [(1.0, "a,b", ONE, None)], devices(slices=(found,)), gates=gates)

    assert [row[1] for row in rows].count("allocated") == (1 if is_on else 0)
    counters = [json.loads(text) for (text,) in asked(tmp_path, "SELECT counters FROM devices")]
    assert counters == [{"die/slots": "7"}] * 2


def test_shares_of_a_device_are_rows_of_their_own(tmp_path):
    shared = DeviceFacts("d0", capacity=(DeviceCapacity("memory", "80Gi"),), allows_several=True)
    slices = (replace(slice_of("n1"), devices=(shared,)),)
    wanted = replace(WANTED, capacity=(("memory", "30Gi"),))

    rows = played(
        tmp_path,
        [(1.0, "a,b,c", ONE, None)],
        devices(slices=slices, wanted=wanted),
        gates=["DRAConsumableCapacity"],
    )

    allocated = [row for row in rows if row[1] == "allocated"]
    assert [(row[5], bool(row[6])) for row in allocated] == [("d0", True)] * 2
    assert asked(tmp_path, "SELECT DISTINCT consumed FROM allocations WHERE share IS NOT NULL") == [
        ('{"memory": "30Gi"}',)
    ]


def test_a_decision_that_takes_time_reserves_before_the_bind(tmp_path):
    delay = DecisionDelay(pod_us=3_000_000)
    rows = played(tmp_path, [(1.0, "a,b", ONE, 20.0)], devices(), decision=delay)

    assert [row[:2] for row in rows if row[1] == "reserved"] == [(1, "reserved"), (4, "reserved")]
    assert asked(tmp_path, "SELECT bound_us FROM pods ORDER BY number") == [
        (4_000_000,),
        (7_000_000,),
    ]


def test_claims_of_pods_that_run_at_the_start_end_with_them(tmp_path):
    """The manifests name a pod by its UID, by which it must be known in the run, too."""
    allocation = Allocation((AllocatedDevice("r", DRIVER, "n1", "d0"),))
    mine = claim("shared", allocation=allocation, reserved_for=(Consumer("pods", "old", "u-1"),))
    old = InitialPod(PodIdentity("u-1", "default", "old"), SHARED, "n1", PodLifecycle())

    rows = played(tmp_path, [(1.0, "a", ONE, 5.0)], devices(mine), pods=(old,))

    assert rows[:2] == [
        (0, "allocated", "default/shared", 0, "n1", "d0", None),
        (0, "reserved", "default/shared", 0, "n1", None, None),
    ]
    assert rows[2][2:6] == ("default/a-gpu", 1, "n1", "d1")
    assert asked(tmp_path, "SELECT uid FROM pods WHERE number = 0") == [("u-1",)]


def test_pods_whose_last_claim_is_freed_are_forgotten():
    class Uid(str):
        """A text to which there can be weak references."""

    rows, kept, seen = AllocationRows(), WeakSet(), []
    world = SimpleNamespace(now_us=7, cluster=SimpleNamespace(node_of=lambda uid: "n1"))
    for number in range(3):
        uid = Uid(f"u{number}")
        kept.add(uid)
        world.pods = {uid: SimpleNamespace(number=number)}
        used = [
            replace(claim(name), reserved_for=(Consumer("pods", "p", uid),)) for name in ("a", "b")
        ]
        changes = (used, ()), ((), ["default/a"]), ((), ["default/b"])
        for step, (changed, removed) in enumerate(changes):
            seen += [row[1:5] for row in rows.rows_of_change(world, changed, removed) if step]
        del uid, used, changes, changed, removed
        world.pods = {}

    assert seen == [
        ("unreserved", f"default/{name}", number, None) for number in range(3) for name in "ab"
    ]
    assert len(kept) == 0
