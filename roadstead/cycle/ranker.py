"""Ranker: lists the best rows of one worker for classes of which a batch has one pod.

It decides nothing: a scheduler merges the lists of all workers, evaluates rows that changed since,
and evaluates all rows if the lists do not suffice (decision 36).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.messages import RankAnswer, RankRequest
from roadstead.cycle.worker_rows import RowsByArrival
from roadstead.facts.wire import decode_facts
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.arrays import U64
from roadstead.kernel.kernel_lists import ListedRows
from roadstead.nodes.columns import I64
from roadstead.nodes.table import NodeTable, Rows

MAX_CLASSES_AT_ONCE, MAX_STORED_TOTALS = 512, 32_000_000
"""Maximum classes whose totals are stored at a time, and their rows times classes: 128 MB."""


class Ranker:
    """List rows of one worker, with the profiles of its process."""

    def __init__(
        self, by_arrival: RowsByArrival, table: NodeTable, profiles: Mapping[str, Profile]
    ) -> None:
        self._by_arrival = by_arrival
        self._table = table
        self._profiles = profiles
        self._builder = BatchBuilder(table, profiles, TieBreak("random"))

    def rank(
        self, request: RankRequest, compiled_kernel: CompiledKernel, touched: I64
    ) -> RankAnswer:
        """List the best rows of classes.

        touched: arrivals of rows that changed since the request's `seq`. Raises KeyError for a
        class whose scheduler name has no profile.
        """
        self._builder.compiled_kernel = compiled_kernel
        excluded = np.concatenate([np.frombuffer(request.excluded, np.int64), touched])
        excluded_rows = np.flatnonzero(np.isin(self._table.arrivals, excluded))
        pods = [self._pod(index, facts) for index, facts in enumerate(request.classes)]
        tie_break_hashes = np.frombuffer(request.draws, np.uint64)
        size = max(1, min(MAX_CLASSES_AT_ONCE, MAX_STORED_TOTALS // max(1, len(self._table))))
        parts = [
            self._list(
                pods[start : start + size], tie_break_hashes[start:], request.most, excluded_rows
            )
            for start in range(0, len(pods), size)
        ]
        # Unused slots of a list have row END, -1, which indexes the appended element.
        positions = np.append(self._by_arrival.positions(), -1).astype(np.int32)
        return RankAnswer(
            rows=len(self._table),
            digest=self._by_arrival.digest,
            touched=touched.tobytes(),
            positions=b"".join(positions[part.rows].tobytes() for part in parts),
            totals=b"".join(part.totals.tobytes() for part in parts),
            counts=b"".join(part.counts.tobytes() for part in parts),
            ranks=b"".join(part.ranks[:, -1].tobytes() for part in parts),
            summaries=b"".join(part.summary.tobytes() for part in parts),
            is_listed=b"".join(part.is_listed.tobytes() for part in parts),
        )

    def _list(
        self, pods: Sequence[PodInCycle], tie_break_hashes: U64, max_rows: int, excluded_rows: Rows
    ) -> ListedRows:
        kernel = self._builder.kernel_of(pods)
        kernel.exclude(excluded_rows)
        return kernel.list_best([pod.signature for pod in pods], tie_break_hashes, max_rows)

    def _pod(self, index: int, facts: bytes) -> PodInCycle:
        pod_class = self._table.classes.pod_class(decode_facts(facts))
        profile = self._profiles[pod_class.facts.scheduler_name]
        return PodInCycle(f"{index}", "", pod_class, profile.signature_of(pod_class, f"{index}"))
