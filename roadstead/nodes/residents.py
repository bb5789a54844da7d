"""The individual pods on each node, and the nominated pods: data that a table's counts omit.

The table counts pods by class; preemption must name them. `Residents` keeps, per node, the UIDs of
its pods with their classes, in order of arrival, and data that only some pods have: a key that
differs from the UID, a start time. Pods that were counted without a UID are not in it.

`NominationCounts` keeps, per node, how many pods of each class are nominated to it (they wait for
victims to leave). The table does not count them; filtering adds them where they matter.
Upstream: pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.pods_by_node import PodsByNode


class Resident(NamedTuple):
    """One pod on a node. key: namespace/name. started_s: seconds since 1970; None if unknown."""

    uid: str
    key: str
    started_s: float | None
    pod_class: PodClass


class Residents:
    """The pods on nodes by UID, in order of arrival; a pod is on one node at most.

    _key_of: only keys that differ from the UID. _started_s: only known times.
    """

    __slots__ = ("_class_of", "_key_of", "_pods", "_started_s")

    def __init__(self) -> None:
        self._pods = PodsByNode()
        self._class_of: dict[str, PodClass] = {}
        self._key_of: dict[str, str] = {}
        self._started_s: dict[str, float] = {}

    def add(
        self,
        node: str,
        uid: str,
        pod_class: PodClass,
        key: str = "",
        started_s: float | None = None,
    ) -> None:
        """Add a pod to a node. key: its namespace/name, if it differs from the UID."""
        if uid in self._class_of:
            self._remove(uid)
        self._pods.add(uid, node)
        self._class_of[uid] = pod_class
        if key and key != uid:
            self._key_of[uid] = key
        if started_s is not None:
            self._started_s[uid] = started_s

    def add_all(
        self,
        nodes: Sequence[str],
        uids: Sequence[str],
        pod_classes: Sequence[PodClass],
        keys: Sequence[str],
    ) -> None:
        """Add pods, each once, to nodes, as `add` does."""
        for uid in self._class_of.keys() & uids:
            self._remove(uid)
        self._pods.add_all(uids, nodes)
        self._class_of.update(zip(uids, pod_classes, strict=True))
        self._key_of.update(
            [(uid, key) for uid, key in zip(uids, keys, strict=True) if key and key != uid]
        )

    def remove(self, node: str, pod_class: PodClass, uid: str = "") -> None:
        """Remove a pod from a node; without a UID, the last of its class that arrived."""
        if not uid:
            on_node = reversed(self._pods.on(node))
            uid = next((each for each in on_node if self._class_of[each] is pod_class), "")
        if self.is_on(node, uid):
            self._remove(uid)

    def clear(self, node: str) -> None:
        """Remove all pods of a node."""
        for uid in self._pods.on(node):
            self._remove(uid)

    def is_on(self, node: str, uid: str) -> bool:
        """Whether a pod is on a node."""
        return self._pods.node_of.get(uid) == node

    def node_of(self, uid: str) -> str | None:
        """Return the node of a pod, None if it is on none."""
        return self._pods.node_of.get(uid)

    def resident(self, uid: str) -> Resident:
        """Return a pod that is on a node."""
        key, started_s = self._key_of.get(uid, uid), self._started_s.get(uid)
        return Resident(uid, key, started_s, self._class_of[uid])

    def on(self, node: str) -> Iterator[Resident]:
        """Iterate over the pods on a node in order of arrival."""
        yield from map(self.resident, self._pods.on(node))

    def _remove(self, uid: str) -> None:
        self._pods.pop(uid)
        del self._class_of[uid]
        self._key_of.pop(uid, None)
        self._started_s.pop(uid, None)


class NominationCounts:
    """Nominated pods of each class by node, whether or not the table has the node."""

    __slots__ = ("_by_node",)

    def __init__(self) -> None:
        self._by_node: dict[str, dict[PodClass, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_node)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_node)

    def add(self, node: str, pod_class: PodClass, count: int = 1) -> None:
        """Nominate pods of a class to a node."""
        counts = self._by_node.setdefault(node, {})
        counts[pod_class] = counts.get(pod_class, 0) + count

    def remove(self, node: str, pod_class: PodClass) -> bool:
        """Remove one nomination; return False if there was none of this class."""
        counts = self._by_node.get(node, {})
        left = counts.get(pod_class, 0) - 1
        if left > 0:
            counts[pod_class] = left
        elif counts.pop(pod_class, None) is None:
            return False
        elif not counts:
            del self._by_node[node]
        return True

    def to(self, node: str) -> Mapping[PodClass, int]:
        """Return the classes nominated to a node and the number of pods of each."""
        return self._by_node.get(node, {})
