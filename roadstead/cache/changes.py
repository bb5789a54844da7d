"""Changes: the interface to which the cache sends all changes, in order.

The version of a row is the number of the last commit that changed it (`row_versions.py`).

`actors/cache/stream.py` numbers changes and sends them to all schedulers and workers; a run in one
process may apply them to its node table at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from roadstead.cache.row_versions import RowVersion
from roadstead.facts.node_list import NodeList
from roadstead.placements import Delta
from roadstead.storage import StorageChange


class Changes(Protocol):
    """Receive each change once, after the cache has applied it. Sequences may be empty.

    A method may raise RoadsteadError if there is no receiver left; the cache keeps the change.
    """

    def send(self, deltas: Sequence[Delta]) -> None:
        """Send changes of nodes, pods and nominations."""
        ...

    def send_nodes(self, nodes: NodeList) -> None:
        """Send new nodes; they are the last rows of the table."""
        ...

    def send_storage(self, changes: Sequence[StorageChange]) -> None:
        """Send changes of claims and volumes."""
        ...

    def send_versions(self, rows: Sequence[RowVersion]) -> None:
        """Send new versions of rows, which include all changes sent before."""
        ...
