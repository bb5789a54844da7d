"""Revisions: which of two messages about one node or pod is older, in any order of receipt.

The client that changes the cluster numbers its removals and updates. The revision of a message is
the number of the client's last removal or update, that of the message included; an addition has no
number of its own. So a late copy of an addition that was sent before a removal is ignored, and so
is a late copy of the removal after the name was added again. Senders that number nothing use
revision 0: their removals always apply, their additions only to names without a revision.

A name is gone if it was removed with a revision and not added again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np

from roadstead.facts.node_list import NodeList

MAX_REMEMBERED = 1 << 20
"""Maximum number of names; beyond it, the name whose revision was recorded first is forgotten."""


class Revisions:
    """The last revision of each name (of a node, or UID of a pod), up to MAX_REMEMBERED names.

    latest: the highest revision that was ever recorded.
    """

    def __init__(self) -> None:
        # Name → revision.
        self._last: OrderedDict[str, int] = OrderedDict()
        # Names that were removed with a revision and not added again.
        self._gone: set[str] = set()
        self.latest = 0

    def of(self, name: str) -> int:
        """Return the last revision of a name; 0 for one that never changed."""
        return self._last.get(name, 0)

    def is_gone(self, name: str) -> bool:
        """Whether the name was removed and not added again."""
        return name in self._gone

    def apply_addition(self, name: str, revision: int = 0) -> bool:
        """Apply an addition or change; return False if it is outdated. revision: 0 for none."""
        if revision < self.of(name):
            return False
        self._record(name, revision)
        self._gone.discard(name)
        return True

    def apply_additions(self, names: Sequence[str], revision: int = 0) -> list[int] | None:
        """Apply additions; return the indices of those not outdated; None for all of them."""
        # Without any recorded revision, no name can be outdated, and revision 0 records none.
        if revision == 0 and not self._gone and not self._last:
            return None
        indices = [index for index, name in enumerate(names) if self.apply_addition(name, revision)]
        return None if len(indices) == len(names) else indices

    def apply_removal(self, name: str, revision: int = 0) -> bool:
        """Apply a removal; return False if it is outdated.

        After a removal without a revision, any message may add the name again.
        """
        if revision == 0:
            self._last.pop(name, None)
            self._gone.discard(name)
            return True
        if revision <= self.of(name):
            return False
        self._record(name, revision)
        self._gone.add(name)
        return True

    def apply_unsent_removal(self, name: str) -> None:
        """Apply a removal without a message (an eviction); earlier messages no longer apply."""
        if name not in self._gone:
            self._record(name, self.of(name) + 1)
            self._gone.add(name)

    def apply_removals(self, names: Iterable[str], revision: int) -> list[str]:
        """Apply removals; return the names that are removed, by this call or an earlier one.

        Without a revision the removals count as removals without a message
        (`apply_unsent_removal`).
        """
        if revision:
            return [
                name for name in names if self.apply_removal(name, revision) or name in self._gone
            ]
        for name in (names := list(names)):
            self.apply_unsent_removal(name)
        return names

    def merge(self, revisions: Iterable[tuple[str, int]], gone: Iterable[str] = ()) -> None:
        """Merge revisions of another instance. gone: those of the names that `is_gone` there."""
        gone = frozenset(gone)
        for name, revision in revisions:
            known = self.of(name)
            if revision < known:
                continue
            # With equal revisions, an addition follows the removal, as in `apply_addition`.
            if revision > known and name in gone:
                self._gone.add(name)
            elif name not in gone:
                self._gone.discard(name)
            self._record(name, revision)

    def gone(self) -> tuple[str, ...]:
        """Return the names that were removed with a revision and not added again, in any order."""
        return tuple(self._gone)

    def all(self) -> tuple[tuple[str, int], ...]:
        """Return (name, revision) of each name, in the order in which they were recorded."""
        return tuple(self._last.items())

    def _record(self, name: str, revision: int) -> None:
        if revision:
            self.latest = max(self.latest, revision)
            self._last[name] = revision
            if len(self._last) > MAX_REMEMBERED:
                oldest, _ = self._last.popitem(last=False)
                self._gone.discard(oldest)


def newer_nodes(nodes: NodeList, revision: int, revisions: Revisions) -> NodeList:
    """Apply additions of nodes to `revisions`; return the nodes that are not outdated."""
    indices = revisions.apply_additions(nodes.names, revision)
    return nodes if indices is None else nodes.at(np.array(indices, dtype=np.intp))
