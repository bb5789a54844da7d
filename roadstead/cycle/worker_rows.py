"""Which rows a worker has: every Nth by arrival, which schedulers know without asking."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from roadstead.nodes.columns import I64
from roadstead.nodes.table import NodeTable, Rows


def digest_of(arrivals: I64) -> int:
    """What two tables compare to know that they speak of the same rows. arrivals: in order."""
    return crc32(arrivals.astype(np.int64).tobytes())


class OwnRows:
    """The rows of a worker's table in order of arrival."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._order: Rows = np.zeros(0, np.intp)
        self._ordered = -1
        self._digest = digest_of(np.zeros(0, np.int64))

    @property
    def digest(self) -> int:
        """Of the rows in order."""
        self._sort()
        return self._digest

    @property
    def order(self) -> Rows:
        """The rows in order: int[place]."""
        self._sort()
        return self._order

    def places(self) -> I64:
        """The place of each row: int64[row]."""
        self._sort()
        result = np.empty(len(self._order), np.int64)
        result[self._order] = np.arange(len(self._order))
        return result

    def _sort(self) -> None:
        if self._ordered != self._table.node_version:
            self._order = np.argsort(self._table.arrivals, kind="stable")
            self._digest = digest_of(self._table.arrivals[self._order])
            self._ordered = self._table.node_version


class WorkerRows:
    """The rows of each of some workers on a table that holds all nodes.

    Worker k of n holds the nodes whose arrival number leaves k when divided by n.
    """

    def __init__(self, table: NodeTable, workers: int) -> None:
        self.table = table
        self._workers = workers
        self._version = -1
        self._rows: list[Rows] = []
        self._digests: list[int] = []

    @property
    def node_version(self) -> int:
        """Of the table of which the rows were found."""
        self._divide()
        return self._version

    def asked(self) -> list[int]:
        """The workers that hold any rows."""
        self._divide()
        return [worker for worker, rows in enumerate(self._rows) if len(rows)]

    def most_rows(self) -> int:
        """How many rows a worker holds at most."""
        self._divide()
        return max(map(len, self._rows))

    def of(self, worker: int) -> Rows:
        """A worker's rows, in order of arrival."""
        self._divide()
        return self._rows[worker]

    def agrees(self, worker: int, rows: int, digest: int) -> bool:
        """Whether a worker speaks of these rows."""
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
