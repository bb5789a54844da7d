"""Conservation in a simulated run: at every sample, no pod is missing or counted twice.

The pods of each class and zone are counted again from the rows of `pods`, and compared with the
samples.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from roadstead.invariants.simulated_rows import ClassSampleRow, PodRow, RunRows, RunViolation

STATES: Final = ("created", "pending", "running", "finished", "removed")
FINISHED: Final = frozenset({"done", "failed"})

_ClassChange = tuple[int, int, str, int]
"""Time, class, state, and by how much its number of pods changes."""


def check_classes(tables: RunRows) -> Iterator[RunViolation]:
    """In samples of a class, created = pending + running + finished + removed, as in its pods.

    A class has no row at a sample at which its numbers are those of the sample before. Where some
    classes have no rows of their own, the sums over all classes are compared.
    """
    changes = sorted(
        (change for pod in tables.pods for change in _class_changes(pod)), key=lambda each: each[0]
    )
    rows: defaultdict[int, list[ClassSampleRow]] = defaultdict(list)
    for row in tables.class_samples:
        rows[row.time_us].append(row)
    has_others = any(row.pod_class is None for row in tables.class_samples)
    counted: defaultdict[int, Counter[str]] = defaultdict(Counter)
    recorded: dict[int | None, ClassSampleRow] = {}
    position = 0
    for time_us in sorted(rows.keys() | {each.time_us for each in tables.samples}):
        touched: set[int] = set()
        while position < len(changes) and changes[position][0] <= time_us:
            _, pod_class, state, change = changes[position]
            counted[pod_class][state] += change
            touched.add(pod_class)
            position += 1
        for row in rows[time_us]:
            recorded[row.pod_class] = row
            if row.pod_class is not None:
                touched.add(row.pod_class)
            if row.created != row.pending + row.running + row.finished + row.removed:
                subject = f"class {row.pod_class} at {time_us} us"
                text = f"{row.created} created pods are not the sum of {_numbers(row)[1:]}"
                yield RunViolation("conservation", subject, text)
        if has_others:
            yield from _compare("all classes", time_us, counted.values(), recorded.values())
            continue
        for each in sorted(touched):
            last_row = [recorded[each]] if each in recorded else []
            yield from _compare(f"class {each}", time_us, [counted[each]], last_row)


def _class_changes(pod: PodRow) -> Iterator[_ClassChange]:
    """Yield how a pod changes the numbers of its class in its life."""
    number = pod.pod_class
    yield pod.created_us, number, "created", 1
    yield pod.created_us, number, "pending", 1
    left_us = pod.ended_us if pod.bound_us is None else pod.bound_us
    if left_us is not None:
        yield left_us, number, "pending", -1
    if pod.bound_us is not None:
        yield pod.bound_us, number, "running", 1
    if pod.ended_us is not None:
        yield pod.ended_us, number, "finished" if pod.ending in FINISHED else "removed", 1
        if pod.bound_us is not None:
            yield pod.ended_us, number, "running", -1


def _numbers(row: ClassSampleRow) -> list[int]:
    return [row.created, row.pending, row.running, row.finished, row.removed]


def _compare(
    subject: str,
    time_us: int,
    counted: Iterable[Mapping[str, int]],
    recorded: Iterable[ClassSampleRow],
) -> Iterator[RunViolation]:
    """Compare the sums over classes, of the rows of pods and of the samples."""
    expected: Counter[str] = Counter()
    for counts in counted:
        expected.update(counts)
    sampled: Counter[str] = Counter()
    for row in recorded:
        sampled.update(dict(zip(STATES, _numbers(row), strict=True)))
    for state in STATES:
        if expected[state] != sampled[state]:
            text = f"{sampled[state]} {state} pods, and {expected[state]} by the rows"
            yield RunViolation("conservation", f"{subject} at {time_us} us", text)


def check_zones(tables: RunRows) -> Iterator[RunViolation]:
    """The pods on the nodes of each zone are those of the rows of pods."""
    changes: list[tuple[int, str, int, str | None]] = [
        (row.time_us, row.node, 0, row.zone or "") for row in tables.nodes
    ]
    for pod in tables.pods:
        if pod.node is not None and pod.bound_us is not None:
            changes.append((pod.bound_us, pod.node, 1, None))
            if pod.ended_us is not None:
                changes.append((pod.ended_us, pod.node, -1, None))
    # The sort is stable, and rows of nodes are before those of pods: a pod that is bound when its
    # node changes the zone counts in the new one.
    changes.sort(key=lambda each: each[0])
    rows: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for row in tables.samples:
        if row.metric == "running":
            rows[row.time_us][row.zone] = row.value
    zone_of: dict[str, str] = {}
    on_node: Counter[str] = Counter()
    in_zone: Counter[str] = Counter()
    position = 0
    for time_us in sorted(rows):
        while position < len(changes) and changes[position][0] <= time_us:
            _, node, change, zone = changes[position]
            if zone is not None:
                # The pods of a node move with it to its new zone.
                in_zone[zone_of.get(node, "")] -= on_node[node]
                in_zone[zone] += on_node[node]
                zone_of[node] = zone
            on_node[node] += change
            in_zone[zone_of.get(node, "")] += change
            position += 1
        for zone in sorted((rows[time_us].keys() | +in_zone) - {""}):
            value = rows[time_us].get(zone, 0.0)
            if value != in_zone[zone]:
                text = f"{value:.0f} running pods, and {in_zone[zone]} by the rows"
                yield RunViolation("conservation", f"zone {zone} at {time_us} us", text)
