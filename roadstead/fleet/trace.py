"""A trace: a fleet of nodes and a stream of pods, as classes plus names.

This is Roadstead's own format. A million pods of fifty classes are fifty `PodFacts` and columns of
names, class numbers and times; a fleet is a few `NodeFacts` and its names. `trace_file` writes a
trace to one file, `trace_reader` and `trace_writer` stream traces that do not fit in memory,
`manifests` prints a trace as manifests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sized
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts, class_of_node
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import Labels, PodFacts, PodIdentity
from roadstead.protocol.errors import InputError, cut_short

NEVER_S = -1
"""The deletion time of a pod that is never deleted, the duration of one that does not end."""

NEVER_MS = -1
"""NEVER_S in a column of milliseconds."""

S_MS = 1_000
TIME_MAX_S = ((1 << 63) - 1) // 1_000_000_000
"""The longest time that int64 nanoseconds hold: 292 years."""

TIME_MAX_MS = TIME_MAX_S * S_MS


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Nodes and pods in order.

    source: origin of the trace, for people ("openb default").
    namespaces: (name, labels) of the namespaces of the pods.
    node_classes: facts without a name; `node_class` (int32[nodes]) is the class of each node.
    pod_classes: distinct facts; `pod_class` (int32[pods]) is the class of each pod.
    creation_ms, deletion_ms: int64[pods], milliseconds from the trace's start to the arrival of the
        pod and to its end in the recorded cluster; NEVER_MS for none.
    duration_ms: int64[pods], how long the pod runs once it started; NEVER_MS if it does not end.
        A simulation ends pods by it: `deletion_ms` includes the time that the pod waited in the
        recorded cluster.
    """

    source: str
    namespaces: tuple[tuple[str, Labels], ...]
    node_classes: tuple[NodeFacts, ...]
    node_names: tuple[str, ...]
    node_class: NDArray[np.int32]
    pod_classes: tuple[PodFacts, ...]
    pod_names: tuple[str, ...]
    pod_uids: tuple[str, ...]
    pod_class: NDArray[np.int32]
    creation_ms: NDArray[np.int64]
    deletion_ms: NDArray[np.int64]
    duration_ms: NDArray[np.int64]

    @property
    def creation_s(self) -> NDArray[np.float64]:
        """Seconds from the trace's start to each arrival: float64[pods]."""
        return self.creation_ms / S_MS

    @property
    def deletion_s(self) -> NDArray[np.float64]:
        """Seconds from the trace's start to each end: float64[pods]; NEVER_S for none."""
        return _seconds(self.deletion_ms)

    @property
    def duration_s(self) -> NDArray[np.float64]:
        """Seconds that each pod runs: float64[pods]; NEVER_S if it does not end."""
        return _seconds(self.duration_ms)

    def nodes(self) -> list[NodeFacts]:
        """Return the facts of every node, with its name."""
        return list(self.node_list())

    def node_list(self) -> NodeList:
        """Return the nodes as a list that builds each one on access."""
        return NodeList.from_columns(self.node_classes, self.node_names, self.node_class)

    def pods(self) -> Iterator[tuple[PodIdentity, PodFacts]]:
        """Yield every pod's identity and facts; pods of one class share one facts object."""
        classes = self.pod_classes
        rows = zip(self.pod_class.tolist(), self.pod_names, self.pod_uids, strict=True)
        for index, name, uid in rows:
            facts = classes[index]
            yield PodIdentity(uid, facts.namespace, name), facts

    def validate(self) -> None:
        """Check that the columns are consistent.

        Raises InputError if columns differ in length, an index is out of range, two nodes or two
        pods share a name, two pods share a UID, or a time is impossible.
        """
        check_length("nodes.class", self.node_class, self.node_names)
        check_length("pods.class", self.pod_class, self.pod_names)
        check_length("pods.uid", self.pod_uids, self.pod_names)
        check_length("pods.creation_ms", self.creation_ms, self.pod_names)
        check_length("pods.deletion_ms", self.deletion_ms, self.pod_names)
        check_length("pods.duration_ms", self.duration_ms, self.pod_names)
        check_codes("nodes.class", self.node_class, len(self.node_classes))
        check_codes("pods.class", self.pod_class, len(self.pod_classes))
        check_times(self.creation_ms, self.deletion_ms, self.duration_ms)
        _check_unique("nodes.name", list(self.node_names))
        _check_unique("pods.name", [identity.key for identity, _ in self.pods()])
        _check_unique("pods.uid", list(self.pod_uids))


def check_length(field_name: str, column: Sized, names: Sized) -> None:
    """Raise InputError unless a column has an entry for each name.

    field_name: of the column, for the error, as "pods.class".
    """
    if len(column) != len(names):
        table = field_name.partition(".")[0]
        problem = f"has {len(column)} entries for {len(names)} {table}"
        raise InputError(problem, field=field_name)


