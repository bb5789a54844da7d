"""The rows of workers: every Nth node by arrival, so that a scheduler can compute them itself."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from roadstead.nodes.columns import I64
from roadstead.nodes.table import NodeTable, Rows


def digest_of(arrivals: I64) -> int:
    """Return a digest by which two tables check that they have the same rows. arrivals: sorted."""
    return crc32(arrivals.astype(np.int64).tobytes())


class RowsByArrival:
    """The rows of a worker's table in order of arrival.

    _ordered_at: the table's version of nodes for which _order and _digest are valid.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._order: Rows = np.zeros(0, np.intp)
        self._ordered_at = -1
        self._digest = digest_of(np.zeros(0, np.int64))

    @property
    def digest(self) -> int:
        """The digest of the rows in order of arrival."""
        self._sort()
        return self._digest

    @property
    def order(self) -> Rows:
        """The rows in order of arrival: int[position]."""
        self._sort()
        return self._order

    def positions(self) -> I64:
        """Return the position of each row in order of arrival: int64[row]."""
        self._sort()
        result = np.empty(len(self._order), np.int64)
        result[self._order] = np.arange(len(self._order))
        return result

    def _sort(self) -> None:
        if self._ordered_at != self._table.node_version:
            self._order = np.argsort(self._table.arrivals, kind="stable")
            self._digest = digest_of(self._table.arrivals[self._order])
            self._ordered_at = self._table.node_version


class WorkerRows:
    """The rows of each worker on a table that holds all nodes.

    Worker k of n has the nodes whose arrival modulo n is k.
    """

    def __init__(self, table: NodeTable, workers: int) -> None:
        self.table = table
        self._workers = workers
        self._version = -1
        self._rows: list[Rows] = []
        self._digests: list[int] = []

    @property
    def node_version(self) -> int:
        """The table's version of nodes for which the rows are valid."""
        self._divide()
        return self._version

    def with_rows(self) -> list[int]:
        """Return the workers that have rows."""
        self._divide()
        return [worker for worker, rows in enumerate(self._rows) if len(rows)]

    def max_rows(self) -> int:
        """Return the maximum number of rows of a worker."""
        self._divide()
        return max(map(len, self._rows))

    def of(self, worker: int) -> Rows:
        """Return a worker's rows in order of arrival."""
        self._divide()
        return self._rows[worker]

    def are_rows_of(self, worker: int, rows: int, digest: int) -> bool:
        """Whether a worker's rows, by their number and digest, are those of this table."""
        self._divide()
        return (rows, digest) == (len(self._rows[worker]), self._digests[worker])

    def _divide(self) -> None:
        if self._version == self.table.node_version:
            return
        arrivals: I64 = self.table.arrivals
        order = np.argsort(arrivals, kind="stable")
        worker_of = arrivals[order] % self._workers
        self._rows = [order[worker_of == worker] for worker in range(self._workers)]
        self._digests = [digest_of(arrivals[rows]) for rows in self._rows]
        self._version = self.table.node_version
