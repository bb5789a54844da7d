"""Variants of the scenarios: the same clusters, run in other ways.

plain: as they are. modes: many schedulers, in every mode and with every knob turned. beside: one
scheduler that holds all nodes itself.
"""

import random
from dataclasses import replace

from roadstead.config.concurrency import DecisionTime, KindTime
from roadstead.config.settings import Settings
from roadstead.facts.pod import Owner

PODS_OF_A_JOB = 3


def in_some_mode(scenario, seed):
    """The scenario with settings of its seed, and with jobs of a few pods."""
    draw = random.Random(f"modes {seed}")
    settings = scenario.plan.settings
    mode = draw.choice(("shared", "partitioned", "partitioned"))
    schedulers = draw.choice((2, 3, 4))
    how = {
        "mode": mode,
        "schedulers": schedulers,
        "shards": max(settings.shards, schedulers) if mode == "partitioned" else settings.shards,
        "conflicts": draw.choice(("fit", "version")),
        "transaction": draw.choice(("incremental", "all-or-nothing")),
        "staleness_s": draw.choice((None, 0.0, 0.2, 2.0)),
        "decision_time": _thinking(draw),
    }
    if mode == "partitioned":
        how |= {
            "partition_policy": draw.choice(("latency-first", "quality-first", "adaptive")),
            "partition_refresh_s": draw.choice((0.0, 0.5, 3.0)),
            "partition_long_queue_pods": draw.choice((1, 8)),
        }
    names = set(Settings.model_fields) - how.keys()
    settings = Settings(**{name: getattr(settings, name) for name in names}, **how)
    waves = tuple(replace(wave, pods=_jobs(wave.pods)) for wave in scenario.waves)
    return replace(scenario, plan=replace(scenario.plan, settings=settings), waves=waves)


def beside(scenario, seed):
    """The scenario with one scheduler that holds the nodes."""
    settings = scenario.plan.settings
    names = set(Settings.model_fields) - {"schedulers", "nodes_at"}
    kept = {name: getattr(settings, name) for name in names}
    settings = Settings(**kept, schedulers=1, nodes_at="scheduler")
    return replace(scenario, plan=replace(scenario.plan, settings=settings))


def _thinking(draw):
    # Not so long that all pods could not be tried again within the time that a recovery may take.
    job_s, task_s = draw.choice((0.0, 0.0, 0.05, 0.1)), draw.choice((0.0, 0.01))
    return DecisionTime(batch=KindTime(job_s=job_s, task_s=task_s))


def _jobs(pods):
    return tuple(
        (who, replace(facts, owner=Owner("Job", f"j{number // PODS_OF_A_JOB}", "")))
        for number, (who, facts) in enumerate(pods)
    )


VARIANTS = {"plain": lambda scenario, seed: scenario, "modes": in_some_mode, "beside": beside}
