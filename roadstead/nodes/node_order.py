"""The order in which nodes are searched: round robin over zones.

    zone a: n1 n4 n5            n1 n2 n3 n4 n6 n5
    zone b: n2 n6         ──►   (first of each zone, second of each zone, …)
    zone c: n3

Zones are in order of their first node, nodes of a zone in order of their arrival in it. As in
upstream's snapshot, the order changes only when nodes are added or removed: a node that merely
changed its zone keeps its place until then.

Upstream: pkg/scheduler/backend/cache/node_tree.go and cache.go (UpdateSnapshot,
updateNodeInfoSnapshotList).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest


class NodeTree:
    """Nodes by zone, as the keys of dictionaries in order; `version` grows with every change.

    Bulk additions, and single additions after them, are collected and applied when the order is
    read or a node is removed: each node table has a tree, and the order of most is never read.
    """

    __slots__ = ("_pending", "_zone_of", "_zones", "version")

    def __init__(self) -> None:
        self.version = 0
        self._zones: dict[str, dict[str, None]] = {}
        self._zone_of: dict[str, str] = {}
        self._pending: list[tuple[Sequence[str], Sequence[str]]] = []

    def __len__(self) -> int:
        self._apply_pending()
        return len(self._zone_of)

    def __contains__(self, name: str) -> bool:
        self._apply_pending()
        return name in self._zone_of

    def put(self, name: str, zone: str) -> None:
        """Add or update a node; a node with another zone moves to the end of the new zone."""
        if self._pending:
            self.put_all((name,), (zone,))
        else:
            self._put(name, zone)

    def put_all(self, names: Sequence[str], zones: Sequence[str]) -> None:
        """Add or update nodes, in order, as `put` does."""
        self._pending.append((names, zones))
        self.version += 1

    def _apply_pending(self) -> None:
        pending, self._pending = self._pending, []
        version = self.version
        for names, zones in pending:
            for name, zone in zip(names, zones, strict=True):
                self._put(name, zone)
        # `put_all` has counted these changes already.
        self.version = version

    def _put(self, name: str, zone: str) -> None:
        known = self._zone_of.get(name)
        if known == zone:
            return
        if known is not None:
            self._remove(name)
        self._zone_of[name] = zone
        self._zones.setdefault(zone, {})[name] = None
        self.version += 1

    def remove(self, name: str) -> None:
        """Remove a node, and its zone if it was the last one. KeyError for an unknown node."""
        self._apply_pending()
        self._remove(name)

    def _remove(self, name: str) -> None:
        zone = self._zone_of.pop(name)
        del self._zones[zone][name]
        if not self._zones[zone]:
            del self._zones[zone]
        self.version += 1

    def listed(self) -> tuple[str, ...]:
        """Return all names, round robin over zones."""
        self._apply_pending()
        rounds = zip_longest(*self._zones.values())
        return tuple(name for name in chain.from_iterable(rounds) if name is not None)


class NodeOrder:
    """The order of a tree's nodes as of the last snapshot: `names`, and `_known`, the same set."""

    __slots__ = ("_known", "_version", "names")

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self._known: frozenset[str] = frozenset()
        self._version = -1

    def snapshot(self, tree: NodeTree) -> tuple[str, ...]:
        """Take a snapshot at the start of a cycle, and return the order."""
        if tree.version != self._version:
            self._version = tree.version
            self.renew(tree.listed())
        return self.names

    def renew(self, listed: tuple[str, ...]) -> None:
        """Replace the order by a tree's list if nodes were added or removed."""
        known = frozenset(listed)
        if known != self._known:
            self.names, self._known = listed, known
