"""The order in which nodes are looked at: zone by zone in turn, renewed as upstream's snapshot is.

    zone a: n1 n4 n5            n1 n2 n3 n4 n6 n5
    zone b: n2 n6         ──►   (first of each zone, second of each zone, …)
    zone c: n3

Zones stand in the order in which they came to have nodes, nodes of a zone in the order in which
they came to it. A snapshot takes the order anew only when it sees nodes come or go: a node that
merely changed its zone keeps its place until then.

Upstream: pkg/scheduler/backend/cache/node_tree.go and cache.go (UpdateSnapshot,
updateNodeInfoSnapshotList).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest


class NodeTree:
    """Nodes by zone; `version` grows with every change.

    What comes is only noted until somebody asks for the order: most tables are never asked.
    """

    __slots__ = ("_late", "_zone_of", "_zones", "version")

    def __init__(self) -> None:
        self.version = 0
        self._zones: dict[str, dict[str, None]] = {}
        self._zone_of: dict[str, str] = {}
        self._late: list[tuple[Sequence[str], Sequence[str]]] = []

    def __len__(self) -> int:
        self._settle()
        return len(self._zone_of)

    def __contains__(self, name: str) -> bool:
        self._settle()
        return name in self._zone_of

    def put(self, name: str, zone: str) -> None:
        """A node comes, or changes; one that changes its zone goes to the end of the new one."""
        if self._late:
            self.put_all((name,), (zone,))
        else:
            self._put(name, zone)

    def put_all(self, names: Sequence[str], zones: Sequence[str]) -> None:
        """Nodes come, as by `put`, in order."""
        self._late.append((names, zones))
        self.version += 1

    def _settle(self) -> None:
        late, self._late = self._late, []
        version = self.version
        for names, zones in late:
            for name, zone in zip(names, zones, strict=True):
                self._put(name, zone)
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
        """A node goes; a zone without nodes loses its turn. KeyError for an unknown node."""
        self._settle()
        self._remove(name)

    def _remove(self, name: str) -> None:
        zone = self._zone_of.pop(name)
        del self._zones[zone][name]
        if not self._zones[zone]:
            del self._zones[zone]
        self.version += 1

    def listed(self) -> tuple[str, ...]:
        """All names, zones in turn."""
        self._settle()
        turns = zip_longest(*self._zones.values())
        return tuple(name for name in chain.from_iterable(turns) if name is not None)


class NodeOrder:
    """The order that snapshots of a tree see. names: as of the last snapshot."""

    __slots__ = ("_known", "_version", "names")

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self._known: frozenset[str] = frozenset()
        self._version = -1

    def snapshot(self, tree: NodeTree) -> tuple[str, ...]:
        """The order of a cycle that begins now."""
        if tree.version != self._version:
            self._version = tree.version
            self.renew(tree.listed())
        return self.names

    def renew(self, listed: tuple[str, ...]) -> None:
        """Takes a tree's list where it has other nodes than were seen last."""
        known = frozenset(listed)
        if known != self._known:
            self.names, self._known = listed, known
