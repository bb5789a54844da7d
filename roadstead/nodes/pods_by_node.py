"""Which pod is on which node, and who is on a node once somebody asks for that.

Most runs never ask: only preemption does, and nodes that go or come back. A list for each of a
million nodes takes more memory than all else that is known of them, so the lists are made by the
first who asks, and kept from then on.
"""

from __future__ import annotations

from collections.abc import Sequence


class PodsByNode:
    """UID → node, in the order in which the pods came; not to be written to from outside."""

    __slots__ = ("_listed", "node_of")

    def __init__(self) -> None:
        self.node_of: dict[str, str] = {}
        self._listed: dict[str, dict[str, None]] | None = None

    def add(self, uid: str, node: str) -> None:
        """A pod that is nowhere comes to a node."""
        self.node_of[uid] = node
        if self._listed is not None:
            self._listed.setdefault(node, {})[uid] = None

    def add_all(self, uids: Sequence[str], nodes: Sequence[str]) -> None:
        """Pods that are nowhere come to nodes."""
        # A dictionary goes into a large one faster than pairs do.
        self.node_of |= dict(zip(uids, nodes, strict=True))
        if self._listed is not None:
            for uid, node in zip(uids, nodes, strict=True):
                self._listed.setdefault(node, {})[uid] = None

    def pop(self, uid: str) -> str:
        """A pod leaves; the node it was on. KeyError for one that is nowhere."""
        node = self.node_of.pop(uid)
        if self._listed is not None:
            here = self._listed[node]
            del here[uid]
            if not here:
                del self._listed[node]
        return node

    def on(self, node: str) -> tuple[str, ...]:
        """Who is on a node, in the order in which they came."""
        return tuple(self._lists().get(node, ()))

    def nodes(self) -> tuple[str, ...]:
        """The nodes on which there are pods."""
        return tuple(self._lists())

    def _lists(self) -> dict[str, dict[str, None]]:
        if self._listed is None:
            self._listed = {}
            for uid, name in self.node_of.items():
                self._listed.setdefault(name, {})[uid] = None
        return self._listed

    def validate(self) -> None:
        """Asserts that both directions agree."""
        if self._listed is not None:
            listed = {uid: name for name, pods in self._listed.items() for uid in pods}
            assert listed == self.node_of, "pods by node and nodes by pod disagree"
            assert all(self._listed.values()), "an empty list of pods is kept"
