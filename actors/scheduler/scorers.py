"""Scorers: what a scheduler asks workers about classes that are new.

Before a batch, what users' plugins say of them:

    unfound classes ──► each worker, some classes at a time ──► put together ──► the cycle's next
                              │ late, lost, of other nodes                       batch takes them
                              └──► those rows are asked here, as without workers

Nothing is decided by it: what workers say holds for rows as they were, and all that changed since
is asked again. That is little where it is not long ago: batches with new classes are short, and
while one is decided workers score the next. Plugins that answer sooner than their answers travel
are not asked about any more.

In a batch, while its table stands still, the best rows of classes that come once: what the kernel
would look for among all rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from roadstead.actors.logs import log
from roadstead.actors.messages import RANK, SCORE
from roadstead.actors.names import worker_name
from roadstead.actors.scheduler.held_nodes import HeldNodes
from roadstead.actors.seam import ActorLostError, DeadlineError, Directory, Method, clock_s
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.listed import LISTED_ROWS, best_rows, may_list
from roadstead.cycle.messages import RankAsk, ScoreAsk
from roadstead.cycle.needs import ListBest
from roadstead.cycle.scored_parts import WORTH_S, ScoredParts
from roadstead.cycle.table_cycle import TableCycle
from roadstead.facts.wire import facts_out
from roadstead.kernel.lists import BestRows
from roadstead.run import RunPlan

Q = TypeVar("Q")
A = TypeVar("A")

MOST_CLASSES = 16
"""Classes in one question: a worker answers it in one go, and takes no changes meanwhile."""

MOST_VALUES = 2_000_000
"""Rows times classes in one question."""

NEAR = 128
"""Pods of a batch with new classes: rows on which they are placed are asked again for the next."""

LATE_SHARE = 0.1
"""How much of its deadline a worker gets that missed the last one: others need not wait again."""

FEWEST_RANKED = 16
"""For so few classes nobody waits for workers."""

NEAR_RANKED = 512
"""Pods of a batch with lists: rows on which they are placed are looked at again for each."""

MOST_RANKED = 64
"""Rows that a worker lists of a class: a batch that takes more of them looks at all rows again."""

AT_ONCE = 2
"""Questions under way to each worker: one is answered while the next one travels."""


class Scorers:
    """The workers of a run, as one scheduler asks them.

    missed: how often one was late or gone. given, listed: classes of which they said something.
    """

    def __init__(self, owner: str, plan: RunPlan, directory: Directory, nodes: HeldNodes) -> None:
        settings = plan.settings
        self._owner = owner
        self._directory = directory
        self._nodes = nodes
        self._parts = ScoredParts(nodes.table, settings.workers)
        self._deadlines = settings.deadlines
        self._may_list = may_list(settings)
        self._not_worth: set[str] = set()
        self._late: set[int] = set()
        self._ahead: asyncio.Task[None] | None = None
        self.missed = 0
        self.given = 0
        self.listed = 0

    def near(self, cycle: TableCycle, pods: Sequence[PodInCycle]) -> Sequence[PodInCycle]:
        """The first pods of a batch, fewer where workers are to score some of them."""
        if self._unfound(cycle, pods[:NEAR], with_given=True):
            return pods[:NEAR]
        return pods[:NEAR_RANKED] if self._would_rank(pods[:NEAR_RANKED]) else pods

    def _would_rank(self, pods: Sequence[PodInCycle]) -> bool:
        """Whether it may be worth it to have lists for most of some pods."""
        if not self._may_list or len(self._nodes.table) < LISTED_ROWS:
            return False
        return 2 * len({pod.signature for pod in pods}) > len(pods)

    async def ask(
        self, cycle: TableCycle, pods: Sequence[PodInCycle], coming: Sequence[PodInCycle]
    ) -> None:
        """Has workers score those classes of a batch that are new; returns within a deadline.

        coming: pods of the next batch, about which they are asked while this one is decided.
        """
        if self._ahead is not None:
            await self._ahead
            self._ahead = None
        await self._ask(cycle, pods)
        if self._unfound(cycle, coming):
            self._ahead = asyncio.create_task(self._ask(cycle, coming))

    async def list_best(self, need: ListBest) -> BestRows | None:
        """The best rows for pods, as workers list them; None where it is better not to wait."""
        workers = self._parts.rows.asked()
        if len(self._nodes.table) < LISTED_ROWS or len(need.pods) < FEWEST_RANKED or not workers:
            return None
        until_s = clock_s() + self._deadlines.evaluate_s
        missed_before, self._late = self._late, set()
        table = self._nodes.table
        names = (each for each in self._nodes.tentative.nodes() if table.has_node(each))
        apart = table.rows_of(names)
        ask = RankAsk(
            self._nodes.applied,
            table.arrivals[apart].astype(np.int64).tobytes(),
            tuple(facts_out(pod.info.facts) for pod in need.pods),
            need.draws.tobytes(),
            MOST_RANKED,
        )
        answers = await self._ask_all(RANK, ask, workers, until_s, missed_before)
        signatures = [pod.signature for pod in need.pods]
        best = best_rows(self._parts.rows, answers, signatures, need.draws, MOST_RANKED, apart)
        self.listed += 0 if best is None else len(best.signatures)
        return best

    def end(self) -> None:
        """Nothing is asked any more."""
        if self._ahead is not None:
            self._ahead.cancel()

    def _unfound(
        self, cycle: TableCycle, pods: Sequence[PodInCycle], *, with_given: bool = False
    ) -> list[PodInCycle]:
        """One pod of each new class that is worth asking about."""
        if {pod.info.facts.scheduler_name for pod in pods} <= self._not_worth:
            return []
        found = cycle.unfound(pods, with_given=with_given)
        return [pod for pod in found if pod.info.facts.scheduler_name not in self._not_worth]

    async def _ask(self, cycle: TableCycle, pods: Sequence[PodInCycle]) -> None:
        unfound, workers = self._unfound(cycle, pods), self._parts.rows.asked()
        if not unfound or not workers:
            return
        many = max(1, min(MOST_CLASSES, MOST_VALUES // self._parts.rows.most_rows()))
        until_s = clock_s() + self._deadlines.evaluate_s
        missed_before, self._late = self._late, set()
        slots = asyncio.Semaphore(AT_ONCE)

        async def ask_some(some: Sequence[PodInCycle]) -> None:
            async with slots:
                await self._ask_about(cycle, some, workers, until_s, missed_before)

        starts = range(0, len(unfound), many)
        await asyncio.gather(*(ask_some(unfound[start : start + many]) for start in starts))

    async def _ask_about(
        self,
        cycle: TableCycle,
        pods: Sequence[PodInCycle],
        workers: Sequence[int],
        until_s: float,
        missed_before: set[int],
    ) -> None:
        pods = [each for each in pods if each.info.facts.scheduler_name not in self._not_worth]
        if not pods:
            return
        ask = ScoreAsk(
            self._nodes.applied,
            len(self._nodes.table),
            tuple(facts_out(pod.info.facts) for pod in pods),
        )
        answers = await self._ask_all(SCORE, ask, workers, until_s, missed_before)
        touched = {worker: self._nodes.touched_since(each.seq) for worker, each in answers.items()}
        found = self._parts.put_together(answers, touched, len(pods), self._nodes.known_version)
        if found is None:
            return
        for pod, given in zip(pods, found, strict=True):
            cycle.give(pod.signature, given)
        self.given += len(pods)
        if len(answers) == len(workers):
            self._weigh(pods, sum(each.spent_s for each in answers.values()))

    async def _ask_all(
        self,
        method: Method[Q, A],
        ask: Q,
        workers: Sequence[int],
        until_s: float,
        missed_before: set[int],
    ) -> dict[int, A]:
        """The answers of workers, by worker, as far as they come."""
        found: dict[int, A] = {}

        async def ask_one(worker: int) -> None:
            answer = await self._call(method, worker, ask, until_s, worker in missed_before)
            if answer is not None:
                found[worker] = answer

        await asyncio.gather(*map(ask_one, workers))
        return found

    async def _call(
        self, method: Method[Q, A], worker: int, ask: Q, until_s: float, was_late: bool
    ) -> A | None:
        """A worker's answer; None where it is late or gone, for the rest of the batch, too."""
        share = LATE_SHARE if was_late else 1.0
        left_s = min(self._deadlines.call_s, (until_s - clock_s()) * share)
        if worker in self._late or left_s <= 0:
            return None
        name = worker_name(worker)
        try:
            return await self._directory.find(name).call(method, ask, timeout_s=left_s)
        except (DeadlineError, ActorLostError) as failure:
            self._late.add(worker)
            self.missed += 1
            log(self._owner, "a worker did not answer", worker=name, why=str(failure))
            return None

    def _weigh(self, pods: Sequence[PodInCycle], spent_s: float) -> None:
        """Leaves out profiles whose plugins answer sooner than their answers travel."""
        names = {pod.info.facts.scheduler_name for pod in pods}
        if spent_s < WORTH_S * len(pods) and len(names) == 1:
            self._not_worth |= names
            log(
                self._owner,
                "workers are not asked any more",
                profile=next(iter(names)),
                took_s_per_class=spent_s / len(pods),
            )
