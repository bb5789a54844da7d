"""KnownVersions: versions of rows, from the binder's answers through the cache to all schedulers.

    binder ── answer ──► scheduler ── UpdateAssumptions ──► cache ── delta ──► every scheduler ─┐
       ▲                                                                                        │
       └───────────────────────────────────────── bind ─────────────────────────────────────────┘

The version of a row is the number of the last journal record that changed its node or pods. With
the setting `conflicts: version` a bind names the version that its decision read, and is refused if
another scheduler has changed the row since. docs/decisions/0015-versions-are-record-numbers.md
explains why a scheduler that has a version also has all changes that it includes.
"""

from __future__ import annotations

from collections.abc import Iterable

RowVersion = tuple[str, int]
"""Node, and the version of its row."""


class KnownVersions:
    """The newest known version of each row; empty unless the run has `conflicts: version`."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def record(self, versions: Iterable[RowVersion]) -> list[RowVersion]:
        """Record versions; return those that are newer than the known ones."""
        newer = {}
        for node_name, version in versions:
            if version > self._known.get(node_name, 0):
                self._known[node_name] = newer[node_name] = version
        return list(newer.items())

    def of(self, node_names: Iterable[str]) -> list[RowVersion]:
        """Return the known versions of some nodes."""
        known = self._known
        return [(name, known[name]) for name in node_names if name in known]

    def drop(self, node_name: str) -> None:
        """Forget the version of a removed node."""
        self._known.pop(node_name, None)
