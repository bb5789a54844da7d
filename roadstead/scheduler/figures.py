"""What a scheduler did beside others, in figures: for its status and the summary of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roadstead.attempts.pods import Attempt
from roadstead.cycle.jobs import job_of


@dataclass(slots=True)
class Figures:
    """Sums since the scheduler began.

    busy_s: between the beginning of a reading and the decision, latency included. reads: how often
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
