"""ShardedCycle: a scheduler's part of the cycle: one batch of pods over all shards, exactly.

    begin(pods) ──► EvaluateRequest ──► every shard ──► absorb(answers)
                          ▲                                  │
                          └──── some class waits for merged ─┤
                                summaries, or the number     │
                                of nodes was another         ▼
                                                       BatchRun: decide(pod) for each pod in turn

A pod whose nodes are sampled, or in which an extender is interested, is a batch of its own: shards
first say what Filter leaves, and are asked again with what stays of it (`NarrowTask`).
One round where no plugin has anything to merge, two or three otherwise. A pod that `decide` cannot
settle (None) and those behind it go into the next batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from roadstead.cycle.batch import Accelerator, BatchRun, ClassInput, PodInCycle
from roadstead.cycle.class_memory import MIN_CLASSES, most_classes, most_together, within
from roadstead.cycle.class_run import ClassRun, Rest, RestGroup
from roadstead.cycle.messages import ClassAnswer, ClassAsk, DryRunAsk, EvaluateRequest, ShardAnswer
from roadstead.cycle.narrowing import Found, Narrower, Roster, merge_found
from roadstead.cycle.wire import (
    filters_in,
    found_in,
    merge_filters,
    merge_scores,
    narrowed_out,
    refusals_in,
    scores_in,
    status_in,
    summaries_out,
)
from roadstead.extenders.chain import Extenders
from roadstead.facts.wire import facts_in, facts_out
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.evaluation import Evaluation, Summaries
from roadstead.framework.failures import phase_failure
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.narrowed import Narrowing
from roadstead.framework.plugin import Reads
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.framework.victims import DryRun
from roadstead.nodes.columns import I32, I64
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.row_slice import join
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import Status, error

MAX_ROUNDS = 6
"""Number of nodes, PreFilter's summaries, narrowing, PreScore's, the answer; one to spare."""


MAX_REACH = 1 << 20

MAX_NAMED = 500_000
"""Rows times classes of which one worker tells: each takes some fifty bytes of its answer."""


@dataclass(slots=True)
class _ClassInBatch:
    pod: PodInCycle
    profile: Profile
    filters: Summaries | None = None
    scores: Summaries | None = None
    narrows: bool = False
    narrowing: Narrowing | None = None
    failure: Status | None = None

    def ask(self) -> ClassAsk:
        return ClassAsk(
            facts_out(self.pod.info.facts),
            None if self.filters is None else summaries_out(self.filters),
            None if self.scores is None else summaries_out(self.scores),
            self.narrows,
            None if self.narrowing is None else narrowed_out(self.narrowing.narrowed),
        )

    def forget(self) -> None:
        """The shards' tables are others than was believed: all is asked anew."""
        self.filters = self.scores = self.narrowing = self.failure = None


@dataclass(frozen=True, slots=True)
class NarrowTask:
    """What Filter left for one pod on all shards, to be narrowed; `run` calls extenders."""

    narrower: Narrower
    profile: Profile
    pod: PodInCycle
    roster: Roster
    found: Found

    @property
    def calls_extenders(self) -> bool:
        return self.narrower.extenders.looks_at(self.pod.info.facts)

    def run(self) -> Narrowing:
        return self.narrower.narrow(self.profile, self.pod, self.roster, self.found)


