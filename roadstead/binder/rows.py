"""The last change of each node and its author, to find decisions based on an older state.

The version of a node's row is the number of the record (LSN) that changed it last: it only grows,
also over a recovery, and is the same at binder, cache, workers and schedulers. A scheduler knows
its own binds before they are committed, so its decisions never miss them: for each row, the last
change is kept, and the last one by another owner.

Upstream: none; coarse-grained conflict detection of Omega (Schwarzkopf et al., EuroSys 2013, 5.2).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

MAX_REMOVED: Final = 1 << 16
"""Removed nodes whose rows are kept; beyond it, the row of the node removed first is dropped."""

Row = tuple[int, str, int]
"""(version of the last change, its owner, version of the last change by any other owner)."""

_UNCHANGED: Final[Row] = (0, "", 0)


class RowVersions:
    """Versions of rows by node name; 0 for a node that has not changed yet.

    The row of a removed node is kept, because a node of this name may be added again.
    """

    __slots__ = ("_removed", "_rows")

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        # Names of removed nodes, in the order of their removal.
        self._removed: OrderedDict[str, None] = OrderedDict()

    def changed(self, node_name: str, version: int, owner: str = "") -> None:
        """Note a change of a row by a record. owner: the scheduler that bound; "" for none."""
        last, last_owner, by_others = self._rows.get(node_name, _UNCHANGED)
        if not owner or owner != last_owner:
            by_others = last
        self._rows[node_name] = version, owner, by_others

    def removed(self, node_name: str, version: int) -> None:
        """Note the removal of a node by a record, a change without an owner."""
        self.changed(node_name, version)
        self._removed[node_name] = None
        if len(self._removed) > MAX_REMOVED:
            oldest, _ = self._removed.popitem(last=False)
            self._rows.pop(oldest, None)

    def added(self, node_names: Iterable[str]) -> None:
        """Keep the rows of nodes that are there again."""
        if self._removed:
            for name in node_names:
                self._removed.pop(name, None)

    def row(self, node_name: str) -> Row | None:
        """Return the state of a row, to be restored by `restore`."""
        return self._rows.get(node_name)

    def restore(self, node_name: str, row: Row | None) -> None:
        """Restore a row to the state that `row` returned."""
        if row is None:
            self._rows.pop(node_name, None)
        else:
            self._rows[node_name] = row

    def of(self, node_name: str) -> int:
        """Return the version of a row."""
        return self._rows.get(node_name, _UNCHANGED)[0]

    def changed_by_others(self, node_name: str, owner: str, read_version: int) -> bool:
        """Whether others than `owner` changed the row after `read_version`."""
        last, last_owner, by_others = self._rows.get(node_name, _UNCHANGED)
        return (by_others if owner == last_owner else last) > read_version
