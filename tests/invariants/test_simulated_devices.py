"""The rules of devices accept what can happen in a simulated run, and find every planted fault."""

from dataclasses import replace

import pytest

from roadstead.invariants.simulated_rows import AllocationRow, DeviceRow, PodRow, RunRows
from roadstead.invariants.simulated_run import check_run

G0, G1, G2 = (("gpu.example.com", "n1", name) for name in ("g0", "g1", "g2"))
DEVICES = (
    DeviceRow(G0, "s", "n1", {"memory": "80Gi"}, {"die/slots": "4"}, {"die/slots": "7"}),
    DeviceRow(G1, "s", "n1", {"memory": "80Gi"}, {"die/slots": "4"}, {"die/slots": "7"}),
    DeviceRow(G2, "other", None),
)


def pod_row(number, bound, ended=None, *, node="n1", owner="jobs"):
    name = f"p{number}"
    times = bound, bound, ended, None if ended is None else "done"
    return PodRow(number, f"default/{name}", 0, 0, *times, node, "default", name, owner)


def given(time_us, number, device=G0, **more):
    """Return the rows of a claim of a pod's own that gets a device."""
    claim = f"default/p{number}-gpu"
    allocated = AllocationRow(time_us, "allocated", claim, number, device, "gpu", **more)
    return allocated, AllocationRow(time_us, "reserved", claim, number)


def freed(time_us, number, device=G0, **more):
    claim = f"default/p{number}-gpu"
    deallocated = AllocationRow(time_us, "deallocated", claim, number, device, "gpu", **more)
    return AllocationRow(time_us, "unreserved", claim, number), deallocated


P0, P1 = pod_row(0, 10, 50), pod_row(1, 50)
ROWS = (*given(10, 0), *freed(50, 0), *given(50, 1))
SHARE = {"share": "share-1", "consumed": {"memory": "50Gi"}}


def found(rows=ROWS, pods=(P0, P1), devices=DEVICES, claims=("*-gpu",)):
    tables = RunRows(
        pods, {0: {}}, (), (), (), claims={0: claims}, devices=devices, allocations=rows
    )
    of_devices = [each for each in check_run(tables) if each.rule == "devices"]
    return [f"{each.subject}: {each.text}" for each in of_devices]


def test_a_device_goes_from_one_claim_to_another_at_one_time():
    assert found() == []


def test_devices_under_admin_access_may_be_in_several_claims():
    rows = (*given(10, 0), *given(20, 1, has_admin_access=True))

    assert found(rows, (pod_row(0, 10), pod_row(1, 20))) == []


def test_shares_of_a_device_are_several_up_to_its_capacity():
    half = {"share": "share-1", "consumed": {"memory": "40Gi"}}
    rows = (*given(10, 0, **half), *given(20, 1, **half))
    pods = pod_row(0, 10), pod_row(1, 20)

    assert found(rows, pods) == []
    assert found((*rows[:2], *given(20, 1, **SHARE)), pods) == [
        "gpu.example.com/n1/g0: claim default/p1-gpu at 20 us: capacity memory is overdrawn"
    ]


def test_a_claim_that_several_pods_share_ends_with_the_last():
    claim, pods = "default/shared", (pod_row(0, 10, 50), pod_row(1, 20, 60))
    rows = [
        AllocationRow(10, "allocated", claim, 0, G0, "gpu"),
        AllocationRow(10, "reserved", claim, 0),
        AllocationRow(20, "reserved", claim, 1),
        AllocationRow(50, "unreserved", claim, 0),
        AllocationRow(60, "unreserved", claim, 1),
        AllocationRow(60, "deallocated", claim, 1, G0, "gpu"),
    ]

    assert found(rows, pods, claims=("shared",)) == []
    assert found(rows[:-1], pods, claims=("shared",)) == [
        f"{claim}: keeps device gpu.example.com/n1/g0 at 60 us, after its last pod"
    ]


def test_no_claim_is_reserved_for_more_than_256_pods():
    pods = tuple(pod_row(number, 10) for number in range(257))
    rows = [AllocationRow(10, "reserved", "default/shared", number) for number in range(257)]

    assert found(rows[:-1], pods[:-1], claims=("shared",)) == []
    assert found(rows, pods, claims=("shared",)) == [
        "default/shared: is reserved for more than 256 pods at 10 us"
    ]


def test_a_pod_that_runs_at_the_start_may_lack_its_claims():
    assert found((), (pod_row(0, 0, owner=None),)) == []
    assert found((), (pod_row(0, 0),)) != []


def test_an_allocation_without_pods_is_kept():
    assert found((AllocationRow(0, "allocated", "default/mine", None, G2, "gpu"),), ()) == []


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ((*given(10, 0), *given(50, 1), *freed(50, 0)), "is in claims default/p0-gpu and default"),
        ((*given(10, 0, **SHARE), *given(50, 1), *freed(50, 0, **SHARE)), "is in claims default/p"),
        ((*given(10, 0), *freed(40, 0), *given(50, 1)), "freed of default/p0 at 40 us, which ende"),
        ((*given(10, 0), *given(50, 1, G2)), "is reserved for default/p0, which ended at 50 us"),
        ((*given(10, 0), freed(50, 0)[0], *given(60, 1, G2)), "keeps device gpu.example.com/n1/g0"),
        ((*given(10, 0), *freed(50, 0)[::-1], *given(50, 1)), "at 50 us, while a pod reserves it"),
        ((*given(10, 0), *freed(50, 0, G1), *given(50, 1, G2)), "which it does not have"),
        ((*ROWS[:4], ROWS[4]), "is bound at 50 us without its claim default/p1-gpu"),
        ((*ROWS[:4], *given(60, 1)), "is bound at 50 us without its claim default/p1-gpu"),
        ((*given(10, 0, G1), *given(50, 1), *freed(50, 0, G1)), "counter die/slots of slice s is"),
        ((*ROWS, *given(60, 0, G2)), "at 60 us, when it does not exist"),
        ((*ROWS, *given(60, 9, G2)), "is reserved for pod 9, which is unknown"),
        ((*ROWS, *freed(60, 9, G2)), "is freed of pod 9 at 60 us, which does not reserve it"),
        ((*ROWS[:4], *given(50, 1, ("d", "n1", "g9"))), "has device d/n1/g9, which is unknown"),
        ((*ROWS, AllocationRow(40, "reserved", "default/x")), "a row of 40 us is after 50 us"),
        ((*ROWS, AllocationRow(50, "lent", "default/x")), 'has a row of the unknown type "lent"'),
    ],
)
def test_a_planted_fault_is_found(rows, text):
    assert any(text in each for each in found(rows)), found(rows)


def test_the_node_of_a_pod_reaches_its_devices():
    assert found(pods=(P0, replace(P1, node="n2"))) == [
        "default/p1-gpu: default/p1 is on n2, device gpu.example.com/n1/g0 is on n1"
    ]
