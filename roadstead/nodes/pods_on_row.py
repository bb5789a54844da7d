"""How many pods of each class are on a row, as a mapping that rows share where they can.

Most rows of a large cluster hold no pod, or pods of one class: such mappings are never written to,
and all rows that are alike have the same one. Only a row with pods of several classes has its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.nodes.pod_class import PodClass

PodsOnRow = dict[PodClass, int]

NO_PODS: PodsOnRow = {}
"""Of every row without pods."""


def changed(here: PodsOnRow, info: PodClass, change: int) -> PodsOnRow:
    """What is on a row once pods of a class came or, with a negative change, left.

    `here` is not to be used any more. AssertionError where more leave than there are.
    """
    count = here.get(info, 0) + change
    assert count >= 0, f"no pod of {info!r} is there to leave"
    if len(here) < 2:
        if not here or info in here:
            return info.alone(count) if count else NO_PODS
        return {**here, info: count}
    if count:
        here[info] = count
        return here
    del here[info]
    return duplicate(here) if len(here) == 1 else here


def duplicate(here: PodsOnRow) -> PodsOnRow:
    """The same for another row, which may change by itself."""
    if len(here) > 1:
        return dict(here)
    for info, count in here.items():
        return info.alone(count)
    return NO_PODS


def add_each(on_rows: list[PodsOnRow], rows: Sequence[int], infos: Sequence[PodClass]) -> None:
    """Pods come to rows, one to each of `rows`."""
    for row, info in zip(rows, infos, strict=True):
        here = on_rows[row]
        if not here:
            on_rows[row] = info.alone(1)
        elif info not in here:
            on_rows[row] = changed(here, info, 1)
        elif len(here) > 1:
            here[info] += 1
        else:
            on_rows[row] = info.alone(here[info] + 1)
