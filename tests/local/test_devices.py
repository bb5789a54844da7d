"""Runs with claims of devices: cache, binder, journal, queue and checker agree on them."""

from dataclasses import replace
from zlib import crc32

import pytest

from roadstead.config.settings import Settings
from roadstead.devices.ahead import DevicesAhead
from roadstead.devices.state import DeviceState, reserved
from roadstead.facts.devices import AllocatedDevice, Allocation, Consumer
from roadstead.invariants.checker import check
from roadstead.journal import RecordKind
from roadstead.journal.files import FileJournal
from roadstead.journal.segments import Reader
from roadstead.local.run import LocalRun
from roadstead.run import RunPlan
from roadstead.storage import StorageChange, StorageState
from tests.builders import node, pod, require, term
from tests.devices.fleet import DRIVER, claim, cluster, owned, slice_of, using, with_template
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_files import opened
from tests.local.device_runs import begun, committed_claims, messages, submit

NODES = [node(name, cpu=4000, memory=1 << 34, pods=10) for name in ("n1", "n2")]
SLICES = [slice_of(each.name, "d0", "d1") for each in NODES]


def run_of(*claims, journal=None, **settings):
    return begun(Settings(**settings), cluster(*claims, slices=SLICES), NODES, journal)


def test_pods_get_devices_until_there_are_none():
    names = [f"p{n}" for n in range(5)]
    run = run_of(*(owned(f"c-{name}", name) for name in names))

    submit(run, **{name: with_template(name, f"c-{name}") for name in names})

    assert len(run.placements()) == 4
    (message,) = messages(run).values()
    assert message.startswith("0/2 nodes are available: 2 cannot allocate all claims.")
    used = [
        r.id for c in committed_claims(run).values() if c.allocation for r in c.allocation.results
    ]
    assert len(set(used)) == 4
    bound = committed_claims(run)["default/c-p0"]
    assert [each.uid for each in bound.reserved_for] == ["p0"]


def test_a_shared_claim_is_allocated_once_and_names_all_its_pods():
    run = run_of(claim("shared", 2))

    submit(run, p=using("p", "shared"), q=using("q", "shared"), r=using("r", "shared"))

    assert len(set(run.placements().values())) == 1, "all where the devices are"
    (shared,) = committed_claims(run).values()
    assert [each.uid for each in shared.reserved_for] == ["p", "q", "r"]


def full_claim(room):
    """Return an allocated claim that can have `room` more consumers."""
    others = tuple(Consumer("pods", f"x{n}", f"uid-x{n}") for n in range(256 - room))
    return replace(claim("shared"), allocation=allocated_here(), reserved_for=others)


def allocated_here():
    terms = (term(fields=(require("metadata.name", "In", "n1"),)),)
    return Allocation((AllocatedDevice("r", DRIVER, "n1", "d0"),), node_terms=terms)


def test_the_257th_consumer_of_a_claim_fails_and_waits_until_one_has_ended():
    disk = SimulatedDisk()
    run = run_of(full_claim(2), journal=FileJournal(disk))

    submit(run, **{name: using(name, "shared") for name in "pqr"})

    assert len(run.placements()) == 2
    ((waiting, text),) = messages(run).items()
    assert text == (
        'running PreBind plugin "DynamicResources": add reservation to ResourceClaim '
        'default/shared: ResourceClaim.resource.k8s.io "shared" is invalid: status.reservedFor: '
        "Too many: 257: must have at most 256 items"
    )
    assert len(committed_claims(run)["default/shared"].reserved_for) == 256

    run.delete_pods([next(iter(run.placements()))])
    run.run(run.now_s + 60)

    assert waiting.removeprefix("default/") in run.placements()
    assert len(committed_claims(run)["default/shared"].reserved_for) == 256
    run.binder.end()
    assert check(list(Reader(disk).records())).violations == []


def test_devices_of_deleted_pods_are_free_for_those_that_wait():
    names = [f"p{n}" for n in range(6)]
    run = run_of(*(owned(f"c-{name}", name) for name in names))
    submit(run, **{name: with_template(name, f"c-{name}") for name in names})
    waiting = set(names) - set(run.placements())

    run.delete_pods(["p0", "p1"])
    run.run(run.now_s + 60)

    assert waiting <= set(run.placements())
    assert not committed_claims(run).keys() & {"default/c-p0", "default/c-p1"}


