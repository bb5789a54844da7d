"""The columns of a node table: arrays that grow by doubling, and the interners of their codes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts, named_node
from roadstead.facts.pod import HostPort
from roadstead.facts.taints import Taint
from roadstead.nodes.interning import CodeInterner
from roadstead.nodes.labels import MISSING, LabelColumn
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.nodes.pods_on_row import PodsOnRow

PortSet = tuple[tuple[HostPort, int], ...]
"""A node's ports in use: sorted (port, number of pods that use it)."""

UP_TO_DATE = int(np.iinfo(np.int64).max)
"""`Columns.snapshot_at` of a row that has no snapshot: its data is never outdated."""

_START_CAPACITY = 16

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Bools = NDArray[np.bool_]


def name_hash(name: str) -> int:
    """Return a stable 64-bit hash of a name: tie-breaks must not depend on process or order."""
    return int(name_hashes((name,))[0])


def name_hashes(names: Sequence[str]) -> NDArray[np.uint64]:
    """Return the hashes of names: uint64[name]."""
    blake2b = hashlib.blake2b
    digests = [blake2b(name.encode(), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype="<u8")


class Columns:
    """The dense columns of a node table: row i of every array is the same node.

    Rows `size` and above are free. names: of the nodes. classes: the pod classes of this process.
    allocatable_pods: int64[capacity]; pod_count: int64[capacity], pods on the node; unschedulable:
        bool[capacity].
    allocatable, requested: int64[resource, capacity] in the units of `NodeFacts`.
    nonzero_requested: int64[2, capacity] (cpu in milli-CPU, memory in bytes).
    zone, taint_set, image_set, port_set: int32[capacity], codes of the interners zones, taint_sets,
        image_sets, port_sets. labels: column by label key, see `label`.
    arrival: int64[capacity], position of the node in the order of arrival in the cluster.
    facts: per row, the node's facts, or facts that many nodes share, without a name (`node` adds
        it). pods: per row, number of pods of each class.
    name_hash: uint64[capacity]. The hashes of the rows from `_hashed` on are computed on next use.
    version: int64[capacity], the table's version after the row's last change. facts_version:
        int64[capacity], after the last change of its node's facts (not pods). node_version: after
        the last change of any node's facts or of the set of nodes.
    class_counts: class → number of its pods on all rows. changes: number of changes of these
        counts; class_changed: class → the number of its last change, in ascending order.
    snapshot_at: int64[capacity], how many nodes had arrived in the cluster by the row's last
        snapshot. first_snapshot_at: the same for the first snapshot of any row. snapshot_version:
        int64[capacity], the row's version at its last snapshot (`roadstead.nodes.snapshots`).
    """

    __slots__ = (
        "_hashed", "_name_hash", "allocatable", "allocatable_pods", "arrival", "capacity",
        "changes", "class_changed", "class_counts", "classes", "facts", "facts_version",
        "first_snapshot_at", "image_set", "image_sets", "labels", "names", "node_version",
        "nonzero_requested",
        "pod_count", "pods", "port_set", "port_sets", "requested", "size", "snapshot_at",
        "snapshot_version", "taint_set", "taint_sets", "unschedulable", "version", "zone", "zones",
    )  # fmt: skip

    def __init__(self, classes: PodClasses) -> None:
        self.classes = classes
        self.capacity = capacity = _START_CAPACITY
        self.size = 0
        self.names: list[str] = []
        self.node_version = 0
        self.facts: list[NodeFacts] = []
        self.pods: list[PodsOnRow] = []
        self.class_counts: dict[PodClass, int] = {}
        self.class_changed: dict[PodClass, int] = {}
        self.changes = 0
        resources = len(classes.resources)
        self.allocatable: I64 = np.zeros((resources, capacity), dtype=np.int64)
        self.requested: I64 = np.zeros((resources, capacity), dtype=np.int64)
        self.nonzero_requested: I64 = np.zeros((2, capacity), dtype=np.int64)
        self.allocatable_pods: I64 = np.zeros(capacity, dtype=np.int64)
        self.pod_count: I64 = np.zeros(capacity, dtype=np.int64)
        self.version: I64 = np.zeros(capacity, dtype=np.int64)
        self.facts_version: I64 = np.zeros(capacity, dtype=np.int64)
        self.arrival: I64 = np.zeros(capacity, dtype=np.int64)
        self.snapshot_at: I64 = np.zeros(capacity, dtype=np.int64)
        self.snapshot_version: I64 = np.zeros(capacity, dtype=np.int64)
        self.first_snapshot_at = UP_TO_DATE
        self._name_hash: NDArray[np.uint64] = np.zeros(capacity, dtype=np.uint64)
        self._hashed = 0
        self.unschedulable: Bools = np.zeros(capacity, dtype=np.bool_)
        self.zone: I32 = np.zeros(capacity, dtype=np.int32)
        self.taint_set: I32 = np.zeros(capacity, dtype=np.int32)
        self.image_set: I32 = np.zeros(capacity, dtype=np.int32)
        self.port_set: I32 = np.zeros(capacity, dtype=np.int32)
        self.labels: dict[str, LabelColumn] = {}
        self.zones: CodeInterner[str] = CodeInterner([""])
        self.taint_sets: CodeInterner[tuple[Taint, ...]] = CodeInterner([()])
        self.image_sets: CodeInterner[tuple[tuple[str, int], ...]] = CodeInterner([()])
        self.port_sets: CodeInterner[PortSet] = CodeInterner([()])

    def numeric_columns(self) -> tuple[str, ...]:
        """Return the names of the numeric columns, whose last axis is the row."""
        return (
            "allocatable", "requested", "nonzero_requested", "allocatable_pods", "pod_count",
            "version", "facts_version", "arrival", "snapshot_at", "snapshot_version", "_name_hash",
            "unschedulable", "zone", "taint_set", "image_set", "port_set",
        )  # fmt: skip

    @property
    def name_hash(self) -> NDArray[np.uint64]:
        """Hashes of names: uint64[capacity]; computes those of rows added since the last use."""
        new = self.names[self._hashed : self.size]
        if new:
            self._name_hash[self._hashed : self.size] = name_hashes(new)
            self._hashed = self.size
        return self._name_hash

    def set_hashes(self, hashes: NDArray[np.uint64]) -> None:
        """Set the hashes of all rows."""
        assert self.capacity >= len(hashes), "rows have no room yet"
        self._name_hash[: len(hashes)] = hashes
        self._hashed = len(hashes)

    def node(self, row: int) -> NodeFacts:
        """Return the facts of a row's node, with its name."""
        facts = self.facts[row]
        return facts if facts.name else named_node(facts, self.names[row])

    def count_class(self, pod_class: PodClass, change: int) -> None:
        """Count pods of a class as added or, with a negative change, removed."""
        count = self.class_counts.get(pod_class, 0) + change
        assert count >= 0, f"fewer than no pods of {pod_class!r}"
        self.changes += 1
        # Removed first, so that the class moves to the end: `class_changed` is in order of change.
        self.class_changed.pop(pod_class, None)
        self.class_changed[pod_class] = self.changes
        if count:
            self.class_counts[pod_class] = count
        else:
            del self.class_counts[pod_class]

    def fit_resources(self) -> None:
        """Extend `allocatable` and `requested` to all known resources; new ones start at 0."""
        missing = len(self.classes.resources) - len(self.allocatable)
        if missing > 0:
            empty = np.zeros((missing, self.capacity), dtype=np.int64)
            self.allocatable = np.concatenate([self.allocatable, empty])
            self.requested = np.concatenate([self.requested, empty])

    def fit_rows(self, rows: int) -> None:
        """Grow the columns to at least `rows` rows."""
        if rows <= self.capacity:
            return
        capacity = max(rows, 2 * self.capacity)
        for name in self.numeric_columns():
            old = getattr(self, name)
            new = np.zeros((*old.shape[:-1], capacity), dtype=old.dtype)
            new[..., : self.capacity] = old
            setattr(self, name, new)
        for column in self.labels.values():
            column.grow(capacity)
        self.capacity = capacity

    def label(self, key: str) -> LabelColumn:
        """Return the column of a label key; all `MISSING` for a key that no node has had."""
        column = self.labels.get(key)
        if column is None:
            column = self.labels[key] = LabelColumn(self.capacity)
        # Labels whose value is the node's own name, as the hostname, get codes only now.
        column.encode_own_names(self.names)
        return column

    def move_row(self, source: int, target: int) -> None:
        """Copy every column of one row over another."""
        # All rows below `_hashed` must have their hashes, and the source may have none yet.
        if source >= self._hashed > target:
            self._name_hash[source] = name_hash(self.names[source])
        for name in self.numeric_columns():
            array = getattr(self, name)
            array[..., target] = array[..., source]
        for column in self.labels.values():
            column.codes[target] = column.codes[source]
        self.names[target] = self.names[source]
        self.facts[target] = self.facts[source]
        self.pods[target] = self.pods[source]

    def clear_row(self, row: int) -> None:
        """Clear the last row, so that reuse starts from zeros."""
        self._hashed = min(self._hashed, row)
        for name in self.numeric_columns():
            getattr(self, name)[..., row] = 0
        for column in self.labels.values():
            column.codes[row] = MISSING
