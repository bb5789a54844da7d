"""Policies that runs seldom check: the simulated latency of a job, and the choice of pods for a
scheduler's own nodes. Each is called at random, with a run's pods, and compared with a few plain
lines.
"""

import random
from dataclasses import replace
from types import SimpleNamespace

from roadstead.config.concurrency import JOB_KIND_LABEL, DecisionTime, JobTime
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.jobs import SimulatedLatency, pods_of_first_job
from roadstead.cycle.partitions import Partition
from roadstead.facts.pod import Owner
from roadstead.nodes.pod_class import PodClasses

TIMES = 12


def problems_of(plan, scenario, drawn):
    """Return the first few differences."""
    draw = random.Random(f"ramble policies {drawn}")
    pods = _pods(scenario, draw)
    found = [*_of_thinking(pods, draw), *_of_partition(plan, pods, draw)]
    return [f"called at random: {each}" for each in found[:2]]


def _pods(scenario, draw):
    """Pods of the run, some of them of one job and one shape."""
    classes, pods = PodClasses(), []
    for who, facts in draw.sample(scenario.pods, min(10, len(scenario.pods))):
        owner = draw.choice((facts.owner, None, Owner("Job", f"j{draw.randrange(2)}", "")))
        kind = draw.choice(((), ((JOB_KIND_LABEL, draw.choice(("service", "batch", "other"))),)))
        name = draw.choice(("default-scheduler", "served"))
        labels = (*facts.labels, *kind)
        pod_class = classes.pod_class(
            replace(facts, owner=owner, labels=labels, scheduler_name=name)
        )
        pods.append(PodInCycle(who.uid, f"{who.namespace}/{who.name}", pod_class, pod_class))
    return pods


def _job(facts):
    """A key that pods of one job share; None for a single pod."""
    if facts.pod_group is not None:
        return facts.namespace, "gang", facts.pod_group.name
    owner = facts.owner
    return owner and (facts.namespace, owner.kind, owner.uid or owner.name)


def _of_thinking(pods, draw):
    times = {kind: (draw.choice((0.0, 1.0, 8.0)), draw.choice((0.0, 0.25))) for kind in KINDS}
    served = draw.choice(({}, {"served": "service"}, {"served": "batch"}))
    named = {kind: JobTime(job_s=job_s, task_s=task_s) for kind, (job_s, task_s) in times.items()}
    latency, paid = SimulatedLatency(DecisionTime(**named, profiles=served)), set()
    if latency.is_on != any(map(any, times.values())):
        yield f"is_on is {latency.is_on} with {times}"
    for _ in range(TIMES):
        some = [
            pod._replace(attempt=draw.randint(1, 3))
            for pod in draw.sample(pods, draw.randint(1, len(pods)))
        ]
        first = some[0].pod_class.facts
        wanted = [pod for pod in some if _job(pod.pod_class.facts) == _job(first)]
        wanted = wanted if _job(first) else some[:1]
        if [*pods_of_first_job(some)] != wanted:
            yield f"the first job of {some} is {pods_of_first_job(some)}"
        new = [pod for pod in wanted if (pod.uid, pod.attempt) not in paid]
        paid |= {(pod.uid, pod.attempt) for pod in new}
        wait_s = 0.0
        if new:
            facts = new[0].pod_class.facts
            kind = dict(facts.labels).get(JOB_KIND_LABEL)
            kind = kind if kind in KINDS else served.get(facts.scheduler_name, "batch")
            wait_s = times[kind][0] + times[kind][1] * len(new)
        if (actual_s := latency.wait_s(wanted)) != wait_s:
            yield f"{len(new)} new pods of {len(wanted)} are delayed {actual_s} s, not {wait_s}"


KINDS = ("batch", "service")


def _of_partition(plan, pods, draw):
    schedulers = draw.randint(1, 3)
    settings = SimpleNamespace(
        scheduler_profiles=("",) * schedulers,
        partitions=draw.randint(schedulers, 5),
        partition_policy=draw.choice(("latency-first", "quality-first", "adaptive")),
        partition_long_queue_pods=3,
    )
    index, passed = draw.randrange(schedulers), set()
    partition = Partition(settings, index, {})
    is_long, turn = True, 0
    for _ in range(TIMES):
        if draw.random() < 0.4:
            waiting, turn = draw.choice((0, 3, 4)), turn + 1
            is_long = waiting > 3
            passed.clear()
            partition.record_lease(waiting, turn)
        owned = {n for n in range(settings.partitions) if (n + turn) % schedulers == index}
        if set(partition.nodes.own) != owned:
            yield f"scheduler {index} of {schedulers} owns {partition.nodes.own}, not {owned}"
        pod = draw.choice(pods)._replace(attempt=draw.choice((1, 1, 1, 2)))
        facts, policy = pod.pod_class.facts, settings.partition_policy
        looks = facts.pod_affinity or facts.pod_anti_affinity or facts.volumes
        looks = looks or "DoNotSchedule" in [c.when_unsatisfiable for c in facts.spread_constraints]
        is_local = policy == "latency-first" or (policy == "adaptive" and is_long)
        is_local = is_local and pod.attempt == 1 and pod.uid not in passed and not looks
        if (tries := partition.tries_own_nodes_first(pod)) != is_local:
            yield f"{pod.key} goes to own nodes: {tries}, not {is_local}"
        if draw.random() < 0.4 and pod.attempt == 1:
            passed.add(pod.uid)
            partition.pass_on(pod)
