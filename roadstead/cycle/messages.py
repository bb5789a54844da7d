"""Requests of schedulers to workers about pod classes, and the answers.

Every message may be received twice, since none changes the worker's state. A request contains
classes in place of pods; a class is identified by its index in the request.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.protocol.status import Code, Status


@dataclass(frozen=True, slots=True)
class WireStatus:
    """A Status as it is sent."""

    code: int
    reasons: tuple[str, ...]
    plugin: str

    @staticmethod
    def of(status: Status) -> WireStatus:
        return WireStatus(int(status.code), status.reasons, status.plugin)

    def status(self) -> Status:
        """Return the Status that was sent. Raises ValueError for an unknown code."""
        return Status(Code(self.code), self.reasons, self.plugin)


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Scheduler → worker: evaluate users' plugins for classes on the worker's rows. Idempotent.

    seq: number of the last change in the scheduler's table. node_count: of the cluster.
    classes: their encoded facts (`roadstead.facts.wire`).
    """

    seq: int
    node_count: int
    classes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PluginColumn:
    """Results of one plugin for one class. point: Filter or Score.

    data: codes (0 passes, k is statuses[k - 1]), or raw scores: a value for each row in order of
    arrival, integers of `size` bytes each; if `size` is 0, one value for all rows, in 8 bytes.
    """

    plugin: str
    point: str
    size: int
    data: bytes
    statuses: tuple[WireStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreAnswer:
    """Worker → scheduler: the results for the worker's table after change `seq`.

    rows, digest: number and digest of the worker's rows (`roadstead.cycle.worker_rows.digest_of`).
    touched: int64[k], arrivals of rows that changed since the request's `seq`; None if unknown.
    classes: columns per class, none of a plugin that returned Skip or failed. spent_s: time spent
    in plugins.
    """

    seq: int
    rows: int
    digest: int
    touched: bytes | None
    classes: tuple[tuple[PluginColumn, ...], ...]
    spent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RankRequest:
    """Scheduler → worker: list the best of the worker's rows for classes. Idempotent.

    Of each class the scheduler's batch has one pod.

    seq: number of the last change in the scheduler's table. excluded: int64[k], arrivals of the
    rows that are not listed, because they differ in the scheduler's table from the cache's changes.
    draws: uint64[class], the pods' hashes for tie-breaks. most: maximum rows to list per class.
    """

    seq: int
    excluded: bytes
    classes: tuple[bytes, ...]
    draws: bytes
    most: int


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """Worker → scheduler: the best rows except those in `excluded` or `touched`.

    rows, digest: number and digest of the worker's rows. touched: int64[k], arrivals of rows that
    changed since the request's `seq`; None if unknown, or if the worker has not reached it.
    positions, totals: int32[class, most + 1], the best rows by position in order of arrival, and
    their totals; the last slot has the best row that is not listed, a bound for all others by total
    and rank. counts: int64[class], used slots. ranks: uint64[class], rank (in the tie-break) of the
    row in the last slot.
    summaries: int64[class, 3], the highest total, the number of rows with it, and the number of
    feasible rows.
    is_listed: bool[class], whether pods of the class may be decided by lists.
    """

    rows: int
    digest: int
    touched: bytes | None
    positions: bytes = b""
    totals: bytes = b""
    counts: bytes = b""
    ranks: bytes = b""
    summaries: bytes = b""
    is_listed: bytes = b""
