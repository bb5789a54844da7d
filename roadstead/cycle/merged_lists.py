"""Best rows: merges workers' lists of their best rows into one list for a whole table.

A worker evaluates every Nth node. For pods of distinct classes, it lists its best rows and an upper
bound of the totals of its other rows, so that the scheduler evaluates only rows that changed since
the worker's table (*touched* rows).

worker's list ──► same rows? ── yes ──► rows of this table, one upper bound for unlisted rows
                       └── no ──► the scheduler evaluates the worker's rows, if they are few
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from roadstead.config.settings import Settings
from roadstead.cycle.messages import RankAnswer
from roadstead.cycle.worker_rows import WorkerRows
from roadstead.kernel.arrays import END, INFEASIBLE, U64
from roadstead.kernel.best_rows import BestRows
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.table import Rows

MIN_NODES_FOR_LISTS = 20_000
"""Minimum nodes for lists: with fewer, evaluating all rows takes less time than the messages."""

MAX_EXCLUDED = 4096
"""Maximum rows that a scheduler evaluates for each class besides the lists; with more rows it uses
no list."""


def may_list(settings: Settings) -> bool:
    """Whether schedulers decide by lists: only the kernel does, with random tie-breaks."""
    return settings.kernel and settings.tie_break == "random"


class _WorkerLists:
    """The answer of one worker, as arrays.

    worker_rows: the worker's rows in order of arrival. max_rows: maximum rows per class. positions,
    totals, counts, ranks, summaries, is_listed: see `RankAnswer`. rows: int64[class, max_rows],
    rows of the table, END in unused slots. bound: int64[class], no unlisted row has a higher total;
    INFEASIBLE if all feasible rows are listed. Raises ValueError for arrays of another shape than
    requested.
    """

    def __init__(self, answer: RankAnswer, worker_rows: Rows, classes: int, max_rows: int) -> None:
        shape = classes, max_rows + 1
        self.positions: I32 = np.frombuffer(answer.positions, np.int32).reshape(shape)
        self.totals: I32 = np.frombuffer(answer.totals, np.int32).reshape(shape)
        self.counts: I64 = np.frombuffer(answer.counts, np.int64).reshape(classes)
        self.ranks: U64 = np.frombuffer(answer.ranks, np.uint64).reshape(classes)
        self.summaries: I64 = np.frombuffer(answer.summaries, np.int64).reshape(classes, 3)
        self.is_listed: Bools = np.frombuffer(answer.is_listed, np.bool_).reshape(classes)
        is_used = np.arange(max_rows) < self.counts[:, None]
        # Slots that are not used may hold anything.
        used = np.where(is_used, self.positions[:, :-1], 0)
        if classes and (
            self.positions.max() >= len(worker_rows)
            or used.min(initial=0) < 0
            or self.counts.max() > max_rows + 1
        ):
            positions = f"from {used.min(initial=0)} up to {self.positions.max()}"
            raise ValueError(f"a list has {self.counts.max()} rows {positions}")
        self.rows: I64 = np.where(is_used, worker_rows[used], END).astype(np.int64)
        self.bound = np.where(self.counts > max_rows, self.totals[:, -1], INFEASIBLE).astype(
            np.int64
        )


def best_rows(
    workers: WorkerRows,
    answers: Mapping[int, RankAnswer],
    signatures: Sequence[Hashable],
    tie_break_hashes: U64,
    max_rows: int,
    excluded: Rows,
) -> BestRows | None:
    """Return one list for each class; None if no list is usable.

    max_rows: maximum rows that a worker lists for a class. excluded: the rows that the request
    excluded. Raises ValueError for an answer that does not fit the request.
    """
    table = workers.table
    # Rows that the scheduler evaluates itself.
    redo: Bools = np.zeros(len(table), np.bool_)
    redo[excluded] = True
    lists: list[_WorkerLists] = []
    for worker in workers.with_rows():
        answer, worker_rows = answers.get(worker), workers.of(worker)
        if (
            answer is None
            or answer.touched is None
            or not workers.are_rows_of(worker, answer.rows, answer.digest)
        ):
            # The answer is missing or of other rows: the scheduler evaluates the worker's rows.
            redo[worker_rows] = True
            continue
        redo[np.isin(table.arrivals, np.frombuffer(answer.touched, np.int64))] = True
        lists.append(_WorkerLists(answer, worker_rows, len(signatures), max_rows))
    rows = np.flatnonzero(redo)
    if not lists or len(rows) > MAX_EXCLUDED:
        return None
    # A class has a list only if every worker that answered has one for it.
    listed = np.flatnonzero(np.logical_and.reduce([each.is_listed for each in lists]))
    if not len(listed):
        return None
    bound, ranks = _highest([each.bound for each in lists], [each.ranks for each in lists])
    summaries = np.column_stack([_merge_summaries([each.summaries for each in lists]), bound])
    return BestRows(
        [signatures[index] for index in listed.tolist()],
        np.concatenate([each.rows for each in lists], axis=1)[listed],
        np.concatenate([each.totals[:, :-1] for each in lists], axis=1)[listed],
        np.ascontiguousarray(summaries[listed]),
        ranks[listed],
        tie_break_hashes[listed],
        rows,
    )


def _merge_summaries(summaries: Sequence[I64]) -> I64:
    """Return (highest total, number of rows with it, number of feasible rows) of each class."""
    stacked = np.array(summaries)
    highest = stacked[:, :, 0].max(axis=0)
    with_highest = (stacked[:, :, 1] * (stacked[:, :, 0] == highest)).sum(axis=0)
    return np.column_stack([highest, with_highest, stacked[:, :, 2].sum(axis=0)])


def _highest(totals: Sequence[I64], ranks: Sequence[U64]) -> tuple[I64, U64]:
    """Return the highest total of an unlisted row, and the highest rank of rows with it."""
    stacked, rank_of = np.array(totals), np.array(ranks)
    highest = stacked.max(axis=0)
    return highest, np.where(stacked == highest, rank_of, 0).max(axis=0).astype(np.uint64)
