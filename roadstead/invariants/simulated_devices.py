"""Rules of devices in a simulated run: each in one claim at most, and claims end with their pods.

Rows of the table `allocations` are in the order in which the claims changed, also rows of one time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from roadstead.invariants.amounts import amount_of
from roadstead.invariants.simulated_rows import (
    AllocationRow,
    DeviceId,
    DeviceRow,
    PodRow,
    RunViolation,
)
from roadstead.protocol.claim_bounds import CLAIM_MAX_CONSUMERS

RULE = "devices"
POD_NAME = "*"
"""Stands for the pod's name in the names of its claims, as the table `classes` has them."""


def check_devices(
    pods: Sequence[PodRow],
    claims_of_class: Mapping[int, Sequence[str]],
    devices: Iterable[DeviceRow],
    rows: Iterable[AllocationRow],
) -> Iterator[RunViolation]:
    """Yield the violations of the rules of devices. claims_of_class: see `RunRows.claims`."""
    state = _Allocations({each.id: each for each in devices}, {each.number: each for each in pods})
    now_us = 0
    for row in rows:
        if row.time_us < now_us:
            yield RunViolation(RULE, row.claim, f"a row of {row.time_us} us is after {now_us} us")
        if row.time_us != now_us:
            yield from state.finish_time(now_us)
        now_us = row.time_us
        yield from state.apply(row)
    yield from state.finish_time(now_us)
    yield from state.finish()
    yield from _claims_of_pods(pods, claims_of_class, state.first_reserved_us)