def test_a_shared_claim_ends_with_its_last_consumer():
    run = run_of(claim("shared", 2))
    submit(run, p=using("p", "shared"), q=using("q", "shared"))

    run.delete_pods(["p"])
    assert committed_claims(run)["default/shared"].allocation is not None
    run.delete_pods(["q"])
    assert committed_claims(run)["default/shared"] == claim("shared", 2)


def test_a_pod_whose_claim_was_not_made_is_gated():
    run = run_of()
    submit(run, p=with_template("p", None))
    assert not run.placements()
    assert not run.is_busy


def test_a_claim_that_blocks_its_only_pod_is_deallocated_and_allocated_again():
    elsewhere = replace(claim("a"), allocation=Allocation(node_terms=()))
    disk = SimulatedDisk()
    run = run_of(elsewhere, claim("b"), journal=FileJournal(disk))

    submit(run, p=using("p", "a"))
    assert committed_claims(run)["default/a"].allocation is None
    run.run(run.now_s + 60)

    assert set(run.placements()) == {"p"}
    (result,) = committed_claims(run)["default/a"].allocation.results
    assert result.device == "d0"
    run.binder.end()
    assert check(list(Reader(disk).records())).violations == []


def test_a_claim_that_others_reserve_stays():
    elsewhere = Allocation(node_terms=())
    run = run_of(claim("a", allocation=elsewhere, reserved_for=(Consumer("pods", "x", "x"),)))
    submit(run, p=using("p", "a"))
    (message,) = messages(run).values()
    assert "2 resourceclaim not available on the node. still not schedulable" in message


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_batches_decide_as_one_pod_after_another(batch):
    names = [f"p{n}" for n in range(6)]

    def placements(size):
        run = run_of(*(owned(f"c-{name}", name) for name in names), batch=size)
        submit(run, **{name: with_template(name, f"c-{name}") for name in names})
        return run.placements(), committed_claims(run)

    assert placements(batch) == placements(2)


def test_profiles_without_the_plugin_ignore_claims():
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- plugins:\n    multiPoint:\n      disabled:\n      - name: DynamicResources\n"
    )
    run = LocalRun(RunPlan(config_text=text, cluster=cluster(claim("a", 9), slices=SLICES)))
    run.plan = RunPlan(cluster=cluster(claim("a", 9), slices=SLICES))
    run.add_nodes(NODES)

    submit(run, p=using("p", "a"))

    assert set(run.placements()) == {"p"}
    assert committed_claims(run)["default/a"].allocation is None


def test_the_journal_has_the_claims_and_the_checker_finds_them_right():
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    names = [f"p{n}" for n in range(5)]
    run = run_of(*(owned(f"c-{name}", name) for name in names), claim("s"), journal=journal)
    pods = {name: with_template(name, f"c-{name}") for name in names}
    submit(run, a=using("a", "s"), b=using("b", "s"), **pods)
    run.delete_pods(["p0", "a"])
    run.run(run.now_s + 60)

    journal.end()
    records = list(Reader(disk).records())
    checked = check(records)

    assert checked.violations == []
    assert checked.binds_checked == 6
    stored = [each for each in records if each.kind is RecordKind.STORAGE]
    assert all(each.subject.device_claims or each.subject.removed_claims for each in stored)


def test_a_binder_restores_claims_from_its_journal():
    disk = SimulatedDisk()
    names = ["p0", "p1", "p2"]
    claims = (*(owned(f"c-{name}", name) for name in names), claim("s"))
    run = run_of(*claims, journal=FileJournal(disk))
    pods = {name: with_template(name, f"c-{name}") for name in names}
    submit(run, a=using("a", "s"), **pods)
    run.delete_pods(["p0"])
    run.binder.close()

    again = LocalRun(run.plan, FileJournal(disk))

    restored = run.plan.storage_state()
    for change in again.binder.volumes.log:
        restored.apply(change)
    assert restored.devices.claims == committed_claims(run)


