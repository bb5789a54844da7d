"""Lists of nodes as classes and names, in memory and in messages.

A node's class is its facts without its name, which is also removed from the hostname label
(`class_of_node`); a fleet of a million nodes has a few hundred classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts, class_of_node, named_node


@dataclass(frozen=True, slots=True)
class NodeList(Sequence[NodeFacts]):
    """Nodes in order; a node's facts are built on access.

    classes: facts without a name. class_of: the bytes of int32[node], indices into `classes`.
    Raises ValueError if the columns differ in length or an index is out of range.
    """

    classes: tuple[NodeFacts, ...] = ()
    names: tuple[str, ...] = ()
    class_of: bytes = b""

    def __post_init__(self) -> None:
        if len(self.class_of) != 4 * len(self.names):
            raise ValueError(f"{len(self.class_of)} bytes for the classes of {len(self.names)}")
        codes = self.codes
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(self.classes):
            raise ValueError(f"a node of none of the {len(self.classes)} classes")

    @staticmethod
    def of(nodes: Iterable[NodeFacts]) -> NodeList:
        """Build a list from single nodes; equal classes are merged."""
        if isinstance(nodes, NodeList):
            return nodes
        codes: dict[NodeFacts, int] = {}
        names, column = [], []
        for facts in nodes:
            names.append(facts.name)
            column.append(codes.setdefault(class_of_node(facts), len(codes)))
        return NodeList.from_columns(tuple(codes), names, np.array(column, dtype=np.int32))

    @staticmethod
    def from_columns(
        classes: tuple[NodeFacts, ...], names: Iterable[str], class_of: NDArray[np.integer]
    ) -> NodeList:
        """Build a list from columns. class_of: int[node]."""
        return NodeList(classes, tuple(names), class_of.astype(np.int32, copy=False).tobytes())

    @property
    def codes(self) -> NDArray[np.int32]:
        """Index of each node's class: int32[node]."""
        return np.frombuffer(self.class_of, dtype=np.int32)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> NodeFacts: ...
    @overload
    def __getitem__(self, index: slice) -> NodeList: ...
    def __getitem__(self, index: int | slice) -> NodeFacts | NodeList:
        if isinstance(index, slice):
            return NodeList.from_columns(self.classes, self.names[index], self.codes[index])
        return named_node(self.classes[self.codes[index]], self.names[index])

    def __iter__(self) -> Iterator[NodeFacts]:
        for code, name in zip(self.codes.tolist(), self.names, strict=True):
            yield named_node(self.classes[code], name)

    def at(self, indices: NDArray[np.intp]) -> NodeList:
        """Return the nodes at some indices, in their order."""
        names = [self.names[index] for index in indices.tolist()]
        return NodeList.from_columns(self.classes, names, self.codes[indices])
