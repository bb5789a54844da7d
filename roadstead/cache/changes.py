"""Changes: the interface through which the cache passes on what changes, in order.

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
    """Receives each change once, after the state of the cache has it. Sequences may be empty.

    A method may raise RoadsteadError where nobody can receive changes any more; what the cache
    changed stays changed.
    """

    def send(self, deltas: Sequence[Delta]) -> None:
        """Nodes, pods and nominations changed."""
        ...

    def send_nodes(self, nodes: NodeList) -> None:
        """Nodes were added, of which nothing was known; they are the last of the table."""
        ...

    def send_storage(self, changes: Sequence[StorageChange]) -> None:
        """Claims and volumes changed."""
        ...

    def send_versions(self, rows: Sequence[RowVersion]) -> None:
        """Rows have new versions, which count all changes sent before."""
        ...
