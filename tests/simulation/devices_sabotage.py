"""Sabotage of claims of devices: one record of a finished journal is falsified.

The checker, which accepts the journal, must report the falsified record, and must do so for the
reason for which it is wrong.
"""

import random
from dataclasses import replace

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import DeviceFacts, DevicesFacts, Placement, SliceFacts
from roadstead.invariants.checker import check
from roadstead.journal import RecordKind
from tests.simulation.devices import GPU


def without_devices(records):
    """The records of a journal without anything of claims of devices."""
    found = []
    for each in records:
        if each.kind is RecordKind.STORAGE:
            if each.subject.device_claims or each.subject.removed_claims:
                continue
        elif isinstance(each.subject, ClusterFacts):
            each = each._replace(subject=replace(each.subject, devices=DevicesFacts()))
        elif each.facts is not None and each.facts.device_claims:
            each = each._replace(facts=replace(each.facts, device_claims=(), claims_as=None))
        found.append(each)
    return found


def unreported(records, seed):
    """Return a line for each falsified record that the checker does not report."""
    draw = random.Random(f"sabotage of devices {seed}")
    allocating = [n for n, each in enumerate(records) if each.lsn and _allocates(each)]
    if not allocating:
        return
    for falsify, reason in draw.sample(FALSIFIED, 3):
        index = draw.choice(allocating)
        wrong = falsify(records, index)
        if wrong is None:
            continue
        reported = [each.text for each in check(wrong).violations]
        if not any(reason in each for each in reported):
            lsn = records[index].lsn
            yield f"sabotage: {falsify.__name__} in record {lsn}: reported are {reported[:3]}"


def _allocates(record):
    if record.kind is not RecordKind.STORAGE:
        return False
    return any(map(_is_made, record.subject.device_claims))


def _is_made(claim):
    """Whether a claim was made for one pod, and so is in no later record of the commit."""
    return claim.owner_kind == "Pod" and _own(claim) is not None


def _own(claim):
    """The first result that is no other claim's at the same time; None if there is none."""
    results = () if claim.allocation is None else claim.allocation.results
    plain = (each for each in results if each.share_id is None and not each.has_admin_access)
    return next(plain, None)


def _changed(records, index, change):
    """The records with one claim of the record at the index changed."""
    record = records[index]
    claims = list(record.subject.device_claims)
    place = next(n for n, each in enumerate(claims) if _is_made(each))
    claims[place] = change(claims[place])
    subject = replace(record.subject, device_claims=tuple(claims))
    return [*records[:index], record._replace(subject=subject), *records[index + 1 :]]


def a_device_of_another_claim(records, index):
    """A claim gets a device that another claim has at the time."""
    held = {}
    for each in records[:index]:
        if each.kind is RecordKind.STORAGE:
            for key in each.subject.removed_claims:
                held.pop(key, None)
            held |= {claim.key: _own(claim) for claim in each.subject.device_claims}
    mine = {each.key for each in records[index].subject.device_claims}
    others = [device for key, device in sorted(held.items()) if device and key not in mine]
    if not others:
        return None
    return _changed(records, index, lambda claim: _with(claim, others[0]))


def a_device_that_does_not_exist(records, index):
    def change(claim):
        return _with(claim, replace(_own(claim), device="nothing"))

    return _changed(records, index, change)


def a_device_that_another_node_has(records, index):
    """A claim gets a device of a node's own slice in place of one with the same name."""

    def change(claim):
        return _with(claim, replace(_own(claim), driver=GPU, pool="elsewhere", device="g0"))

    return _elsewhere(_changed(records, index, change))


def _elsewhere(records):
    """The records with a further node's slice."""
    there = SliceFacts(
        *("elsewhere-gpu", GPU, "elsewhere", 1, 1, Placement(node_name="elsewhere")),
        devices=(DeviceFacts("g0"),),
    )
    return [
        each._replace(
            subject=replace(
                each.subject,
                devices=replace(each.subject.devices, slices=(*each.subject.devices.slices, there)),
            )
        )
        if isinstance(each.subject, ClusterFacts)
        else each
        for each in records
    ]


def a_claim_with_a_device_less(records, index):
    def change(claim):
        own = _own(claim)
        results = tuple(each for each in claim.allocation.results if each is not own)
        return replace(claim, allocation=replace(claim.allocation, results=results))

    return _changed(records, index, change)


def a_claim_that_does_not_name_its_pod(records, index):
    return _changed(records, index, lambda claim: replace(claim, reserved_for=()))


def a_claim_without_an_allocation(records, index):
    return _changed(records, index, lambda claim: replace(claim, allocation=None))


def _with(claim, device):
    """A claim whose first own device is another one."""
    own = _own(claim)
    results = tuple(device if each is own else each for each in claim.allocation.results)
    return replace(claim, allocation=replace(claim.allocation, results=results))


FALSIFIED = (
    (a_device_of_another_claim, "is in claims"),
    (a_device_that_does_not_exist, "which is not there"),
    (a_device_that_another_node_has, "the node does not reach"),
    (a_claim_with_a_device_less, "asks for"),
    (a_claim_that_does_not_name_its_pod, "does not name the pod"),
    (a_claim_without_an_allocation, "is not allocated"),
)
