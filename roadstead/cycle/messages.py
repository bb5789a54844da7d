"""What schedulers ask workers about classes of pods, and what they answer.

Every message may come twice, since nothing in it changes the worker's state. Pods travel as
classes; a class is known by its place in the request.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.protocol.status import Code, Status


@dataclass(frozen=True, slots=True)
class WireStatus:
    """A Status as it travels."""

    code: int
    reasons: tuple[str, ...]
    plugin: str

    @staticmethod
    def of(status: Status) -> WireStatus:
        return WireStatus(int(status.code), status.reasons, status.plugin)

    def status(self) -> Status:
        """The Status that was sent. Raises ValueError for an unknown code."""
        return Status(Code(self.code), self.reasons, self.plugin)


@dataclass(frozen=True, slots=True)
class ScoreAsk:
    """Scheduler → worker: what users' plugins say of classes on your rows. Twice is no harm.

    seq: the number of the last change that the scheduler's table holds. node_count: of the cluster.
    classes: as bytes (see `roadstead.facts.wire`).
    """

    seq: int
    node_count: int
    classes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PluginColumn:
    """What one plugin says of one class. point: Filter or Score.

    data: codes into `statuses` from 1 on (0 passes), or raw scores: a value for each row in order
    of arrival, integers of `size` bytes each; of size 0 it is one value for all, in 8 bytes.
    """

    plugin: str
    point: str
    size: int
    data: bytes
    statuses: tuple[WireStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreAnswer:
    """Worker → scheduler, of the table after change `seq`.

    rows, digest: which rows these are (see `roadstead.cycle.worker_rows.digest_of`).
    touched: int64[k], arrivals of rows that changed since the ask's `seq`; None where unknown.
    classes: no column of a plugin that said Skip, or failed. spent_s: with the plugins.
    """

    seq: int
    rows: int
    digest: int
    touched: bytes | None
    classes: tuple[tuple[PluginColumn, ...], ...]
    spent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RankAsk:
    """Scheduler → worker: the best of your rows for classes of one pod each. Twice is no harm.

    seq: the number of the last change that the scheduler's table holds. apart: int64[k], arrivals
    of rows that it has otherwise, which are left out. draws: uint64[class]. most: rows of each.
    """

    seq: int
    apart: bytes
    classes: tuple[bytes, ...]
    draws: bytes
    most: int


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """Worker → scheduler, of rows that neither `apart` nor `touched` leave out.

    rows, digest: which rows the worker has. touched: int64[k], arrivals of rows that changed since
    the ask's `seq`; None where unknown, or where the worker is behind it.
    places, totals: int32[class, most + 1], the best rows by their places in order of arrival, and
    their totals; the last of them bounds what is not listed, by its total and its rank.
    counts: int64[class], how many of them there are. ranks: uint64[class], the last one's.
    told: int64[class, 3], the highest total, how many rows have it, how many are feasible.
    is_told: bool[class], whether the class is one of which lists may decide.
    """

    rows: int
    digest: int
    touched: bytes | None
    places: bytes = b""
    totals: bytes = b""
    counts: bytes = b""
    ranks: bytes = b""
    told: bytes = b""
    is_told: bytes = b""
