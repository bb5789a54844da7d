"""Pods that a kernel decides: their layout as arrays, and the decisions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.arrays import PodArrays
from roadstead.kernel.changed_rows import ChangedRows
from roadstead.kernel.covered_classes import CoveredClass
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Rows
from roadstead.protocol.fast_init import fast_init


class KernelPod(Protocol):
    """A pod to decide. Pods of one signature may differ in what no plugin reads.

    tie_break_number: 1, plus 1 for each chosen node that failed; `TieBreak.pod_hash` includes it.
    """

    @property
    def uid(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def pod_class(self) -> PodClass: ...
    @property
    def signature(self) -> Hashable: ...
    @property
    def tie_break_number(self) -> int: ...


@fast_init
@dataclass(frozen=True, slots=True)
class DecidedPods:
    """The decided pods, as columns.

    rows: the chosen rows. feasible: numbers of feasible rows. totals: totals of the chosen rows.
    tied_best: numbers of rows with that total. stopped: why not all pods were decided; "" if they
    were. next_start: where the next sampled search starts.
    """

    rows: list[int]
    feasible: list[int]
    totals: list[int]
    tied_best: list[int]
    stopped: str = ""
    next_start: int = 0


@dataclass(frozen=True, slots=True)
class Sampling:
    """A sampled search: the node order, and where the next search starts.

    to_find: number of feasible rows by scheduler name; the search ends before the next one.
    """

    order: Rows
    start: int
    to_find: Mapping[str, int]


class PodLayout:
    """Lay out the pods of a call as arrays; those of a single pod are used again.

    covered: by signature, the classes that the kernel covers now. scheduler_names: by index of a
    class. groups: maximum number of normalization groups of a class.
    """

    def __init__(
        self,
        covered: Mapping[Hashable, CoveredClass],
        scheduler_names: Sequence[str],
        tie_break: TieBreak,
        changed: ChangedRows,
        groups: int,
    ) -> None:
        self._covered, self._scheduler_names = covered, scheduler_names
        self._tie_break, self._changed, self._groups = tie_break, changed, groups
        self._arrays_of_one: PodArrays | None = None

    def lay_out_one(self, pod: KernelPod) -> PodArrays:
        """Return the arrays of one pod, for a search of all rows."""
        arrays = self._arrays_of_one
        if arrays is None or arrays.changed_rows is not self._changed.rows:
            arrays = self._arrays_of_one = self.lay_out((pod,), None)
        arrays.classes[0] = self._covered[pod.signature].class_index
        if arrays.is_random[0]:
            arrays.tie_break_hashes[0] = self._tie_break.pod_hash(pod.key, pod.tie_break_number)
        return arrays

    def lay_out(self, pods: Sequence[KernelPod], sampling: Sampling | None) -> PodArrays:
        """Return the arrays of some pods, in which compiled code writes their decisions."""
        to_find, order, start = [], np.zeros(0, np.int64), 0
        if sampling is not None:
            # Nodes may have been removed since the last search.
            order = sampling.order.astype(np.int64)
            start = sampling.start % max(1, len(order))
            to_find = [sampling.to_find.get(name, 0) for name in self._scheduler_names]
        is_random = self._tie_break.kind == "random"
        pod_hash = self._tie_break.pod_hash
        hashes = [pod_hash(pod.key, pod.tie_break_number) for pod in pods] if is_random else []
        return PodArrays(
            classes=np.array([self._covered[pod.signature].class_index for pod in pods], np.int64),
            tie_break_hashes=np.array(hashes, np.uint64)
            if is_random
            else np.zeros(len(pods), np.uint64),
            row=np.empty(len(pods), np.int64),
            feasible=np.empty(len(pods), np.int64),
            total=np.empty(len(pods), np.int64),
            tied_best=np.empty(len(pods), np.int64),
            changed_rows=self._changed.rows,
            changed_count=self._changed.count,
            new_totals=self._changed.new_totals,
            is_random=np.array([is_random]),
            search_order=order,
            search_start=np.array([start], np.int64),
            feasible_to_find=np.array(to_find, np.int64),
            visited_rows=np.zeros(1, np.int64),
            group_feasible=np.zeros(self._groups, np.int64),
        )
