"""Variants of the scenarios: the same clusters, run in other ways.

plain: unchanged. quiet: one scheduler and no faults, each decision judged. modes: many schedulers,
in every mode and with every setting varied. kernel: with the compiled kernel, and enough pods of a
class for it. resume: runs as the command line makes them, whose process is killed. wide: more
manifest fields, in each of these ways by turns. sampled: a share of many nodes is scored. strained:
a user's plugins and an extender that fail.
"""

import json
import random
from dataclasses import replace

from roadstead.config.concurrency import DecisionTime, JobTime
from roadstead.config.settings import Settings
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Owner, PodIdentity
from tests.builders import GIB, node, pod, taint
from tests.faulty_extender import Faults, config_of, extender
from tests.faulty_plugins import config_with, faulty
from tests.peculiar_plugins import ACROSS, BINDING, DECIDING
from tests.peculiar_plugins import config_with as with_peculiar
from tests.peculiar_plugins import peculiar as peculiar_plugins
from tests.simulation.devices import with_devices
from tests.simulation.devices_by_gate import with_gates
from tests.simulation.limits import shrunk_of
from tests.simulation.scenarios import HOSTNAME, ZONE, ZONES, Wave
from tests.simulation.scenarios import KINDS as PLAIN_KINDS
from tests.simulation.wide import DISK, WISHES, by_profile, widened, with_updates

PODS_OF_A_JOB = 3


def in_some_mode(scenario, seed):
    """Return the scenario with settings of its seed, and with jobs of a few pods."""
    draw = random.Random(f"modes {seed}")
    settings = scenario.plan.settings
    mode = draw.choice(("shared", "partitioned", "partitioned"))
    schedulers = draw.choice((2, 3, 4))
    how = {
        "mode": mode,
        "schedulers": schedulers,
        "partitions": max(draw.choice((1, 2, 3)), schedulers),
        "conflicts": draw.choice(("fit", "version")),
        "transaction": draw.choice(("incremental", "all-or-nothing")),
        "staleness_s": draw.choice((None, 0.0, 0.2, 2.0)),
        "decision_time": _latency(draw),
    }
    if mode == "partitioned":
        how |= {
            "partition_policy": draw.choice(("latency-first", "quality-first", "adaptive")),
            "partition_refresh_s": draw.choice((0.0, 0.5, 3.0)),
            "partition_long_queue_pods": draw.choice((1, 8)),
        }
    settings = _checked(settings, how)
    waves = tuple(replace(wave, pods=_jobs(wave.pods)) for wave in scenario.waves)
    return replace(scenario, plan=replace(scenario.plan, settings=settings), waves=waves)


def _latency(draw):
    # Short enough that all pods can be tried again within the time allowed for recovery.
    job_s, task_s = draw.choice((0.0, 0.0, 0.05, 0.1)), draw.choice((0.0, 0.01))
    return DecisionTime(batch=JobTime(job_s=job_s, task_s=task_s))


def _jobs(pods):
    return tuple(
        (who, replace(facts, owner=Owner("Job", f"j{number // PODS_OF_A_JOB}", "")))
        for number, (who, facts) in enumerate(pods)
    )


def with_kernel(scenario, seed):
    """Return the scenario with more room, more pods of one class in a row, and larger batches."""
    draw = random.Random(f"kernel {seed}")
    settings = scenario.plan.settings
    how = {"batch": draw.choice((8, 32, 128)), "kernel": True}
    settings = _checked(settings, {"schedulers": draw.choice((1, 2))} | how)
    more = tuple(
        node(
            name,
            cpu=draw.choice((4000, 16000)),
            memory=64 * GIB,
            pods=draw.choice((10, 30, 110)),
            labels={HOSTNAME: name, ZONE: draw.choice(ZONES)},
        )
        for name in (f"k{number}" for number in range(draw.randint(2, 8)))
    )
    waves = [*scenario.waves]
    for number in range(draw.randint(1, 4)):
        kind = draw.choice(("plain", "plain", "ranked", "spread", "apart", "near", "port"))
        facts = KINDS[kind](draw, number)
        pods = [(f"k{number}-{member}", facts) for member in range(draw.randint(10, 60))]
        named = tuple((PodIdentity(f"uid-{name}", "default", name), each) for name, each in pods)
        place = draw.randrange(len(waves))
        waves[place] = replace(waves[place], pods=(*waves[place].pods, *named))
    plan = replace(scenario.plan, settings=settings)
    nodes = (*scenario.nodes, *more)
    return replace(scenario, plan=plan, nodes=nodes, waves=tuple(waves), has_kernel=True)


