"""Which of two messages about one node or pod is older, whatever order they arrive in.

Whoever changes the cluster counts its removals and changes, and stamps what it sends with the
count. A late copy of what came before a removal is then no news, and neither is a late copy of the
removal when the name is there again. 0 is for senders that do not count; it is news always, but
for names that a counted removal took away.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np

from roadstead.facts.node_list import NodeList

MAX_REMEMBERED = 1 << 20


class Revisions:
    """The last revision by name, of names that ever had one. latest: the highest ever seen."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, int] = OrderedDict()
        self._gone: set[str] = set()
        self.latest = 0

    def of(self, name: str) -> int:
        """The last revision of a name; 0 for one that never changed."""
        return self._last.get(name, 0)

    def is_gone(self, name: str) -> bool:
        """Whether this went, and did not come again."""
        return name in self._gone

    def comes(self, name: str, revision: int = 0) -> bool:
        """Whether it is news that this is there, as of a revision."""
        if revision < self.of(name):
            return False
        self._note(name, revision)
        self._gone.discard(name)
        return True

    def coming(self, names: Sequence[str], revision: int = 0) -> list[int] | None:
        """Places of the names whose being there is news, as of a revision; None for all of them."""
        if revision == 0 and not self._gone and not self._last:
            return None
        places = [place for place, name in enumerate(names) if self.comes(name, revision)]
        return None if len(places) == len(names) else places

    def goes(self, name: str, revision: int = 0) -> bool:
        """Whether it is news that this is gone; uncounted, the name may come again at once."""
        if revision == 0:
            self._last.pop(name, None)
            return True
        if revision <= self.of(name):
            return False
        self._note(name, revision)
        self._gone.add(name)
        return True

    def ends(self, name: str) -> None:
        """This is gone by our own doing, and what came before it comes no more."""
        if name not in self._gone:
            self._note(name, self.of(name) + 1)
            self._gone.add(name)

    def leaves(self, names: Iterable[str], revision: int) -> list[str]:
        """Of these names, those that are gone: by a counted removal, or by our own doing."""
        if revision:
            return [name for name in names if self.goes(name, revision) or name in self._gone]
        for name in (names := list(names)):
            self.ends(name)
        return names

    def learn(self, revisions: Iterable[tuple[str, int]]) -> None:
        """What another one knew."""
        for name, revision in revisions:
            self._note(name, max(revision, self.of(name)))

    def all(self) -> tuple[tuple[str, int], ...]:
        return tuple(self._last.items())

    def _note(self, name: str, revision: int) -> None:
        if revision:
            self.latest = max(self.latest, revision)
            self._last[name] = revision
            if len(self._last) > MAX_REMEMBERED:
                oldest, _ = self._last.popitem(last=False)
                self._gone.discard(oldest)


def newer_nodes(nodes: NodeList, revision: int, known: Revisions) -> NodeList:
    """The nodes that are not older than what is known."""
    places = known.coming(nodes.names, revision)
    return nodes if places is None else nodes.at(np.array(places, dtype=np.intp))
