"""Runs with binding conditions of devices (decision 62): nothing waits for them; claims whose
binding failed are given up.
"""

from dataclasses import replace

from roadstead.config.settings import Settings
from roadstead.facts.devices import AllocatedDevice, Allocation, DeviceFacts, DeviceStatus
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.invariants.checker import check
from roadstead.journal.files import FileJournal
from roadstead.journal.segments import Reader
from tests.builders import node
from tests.devices.fleet import DRIVER, claim, cluster, slice_of, using
from tests.journal.simulated_disk import SimulatedDisk
from tests.local.device_runs import begun, submit

CONDITIONS = {"binding_conditions": ("Attached",), "binding_failure_conditions": ("Failed",)}
SLICE = replace(slice_of("n1"), devices=(DeviceFacts("d0", **CONDITIONS),))
ON_N1 = (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("n1",)),)),)
HERE = Allocation(
    (AllocatedDevice("r", DRIVER, "n1", "d0", **CONDITIONS),), node_terms=ON_N1, allocated_ms=0
)


def run_of(*claims, journal=None, is_on=True):
    settings = Settings(featureGates={"DRADeviceBindingConditions": is_on})
    return begun(settings, cluster(*claims, slices=[SLICE]), [node("n1")], journal)


def only_claim(run):
    (found,) = run.state.volumes.assumed_claims.storage.devices.claims.values()
    return found


def status(*conditions):
    return (DeviceStatus(DRIVER, "n1", "d0", None, conditions),)


def test_a_pod_is_bound_without_waiting_for_conditions():
    disk = SimulatedDisk()
    run = run_of(claim("a"), journal=FileJournal(disk))

    submit(run, p=using("p", "a"), q=using("q", "a"))

    assert set(run.placements()) == {"p", "q"}
    (result,) = only_claim(run).allocation.results
    assert (result.binding_conditions, result.binding_failure_conditions) == (
        ("Attached",),
        ("Failed",),
    )
    run.binder.end()
    assert check(list(Reader(disk).records())).violations == []


def test_a_stored_claim_whose_conditions_are_open_is_used_however_old():
    for statuses in ((), status(("Attached", "False"))):
        run = run_of(claim("a", allocation=HERE, statuses=statuses))
        submit(run, p=using("p", "a"))
        assert set(run.placements()) == {"p"}


def test_a_stored_claim_whose_binding_failed_is_given_up_and_allocated_again():
    failed = claim("a", allocation=HERE, statuses=status(("Failed", "True")))
    disk = SimulatedDisk()
    run = run_of(failed, journal=FileJournal(disk))

    submit(run, p=using("p", "a"))
    assert (only_claim(run).allocation, only_claim(run).statuses) == (None, ())
    run.run(run.now_s + 60)

    assert set(run.placements()) == {"p"}
    run.binder.end()
    assert check(list(Reader(disk).records())).violations == []


def test_without_the_gate_devices_with_conditions_are_not_used():
    run = run_of(claim("a"), is_on=False)
    submit(run, p=using("p", "a"))
    (note,) = run.pending()
    assert "1 cannot allocate all claims" in note.message
