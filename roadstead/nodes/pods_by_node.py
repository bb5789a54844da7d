"""The node of each pod and, built on first use, the pods of each node.

Most runs never need the second: only preemption does, and nodes that are removed or return. A list
for each of a million nodes takes more memory than all other data about them, so the lists are built
by the first call that reads them, and maintained from then on.
"""

from __future__ import annotations

from collections.abc import Sequence


class PodsByNode:
    """UID → node (`node_of`), in order of arrival; read-only for callers.

    _pods_on: node → UIDs of its pods, as the keys of a dictionary; None before its first use.
    """

    __slots__ = ("_pods_on", "node_of")

    def __init__(self) -> None:
        self.node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, None]] | None = None

    def add(self, uid: str, node: str) -> None:
        """Add a pod that is on no node to a node."""
        self.node_of[uid] = node
        if self._pods_on is not None:
            self._pods_on.setdefault(node, {})[uid] = None

    def add_all(self, uids: Sequence[str], nodes: Sequence[str]) -> None:
        """Add pods that are on no node to nodes."""
        # Merging a dictionary into a large one is faster than inserting pairs.
        self.node_of |= dict(zip(uids, nodes, strict=True))
        if self._pods_on is not None:
            for uid, node in zip(uids, nodes, strict=True):
                self._pods_on.setdefault(node, {})[uid] = None

    def pop(self, uid: str) -> str:
        """Remove a pod; return the node it was on. KeyError if it is on none."""
        node = self.node_of.pop(uid)
        if self._pods_on is not None:
            pods = self._pods_on[node]
            del pods[uid]
            if not pods:
                del self._pods_on[node]
        return node

    def on(self, node: str) -> tuple[str, ...]:
        """Return the UIDs of the pods on a node, in order of arrival."""
        return tuple(self._lists().get(node, ()))

    def nodes(self) -> tuple[str, ...]:
        """Return the nodes that have pods."""
        return tuple(self._lists())

    def _lists(self) -> dict[str, dict[str, None]]:
        if self._pods_on is None:
            self._pods_on = {}
            for uid, name in self.node_of.items():
                self._pods_on.setdefault(name, {})[uid] = None
        return self._pods_on

    def validate(self) -> None:
        """Assert that both directions agree."""
        if self._pods_on is not None:
            listed = {uid: name for name, pods in self._pods_on.items() for uid in pods}
            assert listed == self.node_of, "pods by node and nodes by pod disagree"
            assert all(self._pods_on.values()), "an empty list of pods is kept"
