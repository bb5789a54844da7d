"""The number of pods of each class on a row, as a mapping that rows share where they can.

Most rows of a large cluster have no pods, or pods of one class: such mappings are never modified,
and rows with equal content share one. Only a row with pods of several classes has its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.nodes.pod_class import PodClass

PodsOnRow = dict[PodClass, int]

NO_PODS: PodsOnRow = {}
"""The mapping of every row without pods."""


def changed(pods: PodsOnRow, pod_class: PodClass, change: int) -> PodsOnRow:
    """Return a row's pods after pods of a class were added or, with a negative change, removed.

    `pods` must not be used any more. AssertionError if more are removed than there are.
    """
    count = pods.get(pod_class, 0) + change
    assert count >= 0, f"no pod of {pod_class!r} is there to leave"
    if len(pods) < 2:
        if not pods or pod_class in pods:
            return pod_class.only_class(count) if count else NO_PODS
        return {**pods, pod_class: count}
    if count:
        pods[pod_class] = count
        return pods
    del pods[pod_class]
    return duplicate(pods) if len(pods) == 1 else pods


def duplicate(pods: PodsOnRow) -> PodsOnRow:
    """Return an equal mapping for another row, independent of this one."""
    if len(pods) > 1:
        return dict(pods)
    for pod_class, count in pods.items():
        return pod_class.only_class(count)
    return NO_PODS


def add_each(
    on_rows: list[PodsOnRow], rows: Sequence[int], pod_classes: Sequence[PodClass]
) -> None:
    """Add pods to rows: pod_classes[i] to rows[i]."""
    for row, pod_class in zip(rows, pod_classes, strict=True):
        pods = on_rows[row]
        if not pods:
            on_rows[row] = pod_class.only_class(1)
        elif pod_class not in pods:
            on_rows[row] = changed(pods, pod_class, 1)
        elif len(pods) > 1:
            pods[pod_class] += 1
        else:
            on_rows[row] = pod_class.only_class(pods[pod_class] + 1)
