"""Runs with extended resources that device classes serve: the claims that they make, and the end of
these claims. Cache, binder, journal, queue and checker agree on them.
"""

from dataclasses import replace

import pytest

from roadstead.config.settings import Settings
from roadstead.facts.devices import Allocation
from roadstead.facts.filter_rules import Rules
from roadstead.invariants.checker import check
from roadstead.journal import RecordKind
from roadstead.journal.files import FileJournal
from roadstead.journal.segments import Reader
from roadstead.local.run import LocalRun
from tests.builders import node, pod
from tests.devices.fleet import GPU, SERVING, asking, claim, cluster, left_by, slice_of
from tests.journal.simulated_disk import SimulatedDisk
from tests.local.device_runs import begun, committed_claims, messages, submit

HUGE = "hugepages-2Mi"
PLUGIN = node("n0", cpu=4000, others={GPU: 1})
"""A node whose device plugin serves one device."""
NODES = [node(name, cpu=4000) for name in ("n1", "n2")]
SLICES = [slice_of(each.name, "d0", "d1") for each in NODES]
ON = {"DRAExtendedResource": True}


def run_of(*claims, journal=None, nodes=NODES, gates=ON, **settings):
    facts = cluster(*claims, slices=SLICES, classes=(SERVING,))
    return begun(Settings(featureGates=gates, **settings), facts, nodes, journal)


def claims_of(run):
    """Return the claims of a run by owner."""
    return {each.owner_uid: each for each in committed_claims(run).values()}


def devices_in(claims):
    return sorted(result.id for each in claims.values() for result in each.allocation.results)


def test_pods_get_devices_until_there_are_none():
    run = run_of(nodes=[PLUGIN, *NODES])

    submit(run, **{f"p{n}": asking(f"p{n}", 1) for n in range(6)})

    assert len(run.placements()) == 5
    (message,) = messages(run).values()
    text = "0/3 nodes are available: 1 Insufficient example.com/gpu, 2 cannot allocate all claims."
    assert message.startswith(text)
    made = claims_of(run)
    on_plugin = {uid for uid, name in run.placements().items() if name == "n0"}
    assert set(made) == set(run.placements()) - on_plugin, "its pod needs no claim"
    assert len(set(devices_in(made))) == 4
    assert all([e.uid for e in each.reserved_for] == [uid] for uid, each in made.items())


def test_claims_end_with_their_pods_and_others_get_the_devices():
    run = run_of()
    submit(run, **{f"p{n}": asking(f"p{n}", 2) for n in range(3)})
    (waiting,) = {"p0", "p1", "p2"} - set(run.placements())
    gone = next(iter(run.placements()))

    run.delete_pods([gone])
    run.run(run.now_s + 60)

    assert waiting in run.placements()
    assert gone not in claims_of(run)


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_batches_decide_as_one_pod_after_another(batch):
    pods = {f"p{n}": asking(f"p{n}", 1 + n % 2, claims=("s",) if n == 3 else ()) for n in range(5)}
    pods["plain"] = pod()

    def end(size):
        run = run_of(claim("s"), batch=size)
        submit(run, **pods)
        return run.placements(), claims_of(run), messages(run)

    assert end(batch) == end(2)


def test_a_claim_of_an_earlier_attempt_is_deleted_and_created_again():
    left = left_by("p", allocation=Allocation())
    disk = SimulatedDisk()
    run = run_of(left, journal=FileJournal(disk))

    submit(run, p=asking("p", 1))
    assert not run.placements()
    assert claims_of(run) == {}
    run.run(run.now_s + 60)

    assert set(run.placements()) == {"p"}
    assert claims_of(run)["p"].key != left.key
    run.binder.end()
    assert check(list(Reader(disk).records())).violations == []


def journaled():
    """Return the records of a run with pods on claims, on a device plugin, and with both."""
    disk = SimulatedDisk()
    run = run_of(claim("s"), journal=FileJournal(disk), nodes=[PLUGIN, *NODES])
    pods = {f"p{n}": asking(f"p{n}", 1) for n in range(4)}
    submit(run, both=asking("both", 1, claims=("s",)), **pods)
    return run, disk


def test_a_binder_restores_them_from_its_journal():
    run, disk = journaled()
    run.delete_pods(["p0"])
    run.binder.close()

    again = LocalRun(run.plan, FileJournal(disk))

    restored = run.plan.storage_state()
    for change in again.binder.volumes.log:
        restored.apply(change)
    assert {e.owner_uid: e for e in restored.devices.claims.values()} == claims_of(run)


def records():
    run, disk = journaled()
    run.delete_pods(["p0"])
    run.run(run.now_s + 60)
    run.binder.end()
    return list(Reader(disk).records())


def test_the_checker_finds_a_run_right():
    checked = check(records())
    assert checked.violations == []
    assert checked.binds_checked == 5


def without_claims(record):
    if record.kind is not RecordKind.STORAGE:
        return record
    kept = [each for each in record.subject.device_claims if not each.is_for_extended_resources]
    return record._replace(subject=replace(record.subject, device_claims=tuple(kept)))


def with_fewer_devices(record):
    if record.kind is not RecordKind.STORAGE:
        return record
    claims = [
        replace(each, allocation=Allocation()) if each.is_for_extended_resources else each
        for each in record.subject.device_claims
    ]
    return record._replace(subject=replace(record.subject, device_claims=tuple(claims)))


def without_the_gate(record):
    return record._replace(subject=Rules()) if isinstance(record.subject, Rules) else record


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (without_claims, "0 claims were made for example.com/gpu"),
        (with_fewer_devices, "does not have the devices that the containers request"),
        (without_the_gate, "example.com/gpu: 0 + 1 of 0"),
    ],
)
def test_the_checker_finds_the_planted_violations(spoil, text):
    found = check([spoil(each) for each in records()])
    assert any(text in each.text for each in found.violations)


def test_as_upstream_a_pod_without_extended_resources_ignores_what_nodes_do_not_offer():
    disk = SimulatedDisk()
    run = run_of(journal=FileJournal(disk))
    submit(run, p=pod(others={HUGE: 1}), q=pod(others={HUGE: 1, GPU: 0}))
    assert set(run.placements()) == {"p", "q"}
    run.binder.end()
    assert check(list(Reader(disk).records())).violations == []

    off = run_of(gates={})
    submit(off, p=pod(others={HUGE: 1}))
    assert "2 Insufficient hugepages-2Mi" in messages(off)["default/p"]


def test_without_the_gate_nodes_must_offer_the_resource():
    run = run_of(gates={})
    submit(run, p=asking("p", 1))
    assert "2 Insufficient example.com/gpu" in messages(run)["default/p"]
