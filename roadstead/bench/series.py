"""Many nodes or pods, stored as classes and names; parts are built on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts

ENDLESS = 1 << 62
"""The count of a series from which a churn creates any number of objects."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeSeries:
    """Nodes; their classes alternate.

    names: empty if names are `prefix` and a number, from `first` on.
    """

    classes: tuple[NodeFacts, ...]
    count: int
    prefix: str = "node-"
    first: int = 0
    names: tuple[str, ...] = ()

    def part(self, start: int, stop: int) -> NodeList:
        """The nodes from index `start` up to `stop`."""
        indices = range(start, min(stop, self.count))
        names = self.names[start:stop] or [f"{self.prefix}{self.first + p}" for p in indices]
        class_of = np.arange(indices.start, indices.stop) % len(self.classes)
        return NodeList.from_columns(self.classes, names, class_of)

    def name(self, index: int) -> str:
        return self.names[index] if self.names else f"{self.prefix}{self.first + index}"


@dataclass(frozen=True, slots=True)
class PodSeriesPart:
    """Pods of one namespace as columns: `class_of[i]` points into `classes`."""

    classes: tuple[PodFacts, ...]
    uids: tuple[str, ...]
    names: tuple[str, ...]
    class_of: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PodSeries:
    """Pods of one namespace; their classes alternate, unless `class_of` (int32[count]) is given.

    names, uids: empty if a name is `prefix` and a number, from `first` on, and a uid is
    `namespace/name`.
    make_class: returns the class of an index, for pods that all have different classes.
    """

    count: int
    namespace: str
    classes: tuple[PodFacts, ...] = ()
    prefix: str = "pod-"
    first: int = 0
    names: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    class_of: NDArray[np.int32] | None = None
    make_class: Callable[[int], PodFacts] | None = None
    # By UID; filled at first use, and only for given names.
    _index_of: dict[str, int] = field(default_factory=dict)

    def part(self, start: int, stop: int) -> PodSeriesPart:
        """The pods from index `start` up to `stop`."""
        indices = range(start, min(stop, self.count))
        names = self.names[start:stop] or tuple(
            [f"{self.prefix}{self.first + index}" for index in indices]
        )
        uids = self.uids[start:stop] or tuple([f"{self.namespace}/{name}" for name in names])
        if self.make_class is not None:
            classes = tuple(map(self.make_class, indices))
            return PodSeriesPart(classes, uids, names, tuple(range(len(classes))))
        if self.class_of is not None:
            column = tuple(self.class_of[start:stop].tolist())
            return _only_used(self.classes, uids, names, column)
        total = len(self.classes)
        column = (0,) * len(indices) if total == 1 else tuple(index % total for index in indices)
        return _only_used(self.classes, uids, names, column)

    def index_of(self, uid: str) -> int | None:
        """The index of a pod in the series; None for a pod of another series."""
        if self.names or self.uids:
            if not self._index_of:
                columns = self.part(0, self.count)
                self._index_of.update((known, index) for index, known in enumerate(columns.uids))
            return self._index_of.get(uid)
        head = f"{self.namespace}/{self.prefix}"
        number = uid[len(head) :]
        if not uid.startswith(head) or not number.isdecimal():
            return None
        index = int(number) - self.first
        return index if 0 <= index < self.count else None


def _only_used(
    classes: tuple[PodFacts, ...],
    uids: tuple[str, ...],
    names: tuple[str, ...],
    column: tuple[int, ...],
) -> PodSeriesPart:
    """Return the columns with only the classes that the pods use, so that no others are sent.

    column: the class of each pod, as an index into `classes`.
    """
    used = dict.fromkeys(column)
    if len(used) == len(classes):
        return PodSeriesPart(classes, uids, names, column)
    new_index = {old: new for new, old in enumerate(used)}
    used_classes = tuple(classes[old] for old in used)
    return PodSeriesPart(used_classes, uids, names, tuple(new_index[old] for old in column))