class ShardedCycle:
    """Decides batches of pods from what shards answer. One batch at a time."""

    def __init__(
        self,
        classes: PodClasses,
        profiles: Mapping[str, Profile],
        tie_break: TieBreak,
        *,
        name_best: bool = False,
        narrower: Narrower | None = None,
        accelerator: Accelerator | None = None,
        keep_at_least: int = 0,
    ) -> None:
        """keep_at_least: candidates per group, where a batch is to serve more pods than asked."""
        self._keep_at_least = keep_at_least
        self.roster = Roster()
        self.accelerator = accelerator
        self._narrower = narrower
        self.classes = classes
        self._profiles = profiles
        self._chooser = Chooser(tie_break)
        self._name_best = name_best
        self.node_count = 0
        self.row_versions: dict[str, int] = {}
        self._asked: dict[Hashable, _ClassInBatch] = {}
        self._keep = 1
        self._shards = 1
        self._sharers = 1
        self._reach = MAX_REACH

    def reach(self, pods: int) -> int:
        """How many of so many pods to ask about at once.

        Where placements keep ending batches early (classes that look across nodes), asking about
        pods that will not be settled would only be asked again.
        """
        return min(pods, self._reach)

    def together(self, pods: Sequence[PodInCycle]) -> Sequence[PodInCycle]:
        """The first pods, as many as to ask about at once; one that is narrowed goes alone."""
        pods = self._few_classes(self._few_named(pods[: self.reach(len(pods))]))
        for place, pod in enumerate(pods):
            if self.narrows(pod):
                return pods[: max(place, 1)]
        return pods

    def _few_named(self, pods: Sequence[PodInCycle]) -> Sequence[PodInCycle]:
        """The first pods, of no more classes than workers can answer about in one message."""
        rows = self.node_count // self._shards
        most = max(MIN_CLASSES, MAX_NAMED // rows) if rows else MIN_CLASSES
        return pods[: within((pod.signature for pod in pods), most)]

    def _few_classes(self, pods: Sequence[PodInCycle]) -> Sequence[PodInCycle]:
        """The first pods, of no more classes than what is found of them may take of memory."""
        most = most_classes(self._rows, self._sharers)
        if len({pod.signature for pod in pods}) <= most:
            return pods
        pods = pods[: within((self._sharing_key(pod) for pod in pods), most)]
        most = most_together(self._rows, self._sharers)
        return pods[: within((pod.signature for pod in pods), most)]

    @property
    def _rows(self) -> int:
        return self.node_count

    def _sharing_key(self, pod: PodInCycle) -> Hashable:
        """Equal for pods that share what is found of them."""
        return pod.signature

    @property
    def extenders(self) -> Extenders | None:
        """The extenders of the configuration, if there are any."""
        return None if self._narrower is None else self._narrower.extenders

    def narrows(self, pod: PodInCycle) -> bool:
        """Whether a pod needs `roster`: all nodes in their order, as its cycle begins."""
        return self._narrower is not None and self._narrower.concerns(pod.info.facts)

    def settled(self, asked: int, decided: int) -> None:
        """Learns from a batch that took effect: ended early, the next is short; whole, longer."""
        longer = min(MAX_REACH, 2 * self._reach)
        self._reach = longer if decided == asked else max(1, decided)
        for each in self._asked.values():
            if each.narrowing is not None and self._narrower is not None:
                self._narrower.settle(each.narrowing)

    def begin(self, pods: Sequence[PodInCycle]) -> EvaluateRequest:
        """Starts a batch: what to ask every shard. KeyError for a pod of no profile."""
        self._begin(pods)
        # A batch touches fewer rows than this, so each group keeps an untouched candidate.
        self._keep = max(len(pods), self._keep_at_least) + 1
        return self._request()

    def _begin(self, pods: Sequence[PodInCycle]) -> None:
        """The classes of a batch. KeyError for a pod of no profile."""
        self._asked = {}
        for pod in pods:
            if pod.signature not in self._asked:
                profile = self._profiles[pod.info.facts.scheduler_name]
                each = _ClassInBatch(pod, profile, narrows=self.narrows(pod))
                self._asked[pod.signature] = each

    def _request(self) -> EvaluateRequest:
        asks = tuple(each.ask() for each in self._asked.values())
        return EvaluateRequest(self.node_count, self._keep, 0, asks)

    def merged_ask(self, signature: Hashable) -> ClassAsk:
        """A class of the batch with all its summaries merged (after `absorb` made the batch)."""
        asked = self._asked[signature]
        return ClassAsk(
            facts_out(asked.pod.info.facts),
            summaries_out(asked.filters or {}),
            summaries_out(asked.scores or {}),
            narrowed=None if asked.narrowing is None else narrowed_out(asked.narrowing.narrowed),
        )

    def dry_run_ask(self, signature: Hashable, dry_run: DryRun) -> DryRunAsk:
        """What to ask every shard for a class of the batch that fits nowhere."""
        return DryRunAsk(self.node_count, 0, self.merged_ask(signature), dry_run)

    def narrowing(self, signature: Hashable) -> Narrowing | None:
        """What sampling and extenders left for a class of the batch."""
        return self._asked[signature].narrowing

    def narrowed(self, narrowing: Narrowing) -> EvaluateRequest:
        """Takes what came of a NarrowTask: what to ask next."""
        for asked in self._asked.values():
            asked.narrowing = narrowing
        return self._request()

    def absorb(self, answers: Sequence[ShardAnswer]) -> EvaluateRequest | NarrowTask | BatchRun:
        """Takes one answer per shard: what to ask or do next, or the batch ready to be decided.

        Raises UnsupportedError where a plugin that is not there yet would be needed.
        """
        self._shards = len(answers)
        node_count = sum(answer.node_count for answer in answers)
        if node_count != self.node_count:
            self.node_count = node_count
            for asked in self._asked.values():
                asked.forget()
            return self._request()
        waiting = False
        for index, asked in enumerate(self._asked.values()):
            parts = [answer.classes[index] for answer in answers]
            _refuse_unsupported(asked.pod, parts)
            waiting |= _waits_for_merge(asked, parts)
            if not waiting and any(part.waits_for == "narrowing" for part in parts):
                assert len(answers[0].classes) == 1, "a pod that is narrowed goes alone"
                return self._task(asked, parts)
        if not waiting and _overlap(answers):
            # A node went, and came again at another worker: one has not heard of it yet.
            for asked in self._asked.values():
                asked.forget()
            waiting = True
        return self._request() if waiting else self._batch(answers)

    def _task(self, asked: _ClassInBatch, parts: Sequence[ClassAnswer]) -> NarrowTask:
        assert self._narrower is not None
        found = merge_found([found_in(part) for part in parts])
        return NarrowTask(self._narrower, asked.profile, asked.pod, self.roster, found)

    def _batch(self, answers: Sequence[ShardAnswer]) -> BatchRun:
        table = self._candidates(answers)
        self.row_versions = _row_versions(answers)
        sizes = [_candidate_count(answer) for answer in answers]
        classes = {}
        for index, (signature, asked) in enumerate(self._asked.items()):
            parts = [answer.classes[index] for answer in answers]
            evaluation = Evaluation(asked.profile, asked.pod.info, table)
            _seed(evaluation, parts, sizes)
            failures = (error(part.failure) for part in parts if part.failure)
            failure = asked.failure or next(failures, None)
            why = next((p.error for p in parts if p.error), "")
            run = ClassRun(evaluation, _rest(answers, index), why, failure)
            run.narrowing = asked.narrowing
            evaluation.is_bare = asked.narrowing is not None and asked.narrowing.narrowed.is_bare
            classes[signature] = ClassInput(run, asked.filters or {}, asked.scores or {})
        return BatchRun(
            table,
            self.node_count,
            classes,
            self._chooser,
            name_best=self._name_best,
            accelerator=self.accelerator,
        )

    def _candidates(self, answers: Sequence[ShardAnswer]) -> NodeTable:
        slices = (answer.nodes if answer.nodes is not None else answer.rows for answer in answers)
        table = join([each for each in slices if each is not None], self.classes)
        for answer in answers:
            for name, facts, count in answer.nominations:
                table.nominate(name, self.classes.info(facts_in(facts)), count)
        return table


def _row_versions(answers: Sequence[ShardAnswer]) -> dict[str, int]:
    """Versions of the candidates' rows by node, where the shards tell them."""
    found: dict[str, int] = {}
    for answer in answers:
        if answer.row_versions:
            found.update(zip(_names(answer), answer.row_versions, strict=True))
    return found


def _names(answer: ShardAnswer) -> tuple[str, ...]:
    """The candidates of a shard by name."""
    whole = answer.nodes.nodes if answer.nodes is not None else ()
    names = tuple(each.name for each in whole)
    return names + (answer.rows.names if answer.rows is not None else ())


def _overlap(answers: Sequence[ShardAnswer]) -> bool:
    """Whether two shards tell of the same node."""
    names = [name for answer in answers for name in _names(answer)]
    return len(set(names)) < len(names)


def _candidate_count(answer: ShardAnswer) -> int:
    if answer.nodes is not None:
        return len(answer.nodes.nodes)
    return len(answer.rows.names) if answer.rows is not None else 0


def _refuse_unsupported(pod: PodInCycle, parts: Sequence[ClassAnswer]) -> None:
    for part in parts:
        if part.unsupported is not None:
            plugin, field = part.unsupported
            raise UnsupportedError(plugin, f'Pod "{pod.key}"', field)


def _waits_for_merge(asked: _ClassInBatch, parts: Sequence[ClassAnswer]) -> bool:
    """As `_merge_summaries`; where a plugin fails to, the class has failed, and nobody waits."""
    if asked.failure is not None:
        return False
    try:
        return _merge_summaries(asked, parts)
    except PluginFailure as failure:
        phase = "PreFilter" if asked.filters is None else "PreScore"
        asked.failure = phase_failure(phase, failure.status)
        asked.filters, asked.scores = asked.filters or {}, {}
        return True


def _merge_summaries(asked: _ClassInBatch, parts: Sequence[ClassAnswer]) -> bool:
    """Takes the next merge that a class needs; True if the shards must be asked again."""
    profile = asked.profile
    own_filters = (filters_in(part.filters, profile) for part in parts)
    own_scores = (scores_in(part.scores, profile) for part in parts)
    stages = {part.waits_for for part in parts}
    if "filters" in stages:
        asked.filters = merge_filters(own_filters, profile)
        return True
    if asked.filters is None:
        asked.filters = merge_filters(own_filters, profile)
    if "scores" in stages:
        asked.scores = merge_scores(own_scores, profile)
        return True
    if "narrowing" in stages:
        return False
    if asked.scores is None:
        asked.scores = merge_scores(own_scores, profile)
    return False


def _seed(evaluation: Evaluation, parts: Sequence[ClassAnswer], sizes: Sequence[int]) -> None:
    """Hands a class's evaluation over the candidates what the shards found from NODE facts."""
    codes: list[I32] = []
    positions: list[I32] = []
    for part, size in zip(parts, sizes, strict=True):
        if not part.fixed_codes:
            codes.append(np.zeros(size, dtype=np.int32))
            positions.append(np.zeros(size, dtype=np.int32))
            continue
        own = [evaluation.intern(status_in(status)) for status in part.statuses]
        translate = np.array([0, *own, -1], dtype=np.int32)
        codes.append(translate[np.frombuffer(part.fixed_codes, np.int32)])
        positions.append(np.frombuffer(part.fixed_positions, np.int32))
    scores = [
        _seeded_line(parts, sizes, index) if each.plugin.reads is Reads.NODE else None
        for index, each in enumerate(evaluation.profile.score)
    ]
    evaluation.seed(np.concatenate(codes), np.concatenate(positions), scores)


def _seeded_line(parts: Sequence[ClassAnswer], sizes: Sequence[int], index: int) -> I64:
    """Raw scores over the candidates; 0 on shards where no row was feasible to score."""
    lines: list[I64] = []
    for part, size in zip(parts, sizes, strict=True):
        line = part.fixed_scores[index] if part.fixed_scores else b""
        lines.append(np.frombuffer(line, np.int64) if line else np.zeros(size, dtype=np.int64))
    return np.concatenate(lines)


def _rest(answers: Sequence[ShardAnswer], index: int) -> Rest:
    """What the shards kept back of the class at a place in their answers."""
    refused = Diagnosis(0)
    parts = [answer.classes[index] for answer in answers]
    for answer, part in zip(answers, parts, strict=True):
        refusals_in(part.refused, refused)
        refused.see_priority(answer.lowest_priority)
    groups = (RestGroup(g.raw, g.rows, g.floor) for part in parts for g in part.groups)
    return Rest(tuple(groups), refused)


def with_version(request: EvaluateRequest, table_version: int) -> EvaluateRequest:
    """The request for one worker, whose table must have reached a version."""
    return replace(request, table_version=table_version)
