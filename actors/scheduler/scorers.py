"""Scorers: sends requests about new pod classes, those without cached results, to workers.

Before a batch, workers call users' plugins for its new classes:

    new classes ──► each worker, some classes at a time ──► combined ──► the cycle's next
                          │ late, lost, of other nodes                   batch uses them
                          └──► these rows are evaluated here, as without workers

Workers decide nothing: their answers hold for the rows at the time, and the scheduler evaluates
rows that changed since. These are few: batches with new classes are short, and workers score the
next batch while one is decided. Profiles whose plugins take less time than a message are not sent.

During a batch, while its table does not change, workers list the best rows of classes that occur
once, which the kernel would otherwise search among all rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from roadstead.actors.interface import ActorLostError, DeadlineError, Directory, Method, clock_s
from roadstead.actors.logs import log
from roadstead.actors.messages import RANK, SCORE
from roadstead.actors.names import worker_name
from roadstead.actors.scheduler.scheduler_nodes import SchedulerNodes
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.merged_lists import MIN_NODES_FOR_LISTS, best_rows, may_list
from roadstead.cycle.messages import RankRequest, ScoreRequest
from roadstead.cycle.needs import ListBest
from roadstead.cycle.scored_parts import MIN_PLUGINS_S, ScoredParts
from roadstead.facts.wire import encode_facts
from roadstead.kernel.best_rows import BestRows
from roadstead.run import RunPlan

Q = TypeVar("Q")
A = TypeVar("A")

MAX_CLASSES = 16
"""Maximum classes of a request: a worker applies no changes while it answers one."""

MAX_VALUES = 2_000_000
"""Maximum of rows times classes in the answer to one request."""

MAX_UNSCORED = 128
"""Maximum pods of a batch with new classes. The rows of its placements change after the workers
scored them for the next batch, and the scheduler evaluates these rows itself."""

LATE_SHARE = 0.1
"""Share of the deadline for a worker that missed the last one, so that others wait less for it."""

MIN_LISTED = 16
"""Minimum pods of a request for lists (`RANK`)."""

MAX_LISTED = 512
"""Maximum pods of a batch with lists: the kernel evaluates the rows of its placements again for
each further pod."""

ROWS_PER_LIST = 64
"""Rows that a worker lists for a class; a batch that uses more of them searches all rows again."""

MAX_CONCURRENT = 2
"""Requests under way to each worker: it answers one while the next is sent."""


class Scorers:
    """Requests of one scheduler to the workers of a run.

    missed: number of requests to late or lost workers. scored, listed: number of classes that
    workers scored, and of those for which they listed rows. _late: workers that missed a deadline
    of the present batch's requests (`missed_before`: of the batch before). _skipped_profiles: names
    of profiles that are not sent. _next_scoring: scoring for the next batch. _scored_parts: merges
    the workers' answers; has the rows of each.
    """

    def __init__(
        self, owner: str, plan: RunPlan, directory: Directory, nodes: SchedulerNodes
    ) -> None:
        settings = plan.settings
        self._owner = owner
        self._directory = directory
        self._nodes = nodes
        self._scored_parts = ScoredParts(nodes.table, settings.workers)
        self._deadlines = settings.deadlines
        self._may_list = may_list(settings)
        self._skipped_profiles: set[str] = set()
        self._late: set[int] = set()
        self._next_scoring: asyncio.Task[None] | None = None
        self.missed = 0
        self.scored = 0
        self.listed = 0

    def limit_batch(
        self, builder: BatchBuilder, pods: Sequence[PodInCycle]
    ) -> Sequence[PodInCycle]:
        """Return the first pods of a batch: fewer if workers are to score or list some of them."""
        # Classes that workers have scored already, for this batch, limit it as well.
        if self._unscored(builder, pods[:MAX_UNSCORED], with_stored=True):
            return pods[:MAX_UNSCORED]
        return pods[:MAX_LISTED] if self._lists_may_pay(pods[:MAX_LISTED]) else pods

    def _lists_may_pay(self, pods: Sequence[PodInCycle]) -> bool:
        """Whether the table is large, and most of the pods differ in their class."""
        if not self._may_list or len(self._nodes.table) < MIN_NODES_FOR_LISTS:
            return False
        return 2 * len({pod.signature for pod in pods}) > len(pods)

    async def score(
        self, builder: BatchBuilder, pods: Sequence[PodInCycle], next_pods: Sequence[PodInCycle]
    ) -> None:
        """Let workers score the new classes of a batch; returns within a deadline.

        next_pods: pods of the next batch, which workers score while this one is decided.
        """
        if self._next_scoring is not None:
            await self._next_scoring
            self._next_scoring = None
        await self._score_missing(builder, pods)
        if self._unscored(builder, next_pods):
            self._next_scoring = asyncio.create_task(self._score_missing(builder, next_pods))

    async def list_best(self, need: ListBest) -> BestRows | None:
        """Return the best rows for pods, as workers list them; None if a request does not pay."""
        workers = self._scored_parts.rows.with_rows()
        if (
            len(self._nodes.table) < MIN_NODES_FOR_LISTS
            or len(need.pods) < MIN_LISTED
            or not workers
        ):
            return None
        until_s = clock_s() + self._deadlines.evaluate_s
        missed_before, self._late = self._late, set()
        table = self._nodes.table
        # Workers do not have tentative placements: the lists leave these rows out.
        names = (each for each in self._nodes.tentative.nodes() if table.has_node(each))
        excluded = table.rows_of(names)
        request = RankRequest(
            seq=self._nodes.applied,
            excluded=table.arrivals[excluded].astype(np.int64).tobytes(),
            classes=tuple(encode_facts(pod.pod_class.facts) for pod in need.pods),
            draws=need.tie_break_hashes.tobytes(),
            most=ROWS_PER_LIST,
        )
        answers = await self._call_workers(RANK, request, workers, until_s, missed_before)
        signatures = [pod.signature for pod in need.pods]
        hashes = need.tie_break_hashes
        best = best_rows(
            self._scored_parts.rows, answers, signatures, hashes, ROWS_PER_LIST, excluded
        )
        self.listed += 0 if best is None else len(best.signatures)
        return best

    def end(self) -> None:
        """Cancel the request for the next batch."""
        if self._next_scoring is not None:
            self._next_scoring.cancel()

    def _unscored(
        self, builder: BatchBuilder, pods: Sequence[PodInCycle], *, with_stored: bool = False
    ) -> list[PodInCycle]:
        """Return one pod of each new class that is worth a request to workers.

        with_stored: also of classes whose results workers sent already, for the next batch.
        """
        if {pod.pod_class.facts.scheduler_name for pod in pods} <= self._skipped_profiles:
            return []
        missing = builder.missing_classes(pods, with_stored=with_stored)
        return [
            pod
            for pod in missing
            if pod.pod_class.facts.scheduler_name not in self._skipped_profiles
        ]

    async def _score_missing(self, builder: BatchBuilder, pods: Sequence[PodInCycle]) -> None:
        missing_classes, workers = (
            self._unscored(builder, pods),
            self._scored_parts.rows.with_rows(),
        )
        if not missing_classes or not workers:
            return
        classes_per_request = max(
            1, min(MAX_CLASSES, MAX_VALUES // self._scored_parts.rows.max_rows())
        )
        until_s = clock_s() + self._deadlines.evaluate_s
        missed_before, self._late = self._late, set()
        slots = asyncio.Semaphore(MAX_CONCURRENT)

        async def score_part(part: Sequence[PodInCycle]) -> None:
            async with slots:
                await self._score_classes(builder, part, workers, until_s, missed_before)

        starts = range(0, len(missing_classes), classes_per_request)
        await asyncio.gather(
            *(score_part(missing_classes[start : start + classes_per_request]) for start in starts)
        )

    async def _score_classes(
        self,
        builder: BatchBuilder,
        pods: Sequence[PodInCycle],
        workers: Sequence[int],
        until_s: float,
        missed_before: set[int],
    ) -> None:
        # Again: the answers to an earlier part may have led to skipped profiles.
        pods = [
            each
            for each in pods
            if each.pod_class.facts.scheduler_name not in self._skipped_profiles
        ]
        if not pods:
            return
        request = ScoreRequest(
            seq=self._nodes.applied,
            node_count=len(self._nodes.table),
            classes=tuple(encode_facts(pod.pod_class.facts) for pod in pods),
        )
        answers = await self._call_workers(SCORE, request, workers, until_s, missed_before)
        touched = {worker: self._nodes.touched_since(each.seq) for worker, each in answers.items()}
        results_of = self._scored_parts.merge_answers(
            answers, touched, len(pods), self._nodes.known_version
        )
        if results_of is None:
            return
        for pod, results in zip(pods, results_of, strict=True):
            builder.store_worker_results(pod.signature, results)
        self.scored += len(pods)
        # A missing answer would make the plugins seem faster than they are.
        if len(answers) == len(workers):
            self._skip_if_cheap(pods, sum(each.spent_s for each in answers.values()))

    async def _call_workers(
        self,
        method: Method[Q, A],
        request: Q,
        workers: Sequence[int],
        until_s: float,
        missed_before: set[int],
    ) -> dict[int, A]:
        """Send a request to workers and return the answers, by worker; late ones are missing."""
        answers: dict[int, A] = {}

        async def call_one(worker: int) -> None:
            answer = await self._call(method, worker, request, until_s, worker in missed_before)
            if answer is not None:
                answers[worker] = answer

        await asyncio.gather(*map(call_one, workers))
        return answers

    async def _call(
        self, method: Method[Q, A], worker: int, request: Q, until_s: float, was_late: bool
    ) -> A | None:
        """Return a worker's answer; None if it is late or lost.

        Then it is sent nothing more for this batch. was_late: whether it was late or lost in the
        batch before.
        """
        share = LATE_SHARE if was_late else 1.0
        left_s = min(self._deadlines.call_s, (until_s - clock_s()) * share)
        if worker in self._late or left_s <= 0:
            return None
        name = worker_name(worker)
        try:
            return await self._directory.find(name).call(method, request, timeout_s=left_s)
        except (DeadlineError, ActorLostError) as failure:
            self._late.add(worker)
            self.missed += 1
            log(self._owner, "a worker did not answer", worker=name, why=str(failure))
            return None

    def _skip_if_cheap(self, pods: Sequence[PodInCycle], spent_s: float) -> None:
        """Stop requests for a profile whose plugins take less time than a message."""
        names = {pod.pod_class.facts.scheduler_name for pod in pods}
        # The time is a sum over all pods: with several profiles it fits none of them.
        if spent_s < MIN_PLUGINS_S * len(pods) and len(names) == 1:
            self._skipped_profiles |= names
            log(
                self._owner,
                "workers are not asked any more",
                profile=next(iter(names)),
                took_s_per_class=spent_s / len(pods),
            )
