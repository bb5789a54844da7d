"""ShardCore: a worker's part of the cycle: its rows, evaluated for classes of pods.

A request names classes; the answer names candidates: for each class and each group of rows that are
normalized alike, the best `keep` rows and all that tie with the last of them, so that what is kept
back is strictly worse than every candidate of its group. The rest is told in numbers.

A class whose summaries must be merged with other shards' first answers with its own part and
waits; when nothing waits, the candidates follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from roadstead.cycle.class_memory import ClassMemory
from roadstead.cycle.class_run import count_refusals, lowest_priority
from roadstead.cycle.messages import (
    ClassAnswer,
    ClassAsk,
    DryRunAsk,
    EvaluateRequest,
    GroupAnswer,
    ShardAnswer,
    ShardView,
    WireSummary,
)
from roadstead.cycle.narrowing import found_of
from roadstead.cycle.wire import (
    filters_in,
    narrowed_in,
    refusals_out,
    scores_in,
    status_out,
    summaries_out,
)
from roadstead.facts.wire import facts_in, facts_out
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import Reads
from roadstead.framework.profile import Profile
from roadstead.framework.victims import Tried
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.row_slice import cut, cut_nodes
from roadstead.nodes.table import NodeTable, Rows
from roadstead.preemption.dry_run import dry_run
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import Code
from roadstead.storage import StorageState


class ShardCore:
    """The rows of one shard and the classes evaluated over them."""

    def __init__(self, table: NodeTable, profiles: Mapping[str, Profile]) -> None:
        self.table = table
        self._profiles = profiles
        self._evaluations: ClassMemory[Evaluation] = ClassMemory()

    @property
    def storage(self) -> StorageState:
        """Claims and volumes as this shard knows them; all profiles of a process share them."""
        return next(iter(self._profiles.values())).storage

    def evaluation(self, ask: ClassAsk) -> Evaluation:
        """The kept evaluation of a class, or a new one. KeyError for an unknown profile."""
        facts = facts_in(ask.facts)
        profile = self._profiles[facts.scheduler_name]
        info = self.table.classes.info(facts)
        signature = profile.class_of(info, "")
        # A plugin that cannot sign makes each class of facts its own: "" is no pod's UID.
        key = (signature, info) if signature == (profile.scheduler_name, "") else signature
        found = self._evaluations.get(key)
        if found is None:
            found = Evaluation(profile, info, self.table)
            self._evaluations.put(key, found, len(self.table))
        return found

    def evaluate(self, request: EvaluateRequest) -> ShardAnswer:
        """Answers a request; changes nothing that another request could see."""
        evaluations = [self.evaluation(ask) for ask in request.classes]
        answers = [
            self._advance(evaluation, ask, request.node_count)
            for evaluation, ask in zip(evaluations, request.classes, strict=True)
        ]
        version = self.table.version
        if any(answer.waits_for or answer.unsupported for answer in answers):
            return ShardAnswer(version, len(self.table), tuple(answers))
        return self._with_candidates(evaluations, answers, request.keep)

    def view(self, ask: ClassAsk, node_count: int) -> ShardView:
        """All that this shard says of a class whose summaries are merged already."""
        evaluation = self.evaluation(ask)
        profile = evaluation.profile
        evaluation.update(node_count, filters_in(ask.filters or (), profile))
        if evaluation.pre_filter.status.is_success:
            if ask.narrowed is not None:
                evaluation.narrow(narrowed_in(ask.narrowed))
            evaluation.update_scores(scores_in(ask.scores or (), profile))
        return view_of(evaluation)

    def _advance(self, evaluation: Evaluation, ask: ClassAsk, node_count: int) -> ClassAnswer:
        """Runs a class as far as the merged summaries reach; says what it waits for."""
        profile = evaluation.profile
        own_filters = evaluation.own_filter_summaries()
        filters = own_filters if ask.filters is None else filters_in(ask.filters, profile)
        only = node_count == len(self.table)
        told = summaries_out(own_filters)
        if ask.filters is None and own_filters and not only:
            return ClassAnswer(filters=told, waits_for="filters")
        try:
            evaluation.update(node_count, filters)
        except UnsupportedError as missing:
            return ClassAnswer(filters=told, unsupported=(missing.plugin, missing.field))
        status = evaluation.pre_filter.status
        if not status.is_success:
            return ClassAnswer(told, failure=status.message if status.code is Code.ERROR else "")
        if ask.narrowed is not None:
            evaluation.narrow(narrowed_in(ask.narrowed))
        elif ask.narrows:
            return _found(evaluation, told)
        own_scores = evaluation.own_score_summaries()
        scores = own_scores if ask.scores is None else scores_in(ask.scores, profile)
        waits = ask.scores is None and bool(own_scores) and not only
        if not waits and (evaluation.feasible.any() or ask.scores is not None):
            evaluation.update_scores(scores)
        answer_scores = summaries_out(own_scores)
        return ClassAnswer(told, answer_scores, "scores" if waits else "")

    def _with_candidates(
        self, evaluations: Sequence[Evaluation], answers: Sequence[ClassAnswer], keep: int
    ) -> ShardAnswer:
        chosen: Bools = np.zeros(len(self.table), dtype=np.bool_)
        groups = [_Groups(each) if _scored(each) else None for each in evaluations]
        for evaluation, each in zip(evaluations, groups, strict=True):
            if each is not None:
                chosen[each.best(keep)] = True
            elif _is_unscored(evaluation) and np.count_nonzero(evaluation.feasible) == 1:
                # If no other shard has one, it is taken without scores.
                chosen |= evaluation.feasible
            if evaluation.wide is None and (each is not None or _is_unscored(evaluation)):
                _choose_nominated(evaluation, chosen)
        rows = np.flatnonzero(chosen)
        told = tuple(
            _tell(evaluation, each, answer, rows, ~chosen)
            for evaluation, each, answer in zip(evaluations, groups, answers, strict=True)
        )
        whole = any(evaluation.reads_whole_nodes() for evaluation in evaluations)
        return ShardAnswer(
            self.table.version,
            len(self.table),
            told,
            rows=None if whole else cut(self.table, rows),
            nodes=cut_nodes(self.table, rows) if whole else None,
            lowest_priority=lowest_priority(self.table),
            nominations=_nominations(self.table, chosen),
        )

    def dry_run(self, asked: DryRunAsk) -> Tried:
        """Tries preemption for a class whose summaries are merged already."""
        evaluation = self.evaluation(asked.ask)
        profile = evaluation.profile
        evaluation.update(asked.node_count, filters_in(asked.ask.filters or (), profile))
        if asked.ask.narrowed is not None and evaluation.pre_filter.status.is_success:
            evaluation.narrow(narrowed_in(asked.ask.narrowed))
        return dry_run(evaluation, asked.dry_run, profile.budgets)


def _nominations(table: NodeTable, chosen: Bools) -> tuple[tuple[str, bytes, int], ...]:
    """The pods that are nominated to candidates."""
    return tuple(
        (name, facts_out(info.facts), count)
        for name in table.nominations
        if table.has_node(name) and chosen[table.row_of(name)]
        for info, count in table.nominations.to(name).items()
    )


def _found(evaluation: Evaluation, told: tuple[WireSummary, ...]) -> ClassAnswer:
    """What Filter left, for the scheduler to narrow."""
    found = found_of(evaluation)
    considered = None if found.considered is None else found.considered.tobytes()
    return ClassAnswer(
        filters=told,
        waits_for="narrowing",
        feasible=found.feasible.tobytes(),
        considered=considered,
    )


def view_of(evaluation: Evaluation) -> ShardView:
    """An evaluation that is up to date, row by row."""
    passed = evaluation.pre_filter.status.is_success
    names = evaluation.pre_filter.node_names
    raw = evaluation.raw if passed else []
    return ShardView(
        names=tuple(evaluation.table.names),
        pre_filter=status_out(evaluation.pre_filter.status),
        pre_filter_skipped=evaluation.pre_filter.skipped,
        node_names=None if names is None else tuple(sorted(names)),
        narrowed_by=evaluation.pre_filter.narrowed_by,
        unreached=evaluation.pre_filter.unreached,
        statuses=tuple(status_out(status) for status in evaluation.statuses),
        codes=evaluation.codes.tobytes() if passed else b"",
        pre_score=status_out(evaluation.pre_score),
        pre_score_skipped=tuple(sorted(evaluation.state.skip_score)),
        raw=tuple(b"" if line is None else line.tobytes() for line in raw),
        lowest_priority=lowest_priority(evaluation.table),
    )


def _scored(evaluation: Evaluation) -> bool:
    return (
        evaluation.pre_filter.status.is_success
        and evaluation.pre_score.is_success
        and bool(evaluation.feasible.any())
        and len(evaluation.raw) == len(evaluation.profile.score)
    )


def _is_unscored(evaluation: Evaluation) -> bool:
    """Whether rows are feasible, but PreScore failed."""
    passed = evaluation.pre_filter.status.is_success
    return passed and not evaluation.pre_score.is_success and bool(evaluation.feasible.any())


def _choose_nominated(evaluation: Evaluation, chosen: Bools) -> None:
    name = evaluation.pod.facts.nominated_node_name
    if name and evaluation.table.has_node(name):
        chosen[evaluation.table.row_of(name)] = True


class _Groups:
    """The feasible rows of a class, grouped by the raw values of its normalizing plugins.

    rows: the feasible rows. group: int[rows]. local: int64[rows], the rest of the score.
    raw: int64[normalizing plugin, group].
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self.rows: Rows = np.flatnonzero(evaluation.feasible)
        self.local: I64 = np.zeros(len(self.rows), dtype=np.int64)
        keys = []
        for each, raw in zip(evaluation.profile.score, evaluation.raw, strict=True):
            if raw is None:
                continue
            if each.plugin.normalizes:
                keys.append(raw[self.rows])
            else:
                self.local += each.weight * raw[self.rows]
        if evaluation.added is not None:
            self.local += evaluation.added[self.rows]
        self.group, self.raw = _grouped(keys, len(self.rows))

    def best(self, keep: int) -> Rows:
        """The best `keep` rows of each group, and all that tie with the last of them."""
        order = np.lexsort((-self.local, self.group))
        group, local = self.group[order], self.local[order]
        starts = np.searchsorted(group, np.arange(self.raw.shape[1]))
        ends = np.append(starts[1:], len(order))
        last = np.minimum(starts + keep, ends) - 1
        best: Rows = self.rows[order[local >= local[last][group]]]
        return best

    def tell(self, kept_back: Bools) -> tuple[GroupAnswer, ...]:
        """The groups of feasible rows that were kept back."""
        back = kept_back[self.rows]
        group, local = self.group[back], self.local[back]
        counts = np.bincount(group, minlength=self.raw.shape[1])
        floors = np.full(len(counts), np.iinfo(np.int64).min)
        np.maximum.at(floors, group, local)
        return tuple(
            GroupAnswer(tuple(self.raw[:, index].tolist()), int(counts[index]), int(floors[index]))
            for index in np.flatnonzero(counts).tolist()
        )


