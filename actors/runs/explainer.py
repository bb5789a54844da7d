"""Explaining one pod through the workers of a run."""

from __future__ import annotations

import asyncio

from roadstead.actors.messages import SETTLE, VIEW, Settle, ViewAsk
from roadstead.actors.names import CACHE, holder_names
from roadstead.actors.scheduler.preemption import try_on_workers
from roadstead.actors.scheduler.roster import RosterCopy
from roadstead.actors.scheduler.rounds import begin_batch
from roadstead.actors.scheduler.volumes import SchedulerVolumes
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.explain import Explanation, explain, with_post_filter
from roadstead.cycle.sharded import ShardedCycle
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.protocol.errors import InputError, cut_short
from roadstead.run import Pod, RunPlan, build_narrower, build_profiles


async def explain_pod(supervisor: Supervisor, plan: RunPlan, pod: Pod) -> Explanation:
    """Every node's answer for one pod, as the workers give it; places nothing."""
    identity, facts = pod
    classes = PodClasses()
    profiles = build_profiles(plan, classes)
    volumes = SchedulerVolumes(next(iter(profiles.values())).storage)
    profile = profiles.get(facts.scheduler_name)
    if profile is None:
        raise InputError(
            "is the name of no profile of the configuration",
            obj=f'Pod "{identity.key}"',
            field="spec.schedulerName",
            value=cut_short(facts.scheduler_name),
        )
    info = classes.info(facts)
    signature = profile.class_of(info, identity.uid)
    asked = PodInCycle(identity.uid, identity.key, info, signature)
    workers = [supervisor.refs[name] for name, *_ in holder_names(plan.settings)]
    narrower = build_narrower(plan, supervisor.caller_of)
    cycle = ShardedCycle(classes, profiles, TieBreak(), narrower=narrower)
    timeout_s = plan.settings.deadlines.call_s
    cache = supervisor.refs[CACHE]
    reached = await cache.call(SETTLE, Settle((), (), ()), timeout_s=timeout_s)
    volumes.take(reached.storage)
    volumes.catch_up()
    if narrower is not None and cycle.narrows(asked):
        roster = RosterCopy(whole=narrower.extenders.wants_manifests)
        cycle.roster = await roster.take(cache, timeout_s)
    batch = await begin_batch(cycle, [asked], workers, reached.worker_seqs, timeout_s)
    ask = cycle.merged_ask(signature)
    message = ViewAsk(cycle.node_count, 0, ask)
    views = await asyncio.gather(
        *(worker.call(VIEW, message, timeout_s=timeout_s) for worker in workers)
    )
    filters, scores = batch.summaries(signature)
    tie_break = TieBreak(plan.settings.tie_break, plan.settings.seed)
    narrowing = cycle.narrowing(signature)
    found = explain(profile, asked, views, filters, scores, narrowing, tie_break)
    if found.dry_run is None:
        return found
    versions = reached.worker_seqs
    tried = await try_on_workers(cycle, workers, versions, timeout_s, asked, found.dry_run)
    return with_post_filter(found, profile, asked, tie_break, tried)
