"""Kernel: runs of pods decided by compiled code, over one table with the same nodes throughout.

    admit(classes) ──► run(pods) ──► decided rows, and why it returned
                          │  ▲
                          │  └── totals of new classes, normalization over other groups of rows
                          └──► flush(): placements are applied to the table

The caller decides all other pods: those of classes that the kernel does not cover, and those
without a feasible row.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roadstead.framework.tie_break import Chooser
from roadstead.kernel.admitted import Admission, Admitted, KernelClass, Model
from roadstead.kernel.amounts import LARGE_AMOUNTS
from roadstead.kernel.arrays import CHANGED, NEW, NO_ROW, STALE_NORM, U64, Log, new_piece
from roadstead.kernel.cell_layout import CellPlan, in_best_cells
from roadstead.kernel.known_types import KnownTypes
from roadstead.kernel.layout import affected_by, empty_totals
from roadstead.kernel.listing import Listed, Listing
from roadstead.kernel.lists import BestRows
from roadstead.kernel.lowering.lowerings import lay_out_specs, replace_spec
from roadstead.kernel.mirror import Mirror
from roadstead.kernel.relation_layout import relate, with_classes
from roadstead.kernel.start import CompiledCode
from roadstead.kernel.static_scores import (
    StaticRows,
    StaticScores,
    normalized,
    static_scores_of_rows,
)
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows

BUILD_MAX = 64
"""Maximum number of new classes whose totals are computed in one call."""

_NO_NODE, _OUT_OF_RANGE = "no feasible node", "score out of range"
_FINAL = (_NO_NODE, _OUT_OF_RANGE, LARGE_AMOUNTS)
REASONS = {CHANGED: "changed by a placement", NO_ROW: _NO_NODE}


class KernelPod(Protocol):
    """A pod to decide. Pods of one signature may differ in what no plugin reads."""

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


@dataclass(frozen=True, slots=True)
class Decided:
    """The decided pods. Of each: its row and total, the number of feasible and of tied best rows.

    stopped: why the run ended before the last pod; "" if it did not. next_start: where the next
    sampled search starts.
    """

    rows: list[int]
    feasible: list[int]
    totals: list[int]
    best: list[int]
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


class Kernel:
    """Decide runs of pods of some classes over one table that holds all nodes.

    classes: by signature. A kernel covers those that `Admission` admits; `run` accepts no others.
    shares_static: models with equal static scores share them, and the facts of nodes do not change.
    """

    def __init__(
        self,
        code: CompiledCode,
        table: NodeTable,
        classes: Mapping[Hashable, KernelClass],
        chooser: Chooser,
        *,
        shares_static: bool = True,
    ) -> None:
        self._code = code
        self._run_code, self._build_code = KnownTypes(code.run), KnownTypes(code.build)
        self._table = table
        self._tie_break = chooser.tie_break
        self._pending: list[tuple[int, KernelPod]] = []
        self._one: Log | None = None
        self._listing: Listing | None = None
        self._shares_static = shares_static
        admission = Admission(table, classes, shares_static=shares_static)
        self._admitted, self._why_not = admission.admitted, admission.why_not
        # By the index of a model, the version of the nodes whose facts its static scores include.
        self._static_at = dict.fromkeys(range(len(admission.models)), table.node_version)
        self._known = {each.index: each.known for each in admission.models}
        self._covered = list(self._admitted.values())
        if self._covered:
            self._lay_out(list(admission.static.values()), admission.models, chooser)
            numbers = self._mirror.numbers
            self._listing = Listing(code, len(self._covered), numbers, self._totals)

    def _lay_out(
        self, static: Sequence[StaticScores], models: Sequence[Model], chooser: Chooser
    ) -> None:
        table = self._table
        lowered = [each.model.lowered for each in self._covered]
        pod_classes = [each.kernel_class.pod for each in self._covered]
        profiles = [each.kernel_class.evaluation.profile for each in self._covered]
        affected = affected_by(profiles, pod_classes)
        index_of = {id(static): index for index, static in enumerate(static)}
        static_index = [index_of[id(model.static)] for model in models]
        model_of = np.array([each.model.index for each in self._covered], dtype=np.int64)
        static_index_of = np.array(static_index, dtype=np.int64)[model_of]
        self._specs, blocked = lay_out_specs(
            lowered, pod_classes, affected, static_index_of, model_of
        )
        self._mirror = Mirror(table, chooser, blocked)
        self._totals = empty_totals(
            len(pod_classes), static, len(models), self._mirror.numbers.row_at
        )
        groups = self._totals.group_feasible.shape[1]
        related = [each.first.evaluation for each in models]
        found = relate(related, table, static_index, groups)
        if found is None:
            # Too many counters: the plugins decide.
            self._why_not |= dict.fromkeys(self._admitted, "too many domains")
            found = relate((), table, (), groups)
        assert found is not None
        self._relations = with_classes(found, model_of)
        self._has_relations = bool((self._relations.of_class >= 0).any())
        self._cells = CellPlan(self._totals.group, self._mirror.numbers.row_at)
        self._changed = np.zeros(1024, dtype=np.int64)
        self._fresh = np.zeros(1024, dtype=np.int32)
        self._length = np.zeros(1, dtype=np.int64)
        self._one_class = np.zeros(1, dtype=np.int64)
        self._piece = new_piece(self._mirror.numbers.allocatable.shape[1])

    def why_not(self, signature: Hashable) -> str:
        """Return why pods of a signature are not decided here at the moment; "" if they are."""
        found = self._admitted.get(signature)
        if found is None or signature in self._why_not:
            return self._why_not.get(signature, "node search, or an error")
        return "" if self.is_unchanged(signature) else "volumes changed"

    def is_unchanged(self, signature: Hashable) -> bool:
        """Whether `state_version` of a covered class is the same as when the kernel was built.

        Or only state changed that its filters read at each call: then they are called again.
        """
        found = self._admitted[signature]
        evaluation, index = found.kernel_class.evaluation, found.model.index
        known = evaluation.profile.state_version(evaluation.pod)
        if known == self._known[index]:
            return True
        rows = None if found.model.current is None else found.model.current.renew()
        if rows is None:
            return False
        self._known[index] = known
        self._write_passes(found, rows)
        return True

    def _write_passes(self, found: Admitted, rows: Rows) -> None:
        """Write which of some rows pass; their totals are computed again as of changed rows."""
        if not len(rows):
            return
        assert found.model.current is not None
        positions = self._mirror.numbers.position_of[rows]
        index = int(self._specs.static_index[found.class_index])
        self._totals.passes[index, positions] = found.model.current.passes[rows]
        if self._listing is not None:
            self._listing.drop()
        self._log_changed(rows.tolist(), 0)

    def why_not_sampled(self, signature: Hashable) -> str:
        """Return why a sampled search for a covered class is not possible here; "" if it is."""
        by_name = (
            self._admitted[signature].kernel_class.evaluation.pre_filter.node_names is not None
        )
        return "sampled among named nodes" if by_name else ""

    def covers(self, signature: Hashable) -> bool:
        """Whether a class was covered when the kernel was built."""
        return signature in self._admitted

    def resume(self) -> None:
        """Begin a batch on the same table; others may have changed it and made rows feasible.

        So classes without a feasible row are tried again.
        """
        assert not self._pending, "a batch begins before the last one was applied to the table"
        if self._listing is not None:
            self._listing.drop()
        for signature in [s for s, why in self._why_not.items() if why in _FINAL]:
            del self._why_not[signature]

    def run(self, pods: Sequence[KernelPod], sampling: Sampling | None = None) -> Decided:
        """Decide the first of some pods, all of covered classes, up to one that stops the run."""
        self._refresh(len(pods))
        is_one = len(pods) == 1 and sampling is None
        log = self._log_of_one(pods[0]) if is_one else self._log(pods, sampling)
        if self._mirror.has_large_amounts:
            done, stopped = 0, LARGE_AMOUNTS
        else:
            if self._has_relations or not is_one:
                self._relations = self._cells.prepare(self._relations, log.classes)
            done, stopped = self._run_compiled(log)
        if stopped in _FINAL:
            # Placements use up room: the plugins decide the class for the rest of the batch.
            self._why_not[pods[done].signature] = stopped
        rows = log.row[:done].tolist()
        self._pending += zip(rows, pods, strict=False)
        feasible, totals, best = (e[:done].tolist() for e in (log.feasible, log.total, log.best))
        return Decided(rows, feasible, totals, best, stopped, int(log.start[0]))

    def replace(self, old: Hashable, signature: Hashable, new: KernelClass) -> bool:
        """Cover a class of the same model in place of another one; return whether that is possible.

        It is not if the other is not covered, or the new one does not fit into the arrays.
        """
        known = self._admitted.get(old)
        if known is None:
            return False
        c, model = known.class_index, known.model
        assert model.first.is_same(new), "a class is replaced by one of another model"
        if new.pod.is_large or not replace_spec(self._specs, c, model.lowered, new.pod):
            return False
        del self._admitted[old]
        self._why_not.pop(old, None)
        self._admitted[signature] = self._covered[c] = Admitted(c, new, model)
        self._totals.built[c] = self._totals.stale[c] = self._totals.stale_norm[c] = False
        self._relations.is_seen[c] = False
        return True

    def renew(self, signature: Hashable) -> bool:
        """Bring the static scores of a class and its model up to date after changes of nodes.

        Their evaluation is up to date. Returns False if only a new kernel can decide the class.
        """
        known, table = self._admitted.get(signature), self._table
        if known is None:
            return False
        model = known.model
        if self._static_at[model.index] == table.node_version:
            return True
        evaluation, state = model.first.evaluation, model.first.pre_score.state
        if self._shares_static or evaluation.node_version != table.node_version:
            return False
        rows = table.facts_changed_since(self._static_at[model.index])
        found = static_scores_of_rows(evaluation, state, model.static, rows)
        if found is None:
            return False
        self._write_static(int(self._specs.static_index[known.class_index]), rows, found)
        self._static_at[model.index] = table.node_version
        return True

    def _write_static(self, index: int, rows: Rows, found: StaticRows) -> None:
        """Write static scores of some rows, whose totals are computed again as of changed rows."""
        totals, positions = self._totals, self._mirror.numbers.position_of[rows]
        totals.passes[index, positions], totals.static[index, positions] = found.passes, found.sums
        if (totals.group[index, rows] != found.group).any():
            # The counts of feasible rows by group are of the former groups.
            totals.group[index, rows] = totals.group_at[index, positions] = found.group
            totals.built[self._specs.static_index == index] = False

    def place_one(self, pod: KernelPod) -> str | None:
        """Decide one pod of a covered class and place it on the table; return its node.

        None, with nothing changed, if it has no feasible row or a placement changed its class. As a
        batch of one pod, but without what only a longer run needs.
        """
        self.resume()
        if pod.signature in self._why_not:
            return None
        self._refresh(1)
        if self._mirror.has_large_amounts:
            return None
        log = self._log_of_one(pod)
        if self._has_relations:
            self._relations = self._cells.prepare(self._relations, log.classes)
        c = int(log.classes[0])
        assert self._listing is not None, "a kernel that covers a class may list"
        if not self._totals.built[c] and self._listing.lists.of_class[c] < 0:
            # Compiled code would return only to have it built.
            self._build_one(c)
        done, _ = self._run_compiled(log)
        if not done:
            return None
        name = self._table.columns.names[int(log.row[0])]
        self._table.add_pod(name, pod.pod_class, uid=pod.uid, key=pod.key)
        self._mirror.mark_current()
        return name

    def _log_of_one(self, pod: KernelPod) -> Log:
        log = self._one
        if log is None or log.changed is not self._changed:
            log = self._one = self._log((pod,), None)
        log.classes[0] = self._admitted[pod.signature].class_index
        if log.use_draws[0]:
            log.draws[0] = self._tie_break.pod_hash(pod.key, pod.tie_break_number)
        return log

    def _run_compiled(self, log: Log) -> tuple[int, str]:
        """Return how many pods were decided, and why not more."""
        assert self._listing is not None, "a kernel that covers a class may list"
        done = 0
        while True:
            arrays = self._mirror.numbers, self._specs, self._totals, self._relations
            done, reason = self._run_code.call((*arrays, self._listing.lists, log), done)
            if reason == NEW:
                self._build(log.classes[done:])
            elif reason != STALE_NORM:
                return done, REASONS.get(reason, "")
            else:
                c = int(log.classes[done])
                is_unrelated = self._relations.of_class[c] < 0
                is_sampled = len(log.order) > 0 and is_unrelated
                # A sampled pod is normalized over the visited rows only, which differ from pod to
                # pod: the norm is cached, and the totals of all rows stay as they are.
                if (
                    why := self._cache_norm(c, log.group_feasible)
                    if is_sampled
                    else self._renormalize(c)
                ):
                    return done, why

    def _refresh(self, pods: int) -> None:
        """Copy the rows of the table that others changed, and make room in the log."""
        # With placements pending, a batch is being decided, and nothing else changes the table.
        changed: list[int] = [] if self._pending else self._mirror.refresh().tolist()
        if changed and self._listing is not None:
            self._listing.drop()
        self._log_changed(changed, pods)

    def _log_changed(self, changed: list[int], pods: int) -> None:
        """Log changed rows, with room for the placements of some pods behind them."""
        length = int(self._length[0])
        if length + len(changed) + pods > len(self._changed):
            length = self._make_room(len(changed) + pods)
        self._changed[length : length + len(changed)] = changed
        self._length[0] = length + len(changed)

    def _make_room(self, more: int) -> int:
        """Make room for more changed rows in the log; return its length."""
        totals, length = self._totals, int(self._length[0])
        # A class that is behind by more changes than there are rows is computed anew in less time.
        is_behind = totals.seen < length - len(self._mirror.numbers.row_at)
        totals.built[is_behind & (self._relations.of_class < 0)] = False
        # Changes that all classes have applied are dropped.
        first = int(totals.seen[totals.built].min(initial=length))
        self._changed[: length - first] = self._changed[first:length].copy()
        totals.seen[:] -= first
        length = self._length[0] = length - first
        if length + more > len(self._changed) // 2:
            self._changed = np.resize(self._changed, 2 * (length + more))
            self._fresh = np.zeros(2 * (length + more), dtype=np.int32)
        return length

    def _log(self, pods: Sequence[KernelPod], sampling: Sampling | None) -> Log:
        to_find, order, start = [], np.zeros(0, np.int64), 0
        if sampling is not None:
            # Nodes may have been removed since the last search.
            order = sampling.order.astype(np.int64)
            start = sampling.start % max(1, len(order))
            names = (each.kernel_class.evaluation.profile.scheduler_name for each in self._covered)
            to_find = [sampling.to_find.get(name, 0) for name in names]
        random = self._tie_break.kind == "random"
        pod_hash = self._tie_break.pod_hash
        draws = [pod_hash(pod.key, pod.tie_break_number) for pod in pods] if random else []
        return Log(
            classes=np.array([self._admitted[pod.signature].class_index for pod in pods], np.int64),
            draws=np.array(draws, np.uint64) if random else np.zeros(len(pods), np.uint64),
            row=np.empty(len(pods), np.int64),
            feasible=np.empty(len(pods), np.int64),
            total=np.empty(len(pods), np.int64),
            best=np.empty(len(pods), np.int64),
            changed=self._changed,
            length=self._length,
            fresh=self._fresh,
            use_draws=np.array([random]),
            order=order,
            start=np.array([start], np.int64),
            to_find=np.array(to_find, np.int64),
            visited=np.zeros(1, np.int64),
            group_feasible=np.zeros(self._totals.group_feasible.shape[1], np.int64),
        )

    def _build(self, coming: I64) -> None:
        """Compute the totals of the next classes that have none."""
        assert self._listing is not None, "a kernel that covers a class may list"
        built, listed = self._totals.built, self._listing.lists.of_class >= 0
        # The first one is computed even if it has a list, which was not enough.
        first, *later = dict.fromkeys(coming.tolist())
        later = [c for c in later if not (built[c] or listed[c])]
        if later:
            self._build_classes(np.array([first, *later[: BUILD_MAX - 1]], np.int64))
        else:
            self._build_one(first)

    def _build_one(self, c: int) -> None:
        self._one_class[0] = c
        self._build_classes(self._one_class)

    def _build_classes(self, classes: I64) -> None:
        self._piece.in_use[:] = False
        arrays = self._mirror.numbers, self._specs, self._totals
        self._build_code.call((*arrays, classes), int(self._length[0]), (self._piece,))

    def _renormalize(self, c: int) -> str:
        """Normalize the totals of a class again; return why the reference must decide, or ""."""
        each = self._covered[c]
        groups = each.model.static.raw.shape[1]
        relations, totals = self._relations, self._totals
        is_related = relations.of_class[c] >= 0
        group_feasible = (relations.group_feasible if is_related else totals.group_feasible[c])[
            :groups
        ] > 0
        norm = normalized(each.kernel_class.evaluation, each.model.static, group_feasible)
        if norm is None:
            return _OUT_OF_RANGE
        if is_related:
            # Only after a success: the next batch repeats a normalization that failed.
            relations.seen[c, :groups], relations.is_seen[c] = group_feasible, True
        if (norm != totals.norm[c, :groups]).any():
            self._code.renormalize(self._mirror.numbers, self._specs, totals, c, norm)
            relations.cells.is_built[c] = False
        totals.stale_norm[c] = False
        model = each.model.index
        totals.cached_groups[model, :groups], totals.cached_norm[model, :groups] = (
            group_feasible,
            norm,
        )
        totals.has_cached_norm[model] = True
        return ""

    def _cache_norm(self, c: int, group_feasible: I64) -> str:
        """Cache the normalized scores of a class's model for the groups with visited rows.

        Returns why the reference must decide, or "".
        """
        each = self._covered[c]
        static, model, totals = each.model.static, each.model.index, self._totals
        groups = static.raw.shape[1]
        norm = normalized(each.kernel_class.evaluation, static, group_feasible[:groups] > 0)
        if norm is None:
            return _OUT_OF_RANGE
        totals.cached_groups[model], totals.cached_norm[model, :groups] = group_feasible > 0, norm
        totals.has_cached_norm[model] = True
        return ""

    def listable(self) -> list[Hashable]:
        """Return the new classes whose best rows other processes may list.

        The totals of such a class depend on nothing but the pod and the row.
        """
        if self._tie_break.kind != "random" or not self._covered:
            return []
        if self._mirror.has_large_amounts:
            return []
        return [
            signature
            for signature, each in self._admitted.items()
            if signature not in self._why_not and self._is_listable(each)
        ]

    def _is_listable(self, admitted: Admitted) -> bool:
        """Whether the class has no totals yet, and its totals depend only on the pod and the row.

        With one normalization group, all rows have the same normalized score.
        """
        asked, static = admitted.kernel_class, admitted.model.static
        is_new, groups = not self._totals.built[admitted.class_index], static.raw.shape[1]
        has_more = (
            asked.reads_other_nodes
            or asked.pod.facts.may_bind_claims
            or asked.evaluation.pre_filter.node_names is not None
            or self._relations.of_class[admitted.class_index] >= 0
        )
        return is_new and not has_more and groups == 1

    def use_lists(self, best: BestRows, placements: int) -> None:
        """Use lists of the best rows of new classes, computed on the table's current state.

        placements: the maximum number of pods decided before the table changes otherwise.
        """
        assert self._listing is not None, "lists are of classes that are covered"
        indices = [self._admitted[signature].class_index for signature in best.signatures]
        added = [self._added_to_all(c) for c in indices]
        self._listing.use(best, indices, added, placements)

    def _added_to_all(self, c: int) -> int | None:
        """Return the normalized score of all rows of a class with one group; None if it fails."""
        totals, model = self._totals, self._covered[c].model.index
        if not (totals.has_cached_norm[model] and totals.cached_groups[model, 0]):
            group_feasible = np.zeros(totals.group_feasible.shape[1], np.int64)
            group_feasible[0] = 1
            if self._cache_norm(c, group_feasible):
                return None
        # The list keeps its own copy: the model's cached norm may be computed for other rows later.
        return int(totals.cached_norm[model, 0])

    def list_best(self, signatures: Sequence[Hashable], draws: U64, most: int) -> Listed:
        """List the best rows of classes on this table; none for a class that may not be listed."""
        plain = set(self.listable())
        known = [self._admitted[s].class_index if s in plain else -1 for s in signatures]
        indices = np.array([c for c in known if c >= 0], np.int64)
        for start in range(0, len(indices), BUILD_MAX):
            self._build(indices[start : start + BUILD_MAX])
        if self._listing is None:
            return Listed.empty(len(signatures), most)
        return self._listing.list_best(known, draws, most)

    def exclude(self, rows: Rows) -> None:
        """Make rows infeasible for a worker; call before totals are computed.

        They changed since the state that the scheduler asks about; it evaluates them itself.
        """
        if self._covered:
            self._totals.passes[:, self._mirror.numbers.position_of[rows]] = False

    def best_rows(self, signature: Hashable, total: int) -> Rows:
        """Return the rows that were the best for the last pod of a run."""
        index = self._admitted[signature].class_index
        relations, totals = self._relations, self._totals.total[index]
        is_best: Bools = totals == total
        if relations.of_class[index] >= 0:
            layout = int(relations.cells.used[0])
            if layout < 0:
                best: Rows = np.flatnonzero(relations.total[: len(self._table)] == total)
                return best
            is_best = in_best_cells(relations, layout, totals, total)
        return np.sort(self._mirror.numbers.row_at[np.flatnonzero(is_best)])

    def flush(self) -> None:
        """Apply all pending placements to the table."""
        if self._pending:
            names = self._table.columns.names
            rows, pods = [row for row, _ in self._pending], [pod for _, pod in self._pending]
            pod_classes = [pod.pod_class for pod in pods]
            self._table.residents.add_all(
                *([names[row] for row in rows], [pod.uid for pod in pods]),
                *(pod_classes, [pod.key for pod in pods]),
            )
            self._table.add_pods(rows, pod_classes)
            self._pending.clear()
            self._mirror.mark_current()
