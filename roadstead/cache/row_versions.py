"""Versions of nodes' rows on their way: from the binder's answers over the cache to all schedulers.

    binder ── answer ──► scheduler ── Settle ──► cache ── delta ──► every scheduler ─┐
       ▲                                                                             │
       └──────────────────────────────── bind ───────────────────────────────────────┘

What a version is, and why a scheduler that has one has all that it counts, is in
`roadstead.binder.rows` and docs/decisions/0015-versions-are-record-numbers.md.
"""

from __future__ import annotations

from collections.abc import Iterable

RowVersion = tuple[str, int]
"""Node, and the version of its row."""


class KnownVersions:
    """The newest version of each row that was told; nothing where only fit matters."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def take(self, told: Iterable[RowVersion]) -> list[RowVersion]:
        """Takes what is told; what of it is news."""
        news = {}
        for node_name, version in told:
            if version > self._known.get(node_name, 0):
                self._known[node_name] = news[node_name] = version
        return list(news.items())

    def among(self, node_names: Iterable[str]) -> list[RowVersion]:
        """What is known of some nodes."""
        known = self._known
        return [(name, known[name]) for name in node_names if name in known]

    def drop(self, node_name: str) -> None:
        """A node is gone."""
        self._known.pop(node_name, None)