def resumable(scenario, seed):
    """Return the scenario with pods that run already, and times at which its process is killed."""
    draw = random.Random(f"resume {seed}")
    running = tuple(
        (PodIdentity(f"uid-{name}", "default", name), pod(cpu=50, labels={"app": "runs"}), host)
        for host in (each.name for each in scenario.nodes)
        for name in (f"runs-on-{host}",)
        if draw.random() < 0.4
    )
    kills_s = sorted(round(draw.uniform(0.01, 4.0), 3) for _ in range(draw.randint(1, 3)))
    if draw.random() < 0.5:
        kills_s[0] = round(draw.uniform(0.01, 0.3), 3)
    return replace(scenario, running=running, kills_s=tuple(kills_s))


def quiet(scenario, seed):
    """Return the scenario with one scheduler and no faults; each wave begins when nothing moves any
    more.

    Every fourth has the compiled kernel and pods for it, some others the kernel alone.
    """
    if seed % 4 == 3:
        scenario = with_kernel(scenario, seed)
    draw = random.Random(f"quiet {seed}")
    settings = scenario.plan.settings
    how = {"schedulers": 1, "workers": draw.choice((0, 0, 1, 3))}
    how["kernel"] = seed % 4 == 3 or draw.random() < 0.3
    settings = _checked(settings, how)
    plan = replace(scenario.plan, settings=settings)
    waves = tuple(part for wave in scenario.waves for part in _one_by_one(wave))
    if seed % 5 in (1, 4):
        waves += (_urgent(draw),)
    # A busy binder refuses pods while others are decided, and the judge could not know which.
    binder = {"max_unflushed": 1000, "max_tokens": 6}
    limits = replace(scenario.limits, binder=binder, cache={"max_gone_remembered": 12})
    scenario = replace(scenario, plan=plan, waves=waves, limits=limits)
    return replace(scenario, is_quiet=True, has_kernel=settings.kernel)


def _urgent(draw):
    """Return pods that preempt others, or try to."""
    pods = tuple(
        (
            PodIdentity(f"uid-urgent{number}", "default", f"urgent{number}"),
            pod(
                cpu=draw.choice((50, 400, 900)),
                priority=draw.choice((50, 1000, 1000)),
                preemption_policy=draw.choice(("PreemptLowerPriority",) * 3 + ("Never",)),
            ),
        )
        for number in range(draw.randint(4, 10))
    )
    return Wave(8.0, (), pods)


def _one_by_one(wave):
    """Split one wave into waves of one event each."""
    for name in ("nodes", "pods", "removed", "changed", "gone", "opened"):
        if things := getattr(wave, name):
            yield Wave(wave.at_s, **{name: things})


VARIANTS = {
    "quiet": quiet,
    "plain": lambda scenario, seed: scenario,
    "modes": in_some_mode,
    "kernel": with_kernel,
    "resume": resumable,
}
PLAIN = tuple(VARIANTS)


def _likes(draw, number):
    """Return a pod whose score of a node depends on which other nodes are scored."""
    app = f"likes{number % 3}"
    return WISHES[draw.choice(sorted(WISHES))](draw, app)


KINDS = PLAIN_KINDS | {"likes": _likes}
SAMPLED = ("plain", "spread", "apart", "near", "ranked", "port", "likes", "likes")


def sampled(scenario, seed):
    """Return the scenario with more nodes than a search looks for, of which a share is scored;
    quiet, so that it is judged.

    Searches seldom visit all nodes, so each starts after nodes that others visited.
    """
    draw = random.Random(f"sampled {seed}")
    hosts = tuple(
        node(
            f"s{number}",
            cpu=draw.choice((300, 500, 1000)),
            memory=8 * GIB,
            pods=draw.choice((2, 8)),
            labels={
                HOSTNAME: f"s{number}",
                ZONE: draw.choice(ZONES),
                DISK: draw.choice(("ssd", "hdd")),
            },
            taints=draw.choice(((), (), (taint("spot", "", "PreferNoSchedule"),))),
        )
        for number in range(draw.randint(101, 140))
    )
    kinds = draw.sample(SAMPLED, 3)
    named = [
        (f"s{number}", KINDS[draw.choice(kinds)](draw, number))
        for number in range(draw.randint(20, 80))
    ]
    pods = tuple((PodIdentity(f"uid-{name}", "default", name), facts) for name, facts in named)
    if draw.random() < 0.5:
        facts = KINDS[draw.choice(kinds)](draw, 0)
        alike = (f"t{number}" for number in range(60))
        pods += tuple((PodIdentity(f"uid-{name}", "default", name), facts) for name in alike)
    cut = draw.randint(1, len(pods))
    share = draw.choice((0, 1, 50, 80, 95))
    plan = replace(
        scenario.plan,
        config_text=json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "percentageOfNodesToScore": share,
            }
        ),
        config_source="simulated.yaml",
        cluster=ClusterFacts(),
    )
    waves = (Wave(0.0, (), pods[:cut]), Wave(1.0, (), pods[cut:]))
    scenario = replace(scenario, plan=plan, nodes=hosts, waves=waves, kinds=tuple(kinds))
    scenario = quiet(scenario, seed * 4)
    settings = scenario.plan.settings.model_copy(update={"kernel": bool(seed % 2)})
    plan = replace(scenario.plan, settings=settings)
    return replace(scenario, plan=plan, has_kernel=settings.kernel)