def _grouped(keys: Sequence[I64], rows: int) -> tuple[Rows, I64]:
    """Group of each row by equal keys, and the keys of each group: int64[key, group]."""
    group: Rows = np.zeros(rows, dtype=np.intp)
    for key in keys:
        low, high = int(key.min()), int(key.max())
        if low == high:
            continue
        values, codes = np.unique(key, return_inverse=True)
        _, group = np.unique(group * len(values) + codes, return_inverse=True)
    count = int(group.max()) + 1
    first = np.zeros(count, dtype=np.intp)
    first[group[::-1]] = np.arange(rows)[::-1]
    return group, np.array([key[first] for key in keys], dtype=np.int64).reshape(-1, count)


def _tell(
    evaluation: Evaluation,
    groups: _Groups | None,
    answer: ClassAnswer,
    rows: Rows,
    kept_back: Bools,
) -> ClassAnswer:
    """A class's answers over the candidates, and the rest of its rows in numbers."""
    if not evaluation.pre_filter.status.is_success:
        return answer
    refused = Diagnosis(0)
    count_refusals(evaluation, refused, kept_back)
    codes, positions = evaluation.fixed()
    failed = _is_unscored(evaluation)
    return ClassAnswer(
        filters=answer.filters,
        scores=answer.scores,
        error=evaluation.pre_score.message if failed else "",
        statuses=tuple(status_out(status) for status in evaluation.statuses),
        fixed_codes=codes[rows].tobytes(),
        fixed_positions=positions[rows].tobytes(),
        fixed_scores=_fixed_scores(evaluation, rows) if groups is not None else (),
        groups=groups.tell(kept_back) if groups is not None else (),
        refused=refusals_out(refused),
    )


def _fixed_scores(evaluation: Evaluation, rows: Rows) -> tuple[bytes, ...]:
    return tuple(
        raw[rows].tobytes() if raw is not None and each.plugin.reads is Reads.NODE else b""
        for each, raw in zip(evaluation.profile.score, evaluation.raw, strict=True)
    )