@dataclass(slots=True)
class _Allocations:
    """The claims at a time.

    allocated: by claim, the rows of its devices. on_device: the same by device. users: by claim,
    numbers of the pods for which it is reserved. drawn: what devices in use consume, by (driver,
    pool, slice, counter). changed: claims that changed at this time, as an ordered set.
    ever_reserved: claims that were reserved for any pod so far. first_reserved_us: when a claim was
    first reserved for a pod, by pod and claim.
    """

    devices: Mapping[DeviceId, DeviceRow]
    pods: Mapping[int, PodRow]
    allocated: dict[str, list[AllocationRow]] = field(default_factory=dict)
    on_device: defaultdict[DeviceId, list[AllocationRow]] = field(
        default_factory=lambda: defaultdict(list)
    )
    users: defaultdict[str, set[int | None]] = field(default_factory=lambda: defaultdict(set))
    drawn: defaultdict[tuple[str, str, str, str], Fraction] = field(
        default_factory=lambda: defaultdict(Fraction)
    )
    changed: dict[str, None] = field(default_factory=dict)
    ever_reserved: set[str] = field(default_factory=set)
    first_reserved_us: dict[tuple[int, str], int] = field(default_factory=dict)

    def apply(self, row: AllocationRow) -> Iterator[RunViolation]:
        """Apply a row; yield what it violates."""
        self.changed[row.claim] = None
        apply = {
            "allocated": self._allocate,
            "deallocated": self._deallocate,
            "reserved": self._reserve,
            "unreserved": self._unreserve,
        }.get(row.what)
        if apply is None:
            yield RunViolation(RULE, row.claim, f'has a row of the unknown type "{row.what}"')
        else:
            yield from apply(row)

    def finish_time(self, now_us: int) -> Iterator[RunViolation]:
        """Yield, after all rows of a time, the claims that keep devices without any pod."""
        for claim in self.changed:
            if claim in self.ever_reserved and not self.users[claim]:
                for row in self.allocated.get(claim, ()):
                    text = f"keeps device {_text(row.device)} at {now_us} us, after its last pod"
                    yield RunViolation(RULE, claim, text)
        self.changed.clear()

    def finish(self) -> Iterator[RunViolation]:
        """Yield, at the end of the run, the pods that ended and still reserve a claim."""
        for claim, users in self.users.items():
            for number in users:
                pod = None if number is None else self.pods.get(number)
                if pod is not None and pod.ended_us is not None:
                    text = f"is reserved for {pod.uid}, which ended at {pod.ended_us} us"
                    yield RunViolation(RULE, claim, text)

    # Devices.

    def _allocate(self, row: AllocationRow) -> Iterator[RunViolation]:
        assert row.device is not None, "a row of a device"
        others = [each for each in self.on_device[row.device] if not each.has_admin_access]
        self.allocated.setdefault(row.claim, []).append(row)
        self.on_device[row.device].append(row)
        device = self.devices.get(row.device)
        if device is None:
            yield RunViolation(RULE, row.claim, f"has device {_text(row.device)}, which is unknown")
            return
        if row.has_admin_access:
            return
        for each in others:
            if row.share is None or each.share is None:
                text = f"is in claims {each.claim} and {row.claim} at {row.time_us} us"
                yield RunViolation(RULE, _text(row.device), text)
        yield from self._overdrawn_capacity(row, device, others)
        if not others:
            yield from self._draw(row, device)

    def _overdrawn_capacity(
        self, row: AllocationRow, device: DeviceRow, others: Sequence[AllocationRow]
    ) -> Iterator[RunViolation]:
        for name, text in row.consumed.items():
            amounts = (each.consumed.get(name, "0") for each in others)
            drawn = amount_of(text) + sum(map(amount_of, amounts))
            if drawn > amount_of(device.capacity.get(name, "0")):
                where = f"claim {row.claim} at {row.time_us} us"
                yield RunViolation(RULE, _text(device.id), f"{where}: capacity {name} is overdrawn")

    def _draw(self, row: AllocationRow, device: DeviceRow) -> Iterator[RunViolation]:
        """Count what a device that comes into use consumes of the counters of its slice."""
        for name, text in device.consumes.items():
            counter = (device.id[0], device.id[1], device.slice, name)
            self.drawn[counter] += amount_of(text)
            if self.drawn[counter] > amount_of(device.counters.get(name, "0")):
                where = f"claim {row.claim} at {row.time_us} us"
                text = f"{where}: counter {name} of slice {device.slice} is overdrawn"
                yield RunViolation(RULE, _text(device.id), text)

    def _deallocate(self, row: AllocationRow) -> Iterator[RunViolation]:
        assert row.device is not None, "a row of a device"
        allocation = next(
            (
                each
                for each in self.allocated.get(row.claim, ())
                if (each.device, each.request, each.share) == (row.device, row.request, row.share)
            ),
            None,
        )
        if allocation is None:
            text = f"loses device {_text(row.device)} at {row.time_us} us, which it does not have"
            yield RunViolation(RULE, row.claim, text)
            return
        if self.users[row.claim]:
            text = f"loses device {_text(row.device)} at {row.time_us} us, while a pod reserves it"
            yield RunViolation(RULE, row.claim, text)
        self.allocated[row.claim].remove(allocation)
        remaining = self.on_device[row.device]
        remaining.remove(allocation)
        device = self.devices.get(row.device)
        # A shared device consumes its counters once, however many claims have a share; admin
        # access consumes none.
        is_last = all(each.has_admin_access for each in remaining)
        if device is not None and is_last and not allocation.has_admin_access:
            for name, text in device.consumes.items():
                counter = (device.id[0], device.id[1], device.slice, name)
                self.drawn[counter] -= amount_of(text)

    # Pods.

    def _reserve(self, row: AllocationRow) -> Iterator[RunViolation]:
        self.users[row.claim].add(row.pod)
        self.ever_reserved.add(row.claim)
        if len(self.users[row.claim]) > CLAIM_MAX_CONSUMERS:
            text = f"is reserved for more than {CLAIM_MAX_CONSUMERS} pods at {row.time_us} us"
            yield RunViolation(RULE, row.claim, text)
        if row.pod is None:
            return
        pod = self.pods.get(row.pod)
        if pod is None:
            yield RunViolation(RULE, row.claim, f"is reserved for pod {row.pod}, which is unknown")
            return
        self.first_reserved_us.setdefault((row.pod, row.claim), row.time_us)
        if row.time_us < pod.created_us or (
            pod.ended_us is not None and row.time_us > pod.ended_us
        ):
            text = f"is reserved for {pod.uid} at {row.time_us} us, when it does not exist"
            yield RunViolation(RULE, row.claim, text)
        if pod.node is None:
            return
        for each in self.allocated.get(row.claim, ()):
            device = None if each.device is None else self.devices.get(each.device)
            if device is not None and device.node not in (None, pod.node):
                text = f"{pod.uid} is on {pod.node}, device {_text(device.id)} is on {device.node}"
                yield RunViolation(RULE, row.claim, text)

    def _unreserve(self, row: AllocationRow) -> Iterator[RunViolation]:
        if row.pod not in self.users[row.claim]:
            text = f"is freed of pod {row.pod} at {row.time_us} us, which does not reserve it"
            yield RunViolation(RULE, row.claim, text)
        self.users[row.claim].discard(row.pod)
        pod = None if row.pod is None else self.pods.get(row.pod)
        if pod is not None and pod.ended_us != row.time_us:
            text = f"is freed of {pod.uid} at {row.time_us} us, which ended at {pod.ended_us} us"
            yield RunViolation(RULE, row.claim, text)


def _claims_of_pods(
    pods: Iterable[PodRow],
    claims_of_class: Mapping[int, Sequence[str]],
    first_reserved_us: Mapping[tuple[int, str], int],
) -> Iterator[RunViolation]:
    """Yield pods that were bound before their claims were reserved for them.

    Not the pods of the inputs (without an owner) that run at the start: their claims may have been
    reserved before the first row.
    """
    for pod in pods:
        if pod.bound_us is None or (pod.owner is None and pod.bound_us == 0):
            continue
        for name in claims_of_class.get(pod.pod_class, ()):
            claim = f"{pod.namespace}/{name.replace(POD_NAME, pod.name)}"
            reserved_us = first_reserved_us.get((pod.number, claim))
            if reserved_us is None or reserved_us > pod.bound_us:
                text = f"is bound at {pod.bound_us} us without its claim {claim}"
                yield RunViolation(RULE, pod.uid, text)


def _text(device: DeviceId | None) -> str:
    return "/".join(device or ())
