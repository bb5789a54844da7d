"""The rounds of one batch: asking all workers until they have told all that there is to merge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from roadstead.actors.messages import EVALUATE
from roadstead.actors.scheduler.outside import call_outside
from roadstead.actors.scheduler.slow_workers import SlowWorkers
from roadstead.actors.seam import PatientRef, Ref
from roadstead.cycle.batch import BatchRun, PodInCycle
from roadstead.cycle.messages import EvaluateRequest, ShardAnswer
from roadstead.cycle.sharded import MAX_ROUNDS, NarrowTask, ShardedCycle, with_version
from roadstead.framework.narrowed import Narrowing
from roadstead.protocol.errors import RoadsteadError


class UnsettledError(RoadsteadError):
    """Nodes came or went, or pods that summaries count, all the while: the batch begins anew."""


async def begin_batch(
    cycle: ShardedCycle,
    pods: Sequence[PodInCycle],
    workers: Sequence[Ref],
    versions: Sequence[int],
    timeout_s: float,
    slow: SlowWorkers | None = None,
) -> BatchRun:
    """All rounds with the workers, up to a batch that is ready to be decided.

    versions: how far each worker's table must have come. slow: leaves out workers that are late.
    UnsettledError where the tables changed too often meanwhile, or every worker is late.
    """
    request = cycle.begin(pods)
    if slow is not None:
        slow.begin()
    for _ in range(MAX_ROUNDS):
        answers = await asyncio.gather(
            *(
                _ask(worker, with_version(request, version), timeout_s, slow)
                for worker, version in zip(workers, versions, strict=True)
            )
        )
        there = [answer for answer in answers if answer is not None]
        if not there:
            raise UnsettledError("no worker answered in time")
        following = cycle.absorb(there)
        if isinstance(following, BatchRun):
            return following
        if isinstance(following, NarrowTask):
            following = cycle.narrowed(await narrow_outside(following))
        request = following
    raise UnsettledError("the workers did not agree on the number of nodes and their summaries")


async def narrow_outside(task: NarrowTask) -> Narrowing:
    """What sampling and extenders leave; extenders are called beside the loop."""
    if not task.calls_extenders:
        return task.run()
    return await call_outside(task.narrower.extenders, task.run)


async def _ask(
    worker: Ref, request: EvaluateRequest, timeout_s: float, slow: SlowWorkers | None
) -> ShardAnswer | None:
    if slow is not None and isinstance(worker, PatientRef):
        return await slow.ask(worker, request)
    return await worker.call(EVALUATE, request, timeout_s=timeout_s)
