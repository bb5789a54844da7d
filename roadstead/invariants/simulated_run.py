"""Rules of a simulated run, checked on its tables alone.

    one place       a pod has one row, its times are in order, and one attempt bound it
    conservation    every created pod is pending, running or ended: the numbers of pods in samples
                    are those that follow from the rows of pods, in all and for each class
    capacity        no bind exceeds what its node has

Nothing here is shared with the simulator: the rules read only rows (`simulated_rows`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from roadstead.invariants.simulated_counts import check_classes, check_zones
from roadstead.invariants.simulated_devices import check_devices
from roadstead.invariants.simulated_rows import (
    NodeRow,
    PodRow,
    RunRows,
    RunViolation,
)

_LEAVES, _NODE_CHANGES, _ARRIVES = range(3)
"""Types of changes on a node, in the order in which they occur at one time."""

_Change = tuple[int, int, int, NodeRow | PodRow]
"""A change on a node: its time, its type, its order among changes of both the same, its row."""


def check_run(tables: RunRows) -> Iterator[RunViolation]:
    """Yield all violations in the tables of a run."""
    yield from _check_pods(tables.pods)
    yield from _check_attempts(tables)
    yield from _check_nodes(tables)
    yield from _check_samples(tables)
    yield from check_classes(tables)
    yield from check_zones(tables)
    yield from check_devices(tables.pods, tables.claims, tables.devices, tables.allocations)


def _check_pods(pods: Iterable[PodRow]) -> Iterator[RunViolation]:
    """One place: a UID is one pod, and what happens to it is in order."""
    numbers: set[int] = set()
    uids: set[str] = set()
    for pod in pods:
        if pod.uid in uids or pod.number in numbers:
            yield RunViolation("one place", pod.uid, "is in the table twice")
        uids.add(pod.uid)
        numbers.add(pod.number)
        times = (
            *(pod.created_us, pod.first_tried_us, pod.bound_us),
            *(pod.started_us, pod.ended_us),
        )
        occurred = [each for each in times if each is not None]
        if occurred != sorted(occurred):
            yield RunViolation("one place", pod.uid, f"its times are not in order: {times}")
        if (pod.bound_us is None) != (pod.node is None):
            yield RunViolation("one place", pod.uid, "has a node without a bind, or the opposite")
        waited_us = None if pod.bound_us is None else pod.bound_us - pod.created_us
        if pod.waited_us != waited_us:
            text = f"waited {pod.waited_us} us, and {waited_us} by its creation and bind"
            yield RunViolation("one place", pod.uid, text)
        if (pod.ended_us is None) != (pod.ending is None):
            yield RunViolation("one place", pod.uid, "has an end without a time, or the opposite")
    # Pods are numbered from 0 as they are created: a gap is a pod that was lost.
    if numbers != set(range(len(numbers))):
        missing = min(set(range(len(numbers))) - numbers)
        yield RunViolation("conservation", f"pod {missing}", "was created and is in no row")


def _check_attempts(tables: RunRows) -> Iterator[RunViolation]:
    """One place: each bound pod has one attempt that bound it, at the same time to the same node.

    Also, the time of a pod's first attempt is the one in its row.
    """
    bound = {pod.number: (pod.bound_us, pod.node) for pod in tables.pods if pod.node is not None}
    attempts: Counter[int] = Counter()
    for time_us, number, node in tables.bound_attempts:
        attempts[number] += 1
        if bound.get(number) != (time_us, node):
            text = f"was bound to {node} at {time_us} us by an attempt, not so in pods"
            yield RunViolation("one place", f"pod {number}", text)
    for pod in tables.pods:
        first_us = tables.first_attempts.get(pod.number)
        if pod.first_tried_us != first_us:
            text = f"was first tried at {pod.first_tried_us} us, and at {first_us} by its attempts"
            yield RunViolation("one place", pod.uid, text)
    for number in bound:
        if attempts[number] != 1:
            text = f"was bound by {attempts[number]} attempts"
            yield RunViolation("one place", f"pod {number}", text)


def _check_nodes(tables: RunRows) -> Iterator[RunViolation]:
    """Capacity: no bind exceeds what a node has, and no pod is on a node that does not exist."""
    changes: defaultdict[str, list[_Change]] = defaultdict(list)
    for order, row in enumerate(tables.nodes):
        changes[row.node].append((row.time_us, _NODE_CHANGES, order, row))
    for pod in tables.pods:
        if pod.node is not None and pod.bound_us is not None and pod.is_on_node:
            changes[pod.node].append((pod.bound_us, _ARRIVES, pod.number, pod))
            if pod.ended_us is not None:
                changes[pod.node].append((pod.ended_us, _LEAVES, pod.number, pod))
    for name in sorted(changes):
        yield from _check_node(name, sorted(changes[name], key=lambda each: each[:3]), tables)


def _check_node(
    name: str,
    changes: Iterable[_Change],
    tables: RunRows,
) -> Iterator[RunViolation]:
    allocatable: Mapping[str, int] | None = None
    limit = count = 0
    used: Counter[str] = Counter()
    for time_us, kind, _, change in changes:
        if isinstance(change, NodeRow):
            # allocatable: None if the node is removed.
            allocatable, limit = change.allocatable, change.pods
            if allocatable is None and count:
                text = f"was removed at {time_us} us with {count} pods"
                yield RunViolation("capacity", name, text)
            # A node may shrink below what its pods request: only a new bind must fit.
            continue
        sign = 1 if kind == _ARRIVES else -1
        count += sign
        for resource, amount in tables.requests[change.pod_class].items():
            used[resource] += sign * amount
        if kind == _ARRIVES:
            yield from _check_bind(name, change, time_us, allocatable, limit, count, used, tables)


def _check_bind(
    name: str,
    pod: PodRow,
    time_us: int,
    allocatable: Mapping[str, int] | None,
    limit: int,
    count: int,
    used: Counter[str],
    tables: RunRows,
) -> Iterator[RunViolation]:
    """Check a bind. limit: how many pods the node may have.

    count, used: pods and requested amounts on the node, those of this pod included.
    """
    where = f"{pod.uid} was bound to it at {time_us} us"
    if allocatable is None:
        yield RunViolation("capacity", name, f"{where}, when there was no such node")
        return
    if count > limit:
        yield RunViolation("capacity", name, f"{where}: {count} pods, and room for {limit}")
    from_devices = tables.from_devices.get(pod.pod_class, frozenset())
    for resource, amount in tables.requests[pod.pod_class].items():
        # Devices serve the resource on this node: allocations are checked, not a sum of requests.
        if resource in from_devices and resource not in allocatable:
            continue
        if amount and used[resource] > allocatable.get(resource, 0):
            text = f"{where}: {used[resource]} of {resource}, of {allocatable.get(resource, 0)}"
            yield RunViolation("capacity", name, text)


def _check_samples(tables: RunRows) -> Iterator[RunViolation]:
    """Conservation: each sample has the numbers of pods that follow from the rows of `pods`."""
    events: list[tuple[int, str, int]] = []
    for pod in tables.pods:
        events.append((pod.created_us, "pending", 1))
        left_us = pod.bound_us if pod.bound_us is not None else pod.ended_us
        if left_us is not None:
            events.append((left_us, "pending", -1))
        if pod.bound_us is not None:
            events.append((pod.bound_us, "running", 1))
        if pod.ended_us is not None:
            events.append((pod.ended_us, "ended", 1))
            if pod.bound_us is not None:
                events.append((pod.ended_us, "running", -1))
    events.sort(key=lambda each: each[0])
    counts: Counter[str] = Counter()
    position = 0
    for row in sorted(tables.samples, key=lambda each: each.time_us):
        if row.zone or row.metric not in ("pending", "running", "ended"):
            continue
        # A sample is taken after everything else that occurs at its time.
        while position < len(events) and events[position][0] <= row.time_us:
            _, metric, change = events[position]
            counts[metric] += change
            position += 1
        if counts[row.metric] != row.value:
            text = f"{row.value:.0f} {row.metric} pods, and {counts[row.metric]} by the rows"
            yield RunViolation("conservation", f"sample at {row.time_us} us", text)
