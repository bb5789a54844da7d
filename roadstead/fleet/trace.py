"""A trace: a fleet of nodes and a stream of pods, as classes plus names.

This is the run's own input format. A million pods of fifty classes are fifty `PodFacts` and columns
of names, class numbers and times; a fleet is a few `NodeFacts` and its names. `trace_file` writes a
trace to one file, `manifests` prints it as manifests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts, class_of_node
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import Labels, PodFacts, PodIdentity
from roadstead.protocol.errors import InputError, cut_short

NEVER_S = -1
"""The deletion time of a pod that is never deleted."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Nodes and pods in order.

    source: origin of the trace, for people ("openb default").
    namespaces: (name, labels) of the namespaces of the pods.
    node_classes: facts without a name; `node_class` (int32[nodes]) is the class of each node.
    pod_classes: distinct facts; `pod_class` (int32[pods]) is the class of each pod.
    creation_s, deletion_s: int64[pods], seconds from the trace's start; NEVER_S for none.
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
    creation_s: NDArray[np.int64]
    deletion_s: NDArray[np.int64]

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
        pods, nodes = len(self.pod_names), len(self.node_names)
        _check_length("nodes", "class", len(self.node_class), nodes)
        _check_length("pods", "class", len(self.pod_class), pods)
        _check_length("pods", "uid", len(self.pod_uids), pods)
        _check_length("pods", "creation_s", len(self.creation_s), pods)
        _check_length("pods", "deletion_s", len(self.deletion_s), pods)
        _check_codes("nodes.class", self.node_class, len(self.node_classes))
        _check_codes("pods.class", self.pod_class, len(self.pod_classes))
        _check_times(self.creation_s, self.deletion_s)
        _check_unique("nodes.name", list(self.node_names))
        _check_unique("pods.name", [identity.key for identity, _ in self.pods()])
        _check_unique("pods.uid", list(self.pod_uids))


def _check_length(table: str, column: str, length: int, count: int) -> None:
    if length != count:
        raise InputError(f"has {length} entries for {count} {table}", field=f"{table}.{column}")


def _check_codes(field_name: str, column: NDArray[np.int32], classes: int) -> None:
    wrong = np.flatnonzero((column < 0) | (column >= classes))
    if wrong.size:
        value = str(int(column[wrong[0]]))
        raise InputError(f"is not one of the {classes} classes", field=field_name, value=value)


def _check_times(creation_s: NDArray[np.int64], deletion_s: NDArray[np.int64]) -> None:
    if (creation_s < 0).any():
        raise InputError("must not be negative", field="pods.creation_s")
    if ((deletion_s < creation_s) & (deletion_s != NEVER_S)).any():
        raise InputError("must not be before the creation", field="pods.deletion_s")


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
    _creation_s: list[int] = field(default_factory=list)
    _deletion_s: list[int] = field(default_factory=list)

    def add_node(self, facts: NodeFacts) -> None:
        node_class = class_of_node(facts)
        self._node_names.append(facts.name)
        self._node_class.append(self._node_codes.setdefault(node_class, len(self._node_codes)))

    def add_pod(
        self, name: str, uid: str, facts: PodFacts, creation_s: int = 0, deletion_s: int = NEVER_S
    ) -> None:
        self._pod_names.append(name)
        self._pod_uids.append(uid)
        self._pod_class.append(self._pod_codes.setdefault(facts, len(self._pod_codes)))
        self._creation_s.append(creation_s)
        self._deletion_s.append(deletion_s)

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
            creation_s=np.array(self._creation_s, dtype=np.int64),
            deletion_s=np.array(self._deletion_s, dtype=np.int64),
        )
        trace.validate()
        return trace