VARIANTS["sampled"] = sampled

STRAINED = ("plain", "modes", "kernel", "resume")


def strained(scenario, seed):
    """Return the scenario with a user's plugins that fail and an extender that answers wrongly, a
    few times each.
    """
    draw = random.Random(f"strained {seed}")
    names = draw.choice(((), ("RaisesAtFirst",), ("RaisesAtFirst", "RaisesInAdvice")))
    config, outside = config_with(*names, config=scenario.plan.config_text), None
    if not names or draw.random() < 0.5:
        # Pods call it one after another: its delays must leave enough time for all of them.
        one = extender(ignorable=draw.random() < 0.3, httpTimeout="1s")
        config = config_of(one, config=config)
        rates = {name: draw.choice((0.0, 0.1, 0.3)) for name in ("refuse", "drop", "garbage")}
        rates |= {name: draw.choice((0.0, 0.1)) for name in ("status", "error", "late", "slow")}
        outside = Faults(seed, per_pod=1, slow_max_s=0.5, **rates)
    plan = replace(
        scenario.plan,
        config_text=config,
        config_source="simulated.yaml",
        plugins=faulty(*names),
    )
    scenario = replace(scenario, plan=plan, outside=outside, is_strained=True)
    return VARIANTS[STRAINED[seed % len(STRAINED)]](scenario, seed)


VARIANTS["strained"] = strained


PECULIAR = ("quiet", "plain", "quiet", "kernel", "modes", "resume")


def peculiar(scenario, seed):
    """Return the scenario with a user's plugins that refuse, fail, restrict nodes and score in
    unusual ways, mostly combined with the other variants by turns.
    """
    draw = random.Random(f"peculiar {seed}")
    deciding = draw.sample((*DECIDING, *ACROSS), draw.choice((0, 1, 1, 2)))
    binding = draw.sample(BINDING, draw.choice((0, 1, 2, 3)))
    names = [each.name for each in (*deciding, *binding)]
    scenario = widened(scenario, seed) if draw.random() < 0.5 else scenario
    plan = replace(
        scenario.plan,
        config_text=with_peculiar(*names, config=scenario.plan.config_text),
        config_source="simulated.yaml",
        plugins=peculiar_plugins(*names),
    )
    scenario = replace(scenario, plan=plan, is_strained=True)
    return VARIANTS[PECULIAR[seed % len(PECULIAR)]](scenario, seed)


VARIANTS["peculiar"] = peculiar


def wide(scenario, seed):
    """Return a wider scenario with small limits, in the ways of the other variants by turns."""
    scenario = replace(widened(scenario, seed), limits=shrunk_of(seed))
    scenario = VARIANTS[PLAIN[seed % len(PLAIN)]](scenario, seed)
    scenario = by_profile(with_updates(scenario, seed), seed)
    return _crowded(scenario, seed) if scenario.is_quiet else scenario


def _crowded(scenario, seed):
    """Return the scenario with a queue that is full at times: its client keeps refused pods, and
    sends them again.
    """
    draw = random.Random(f"crowded {seed}")
    bounds = scenario.plan.settings.bounds.model_copy(
        update={"queue_max_pods": draw.choice((5, 20, 10_000_000))}
    )
    settings = scenario.plan.settings.model_copy(update={"bounds": bounds})
    return replace(scenario, plan=replace(scenario.plan, settings=settings))


VARIANTS["wide"] = wide


def claiming(scenario, seed):
    """Return the scenario with claims of devices, in the ways of the other variants by turns."""
    scenario = with_gates(with_devices(scenario, seed), seed)
    return VARIANTS[PLAIN[seed % len(PLAIN)]](scenario, seed)


VARIANTS["devices"] = claiming


def _checked(settings, how):
    """The settings with some replaced; an error if they contradict each other."""
    kept = {
        field.alias or name: getattr(settings, name)
        for name, field in Settings.model_fields.items()
        if name not in how
    }
    return Settings(**kept, **how)
