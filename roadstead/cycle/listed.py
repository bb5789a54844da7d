"""Listed: the best rows that several workers found, as one list for a table's rows.

worker's list ──► of one state? ── yes ──► rows of this table, one bound for what nobody listed
                       └── no ──► its rows are left to the scheduler, where they are few
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from roadstead.config.settings import Settings
from roadstead.cycle.messages import RankAnswer
from roadstead.cycle.worker_rows import WorkerRows
from roadstead.kernel.arrays import END, NOWHERE, U64
from roadstead.kernel.lists import BestRows
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.table import Rows

LISTED_ROWS = 20_000
"""With so many nodes a look at all of them takes longer than to ask, send and read lists."""

MOST_APART = 4096
"""Rows that a scheduler looks at for each class beside the lists; with more it needs none."""


def may_list(settings: Settings) -> bool:
    """Whether schedulers decide by lists at all: the kernel does, where it draws among equals."""
    return settings.kernel and settings.tie_break == "random"


class _Part:
    """The answer of one worker, as arrays. ValueError where it does not fit its question."""

    def __init__(self, answer: RankAnswer, own: Rows, classes: int, most: int) -> None:
        shape = classes, most + 1
        self.places: I32 = np.frombuffer(answer.places, np.int32).reshape(shape)
        self.totals: I32 = np.frombuffer(answer.totals, np.int32).reshape(shape)
        self.counts: I64 = np.frombuffer(answer.counts, np.int64).reshape(classes)
        self.ranks: U64 = np.frombuffer(answer.ranks, np.uint64).reshape(classes)
        self.told: I64 = np.frombuffer(answer.told, np.int64).reshape(classes, 3)
        self.is_told: Bools = np.frombuffer(answer.is_told, np.bool_).reshape(classes)
        if classes and (self.places.max() >= len(own) or self.counts.max() > most + 1):
            raise ValueError(f"a list has {self.counts.max()} rows up to {self.places.max()}")
        is_listed = np.arange(most) < self.counts[:, None]
        self.rows: I64 = np.where(is_listed, own[self.places[:, :-1]], END).astype(np.int64)
        self.bound = np.where(self.counts > most, self.totals[:, -1], NOWHERE).astype(np.int64)


def best_rows(
    workers: WorkerRows,
    answers: Mapping[int, RankAnswer],
    signatures: Sequence[Hashable],
    draws: U64,
    most: int,
    apart: Rows,
) -> BestRows | None:
    """One list for each class; None where nothing is of use.

    apart: the rows that the workers were asked to leave out. ValueError for an answer that does not
    fit its question.
    """
    table = workers.table
    left: Bools = np.zeros(len(table), np.bool_)
    left[apart] = True
    parts: list[_Part] = []
    for worker in workers.asked():
        answer, own = answers.get(worker), workers.of(worker)
        if (
            answer is None
            or answer.touched is None
            or not workers.agrees(worker, answer.rows, answer.digest)
        ):
            left[own] = True
            continue
        left[np.isin(table.arrivals, np.frombuffer(answer.touched, np.int64))] = True
        parts.append(_Part(answer, own, len(signatures), most))
    rows = np.flatnonzero(left)
    if not parts or len(rows) > MOST_APART:
        return None
    kept = np.flatnonzero(np.logical_and.reduce([part.is_told for part in parts]))
    if not len(kept):
        return None
    bound, ranks = _highest([part.bound for part in parts], [part.ranks for part in parts])
    told = np.column_stack([_told([part.told for part in parts]), bound])
    return BestRows(
        [signatures[place] for place in kept.tolist()],
        np.concatenate([part.rows for part in parts], axis=1)[kept],
        np.concatenate([part.totals[:, :-1] for part in parts], axis=1)[kept],
        np.ascontiguousarray(told[kept]),
        ranks[kept],
        draws[kept],
        rows,
    )


def _told(parts: Sequence[I64]) -> I64:
    """(the highest total of all, rows that have it, feasible rows) of each class."""
    every = np.array(parts)
    highest = every[:, :, 0].max(axis=0)
    many = (every[:, :, 1] * (every[:, :, 0] == highest)).sum(axis=0)
    return np.column_stack([highest, many, every[:, :, 2].sum(axis=0)])


def _highest(totals: Sequence[I64], ranks: Sequence[U64]) -> tuple[I64, U64]:
    """The highest total of a row that nobody listed, and the highest rank among those."""
    every, rank_of = np.array(totals), np.array(ranks)
    highest = every.max(axis=0)
    return highest, np.where(every == highest, rank_of, 0).max(axis=0).astype(np.uint64)
