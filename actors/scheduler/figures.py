"""What a scheduler did beside others, in figures: for its status and the summary of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roadstead.actors.messages import ActorStatus
from roadstead.actors.names import scheduler_name
from roadstead.attempts.pods import Attempt
from roadstead.config.settings import Settings
from roadstead.cycle.jobs import job_of
from roadstead.report.concurrency import Concurrency, SchedulerWork


@dataclass(slots=True)
class Figures:
    """Sums since the scheduler began.

    busy_s: between the beginning of a reading and the decision, thinking included. reads: how often
    the state was read. asked: binds that were asked for; transactions: as many jobs, each time;
    conflicted: those of which a bind was refused. retries: pods that came again. passed_on: pods
    that found nothing on own partitions.
    """

    busy_s: float = 0.0
    reads: int = 0
    decided: int = 0
    asked: int = 0
    bound: int = 0
    transactions: int = 0
    conflicted: int = 0
    retries: int = 0
    passed_on: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def answered(self, attempts: Sequence[Attempt], causes: Mapping[str, str]) -> None:
        """The binder's answers; causes: by token, "" for what is bound."""
        told = [each for each in attempts if each.token in causes]
        jobs = [job_of(each.facts) or each.uid for each in told]
        lost = {job for job, each in zip(jobs, told, strict=True) if causes[each.token]}
        self.asked += len(told)
        self.transactions += len(set(jobs))
        self.conflicted += len(lost)
        refused = [cause for each in told if (cause := causes[each.token])]
        self.bound += len(told) - len(refused)
        self.refused.update(refused)

    def told(self) -> tuple[tuple[str, float], ...]:
        """As they travel."""
        sums = ("busy_s", "reads", "decided", "asked", "bound", "transactions", "conflicted")
        rest = ("retries", "passed_on")
        named = ((name, float(getattr(self, name))) for name in (*sums, *rest))
        causes = ((f"refused {cause}", float(n)) for cause, n in sorted(self.refused.items()))
        return (*named, *causes)


def work_of(name: str, profile: str, told: Mapping[str, float], over_s: float) -> SchedulerWork:
    """What a scheduler's figures say of a run that took so long."""
    prefix = "refused "
    causes = {each.removeprefix(prefix): int(n) for each, n in told.items() if prefix in each}

    def count(what: str) -> int:
        return int(told.get(what, 0))

    return SchedulerWork(
        name,
        profile,
        busyness=min(1.0, told.get("busy_s", 0.0) / over_s) if over_s > 0 else 0.0,
        reads=count("reads"),
        decided=count("decided"),
        asked=count("asked"),
        bound=count("bound"),
        transactions=count("transactions"),
        conflicted=count("conflicted"),
        retries=count("retries"),
        passed_on=count("passed_on"),
        refused=causes,
    )


def concurrency_of(
    settings: Settings, statuses: Mapping[str, ActorStatus], over_s: float
) -> Concurrency:
    """What all schedulers did in a run that took so long; statuses: by name, of all actors."""
    names = [scheduler_name(index) for index in range(settings.scheduler_count)]
    works = (
        work_of(name, profile, dict(statuses[name].figures), over_s)
        for name, profile in zip(names, settings.scheduler_profiles, strict=True)
    )
    return Concurrency(settings.concurrency, settings.conflicts, settings.transaction, tuple(works))