def with_devices(change, name):
    """Return a change whose claims have another device."""
    return replace(change, device_claims=tuple(_moved(each, name) for each in change.device_claims))


def _moved(found, name):
    (result,) = found.allocation.results
    results = (replace(result, pool="n1", device=name),)
    return replace(found, allocation=replace(found.allocation, results=results))


def unreserved(change):
    claims = tuple(replace(each, reserved_for=()) for each in change.device_claims)
    return replace(change, device_claims=claims)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda claims: replace(claims, device_claims=()), "is not allocated"),
        (lambda claims: with_devices(claims, "d9"), "which is not there"),
        (lambda claims: with_devices(claims, "d0"), "is in claims"),
        (unreserved, "does not name the pod"),
    ],
)
def test_the_checker_finds_claims_that_are_wrong(spoil, text):
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    names = ["p0", "p1", "p2"]
    run = run_of(*(owned(f"c-{name}", name) for name in names), journal=journal)
    submit(run, **{name: with_template(name, f"c-{name}") for name in names})
    journal.end()
    spoiled = [
        each if each.kind is not RecordKind.STORAGE else each._replace(subject=spoil(each.subject))
        for each in Reader(disk).records()
    ]
    assert any(text in each.text for each in check(spoiled).violations)


@pytest.mark.parametrize("seed", range(3))
def test_batches_with_several_claims_decide_as_one_pod_after_another(seed):
    """Claims of several sizes, a shared one and pods without claims, until devices run out."""
    sizes = [1 + (seed + number) % 2 for number in range(5)]
    claims = [
        claim(f"c-p{n}", count, owner_uid=f"p{n}", owner_kind="Pod")
        for n, count in enumerate(sizes)
    ]
    pods = {f"p{n}": with_template(f"p{n}", f"c-p{n}") for n in range(5)}
    pods |= {"s": using("s", "shared"), "t": using("t", "shared"), "plain": pod()}
    names = sorted(pods, key=lambda name: crc32(f"{seed}/{name}".encode()))
    ends = []
    for batch in (1, 64):
        run = run_of(claim("shared"), *claims, batch=batch)
        submit(run, **{name: pods[name] for name in names})
        ends.append((run.placements(), committed_claims(run), messages(run)))
    assert ends[0] == ends[1]


def test_allocations_ahead_of_a_batch_are_undone():
    devices = DeviceState(cluster(claim("a"), claim("b", 2), slices=SLICES).devices)
    ahead, before = DevicesAhead(devices), dict(devices.claims)
    n1, facts = NODES[0], using("p", "a")

    assert not ahead.reserve(using("p", "none"), n1), "there is no such claim"
    assert ahead.reserve(facts, n1)
    assert ahead.concerns(facts), "its claim is in flight"
    assert not ahead.concerns(using("q", "b"))
    assert not ahead.reserve(using("q", "b"), n1), "one device is left"
    ahead.undo()
    assert devices.claims == before
    assert ahead.reserve(using("q", "b"), n1)


def test_an_allocation_of_the_cache_equal_to_the_one_ahead_is_not_undone():
    devices = DeviceState(cluster(claim("a"), claim("b"), claim("c"), slices=SLICES).devices)
    storage = StorageState(devices=devices)
    n1 = NODES[0]
    made = []
    for name in ("a", "b"):
        assert storage.ahead.reserve(using(f"p-{name}", name), n1)
        made.append(devices.claims[f"default/{name}"])
    changes = devices.allocator.nodes.version
    consumed = reserved(made[0], Consumer("pods", "p-a", "p-a"))

    storage.catch_up([*(StorageChange(device_claims=(each,)) for each in (made[0], consumed))])

    assert devices.claims["default/a"] == consumed
    assert devices.claims["default/b"].allocation is None, "the cache did not allocate it"
    storage.catch_up([StorageChange(device_claims=(made[1],))])
    assert devices.claims["default/b"] == made[1]
    assert storage.ahead.reserve(using("q", "c"), NODES[1])
    storage.catch_up([StorageChange(device_claims=(devices.claims["default/c"],))])
    assert devices.allocator.nodes.version == changes + 3, "only b was undone and made again"
