"""Report on the schedulers of a run, from the metrics in their status."""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.actors.messages import ActorStatus
from roadstead.actors.names import scheduler_name
from roadstead.config.settings import Settings
from roadstead.report.concurrency import Concurrency, SchedulerWork


def work_of(name: str, profile: str, metrics: Mapping[str, float], over_s: float) -> SchedulerWork:
    """Return a scheduler's part of the report, whose class explains the counts.

    over_s: duration of the run.
    """
    prefix = "refused "
    causes = {
        name.removeprefix(prefix): int(count)
        for name, count in metrics.items()
        if name.startswith(prefix)
    }

    def count(what: str) -> int:
        return int(metrics.get(what, 0))

    return SchedulerWork(
        name,
        profile,
        busyness=min(1.0, metrics.get("busy_s", 0.0) / over_s) if over_s > 0 else 0.0,
        reads=count("reads"),
        decided=count("decided"),
        asked=count("asked"),
        bound=count("bound"),
        transactions=count("transactions"),
        conflicted=count("conflicted"),
        retries=count("retries"),
        passed_on=count("passed_on"),
        refused=causes,
        memory_bytes=count("memory_bytes"),
    )


def concurrency_of(
    settings: Settings, statuses: Mapping[str, ActorStatus], over_s: float
) -> Concurrency:
    """Return the report on all schedulers. statuses: of all actors. over_s: duration of the run."""
    names = [scheduler_name(index) for index in range(settings.scheduler_count)]
    works = (
        work_of(name, profile, dict(statuses[name].metrics), over_s)
        for name, profile in zip(names, settings.scheduler_profiles, strict=True)
    )
    return Concurrency(settings.concurrency, settings.conflicts, settings.transaction, tuple(works))
