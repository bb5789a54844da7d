"""Explaining one pod through the workers of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from roadstead.actors.messages import EVALUATE, VIEW, ViewAsk
from roadstead.actors.names import worker_name
from roadstead.actors.seam import Ref
from roadstead.actors.supervisor import Supervisor
from roadstead.cycle.batch import BatchRun, PodInCycle
from roadstead.cycle.explain import Explanation, explain
from roadstead.cycle.messages import EvaluateRequest, ShardAnswer
from roadstead.cycle.sharded import MAX_ROUNDS, ShardedCycle, with_version
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.protocol.errors import InputError, RoadsteadError
from roadstead.run import Pod, RunPlan, build_profiles


async def explain_pod(supervisor: Supervisor, plan: RunPlan, pod: Pod) -> Explanation:
    """Every node's answer for one pod, as the workers give it; places nothing."""
    identity, facts = pod
    classes = PodClasses()
    profiles = build_profiles(plan, classes)
    profile = profiles.get(facts.scheduler_name)
    if profile is None:
        raise InputError(
            "is the name of no profile of the configuration",
            obj=f'Pod "{identity.key}"',
            field="spec.schedulerName",
            value=f'"{facts.scheduler_name}"',
        )
    signature = profile.signature(facts, identity.uid)
    asked = PodInCycle(identity.uid, identity.key, classes.info(facts), signature)
    workers = [supervisor.refs[worker_name(i)] for i in range(plan.settings.shards)]
    cycle = ShardedCycle(classes, profiles, TieBreak())
    timeout_s = plan.settings.deadlines.call_s
    batch = await begin_batch(cycle, [asked], workers, [0] * len(workers), timeout_s)
    ask = cycle.merged_ask(signature)
    message = ViewAsk(cycle.node_count, 0, ask)
    views = await asyncio.gather(
        *(worker.call(VIEW, message, timeout_s=timeout_s) for worker in workers)
    )
    filters, scores = batch.summaries(signature)
    return explain(profile, asked, views, filters, scores)


async def begin_batch(
    cycle: ShardedCycle,
    pods: Sequence[PodInCycle],
    workers: Sequence[Ref],
    versions: Sequence[int],
    timeout_s: float,
) -> BatchRun:
    """All rounds with the workers, up to a batch that is ready to be decided.

    versions: how far each worker's table must have come.
    """
    request = cycle.begin(pods)
    for _ in range(MAX_ROUNDS):
        answers = await asyncio.gather(
            *(
                _ask(worker, with_version(request, version), timeout_s)
                for worker, version in zip(workers, versions, strict=True)
            )
        )
        following = cycle.absorb(answers)
        if isinstance(following, BatchRun):
            return following
        request = following
    raise RoadsteadError("the workers did not agree on the number of nodes and their summaries")


async def _ask(worker: Ref, request: EvaluateRequest, timeout_s: float) -> ShardAnswer:
    return await worker.call(EVALUATE, request, timeout_s=timeout_s)