def check_codes(field_name: str, column: NDArray[np.int32], classes: int) -> None:
    """Raise InputError unless all entries are indices into this number of classes."""
    wrong = np.flatnonzero((column < 0) | (column >= classes))
    if wrong.size:
        value = str(int(column[wrong[0]]))
        raise InputError(f"is not one of the {classes} classes", field=field_name, value=value)


def check_times(
    creation_ms: NDArray[np.int64], deletion_ms: NDArray[np.int64], duration_ms: NDArray[np.int64]
) -> None:
    """Raise InputError unless all times are possible."""
    columns = {"creation_ms": creation_ms, "deletion_ms": deletion_ms, "duration_ms": duration_ms}
    for name, column in columns.items():
        lowest = 0 if name == "creation_ms" else NEVER_MS
        _check_range(f"pods.{name}", column, lowest)
    if ((deletion_ms < creation_ms) & (deletion_ms != NEVER_MS)).any():
        raise InputError("must not be before the creation", field="pods.deletion_ms")


def _check_range(field_name: str, column: NDArray[np.int64], lowest: int) -> None:
    wrong = np.flatnonzero((column < lowest) | (column > TIME_MAX_MS))
    if wrong.size:
        value = int(column[wrong[0]])
        problem = "must not be negative" if value < 0 else f"is more than {TIME_MAX_MS} (292 years)"
        raise InputError(problem, field=field_name, value=str(value))


def _seconds(column: NDArray[np.int64]) -> NDArray[np.float64]:
    seconds: NDArray[np.float64] = np.where(column == NEVER_MS, float(NEVER_S), column / S_MS)
    return seconds


def _check_unique(field_name: str, names: list[str]) -> None:
    if len(set(names)) != len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError("is there twice", field=field_name, value=cut_short(twice))


@dataclass(slots=True)
class TraceBuilder:
    """Builder that adds nodes and pods one by one; equal facts become one class."""

    source: str
    namespaces: dict[str, Labels] = field(default_factory=dict)
    _node_codes: dict[NodeFacts, int] = field(default_factory=dict)
    _node_names: list[str] = field(default_factory=list)
    _node_class: list[int] = field(default_factory=list)
    _pod_codes: dict[PodFacts, int] = field(default_factory=dict)
    _pod_names: list[str] = field(default_factory=list)
    _pod_uids: list[str] = field(default_factory=list)
    _pod_class: list[int] = field(default_factory=list)
    _creation_ms: list[int] = field(default_factory=list)
    _deletion_ms: list[int] = field(default_factory=list)
    _duration_ms: list[int] = field(default_factory=list)

    def add_node(self, facts: NodeFacts) -> None:
        node_class = class_of_node(facts)
        self._node_names.append(facts.name)
        self._node_class.append(self._node_codes.setdefault(node_class, len(self._node_codes)))

    def add_pod(
        self,
        name: str,
        uid: str,
        facts: PodFacts,
        creation_s: float = 0,
        deletion_s: float = NEVER_S,
        duration_s: float | None = None,
    ) -> None:
        """Add a pod. duration_s: None for all the time between creation and deletion."""
        if duration_s is None:
            duration_s = NEVER_S if deletion_s == NEVER_S else deletion_s - creation_s
        self._pod_names.append(name)
        self._pod_uids.append(uid)
        self._pod_class.append(self._pod_codes.setdefault(facts, len(self._pod_codes)))
        self._creation_ms.append(round(creation_s * S_MS))
        self._deletion_ms.append(milliseconds(deletion_s))
        self._duration_ms.append(milliseconds(duration_s))

    def build(self) -> Trace:
        """Build the trace; InputError if it is inconsistent."""
        trace = Trace(
            source=self.source,
            namespaces=tuple(sorted(self.namespaces.items())),
            node_classes=tuple(self._node_codes),
            node_names=tuple(self._node_names),
            node_class=np.array(self._node_class, dtype=np.int32),
            pod_classes=tuple(self._pod_codes),
            pod_names=tuple(self._pod_names),
            pod_uids=tuple(self._pod_uids),
            pod_class=np.array(self._pod_class, dtype=np.int32),
            creation_ms=np.array(self._creation_ms, dtype=np.int64),
            deletion_ms=np.array(self._deletion_ms, dtype=np.int64),
            duration_ms=np.array(self._duration_ms, dtype=np.int64),
        )
        trace.validate()
        return trace


def milliseconds(seconds: float) -> int:
    """Return seconds as milliseconds; NEVER_MS for NEVER_S."""
    return NEVER_MS if seconds == NEVER_S else round(seconds * S_MS)
