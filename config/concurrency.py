"""Settings of several schedulers: modes, conflicts, staleness, simulated decision time.

The parameters are those of Omega (Schwarzkopf et al., EuroSys 2013: shared state, fine or coarse
detection of conflicts, incremental or all-or-nothing transactions, decision time per job and task)
and of ParSync (Feng et al., USENIX ATC 2021: partitions, their refresh, and policies).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from roadstead.config.settings_model import SettingsModel

Mode = Literal["exact", "shared", "partitioned"]
"""exact: one scheduler, which decides as kube-scheduler does. shared: several on all nodes.
partitioned: several, each first on its own partitions of the nodes."""

JobKind = Literal["batch", "service"]
"""What Omega calls the type of a job: batch jobs end, services run until they are deleted."""

JOB_KIND_LABEL = "roadstead.io/kind"
"""The pod label for the kind of the pod's job, `batch` or `service`."""

MAX_SCHEDULERS = 256
"""Of all profiles together."""

Contradiction = tuple[str, object, str]
"""(field, its value, the rule that it breaks together with other fields)."""

NonNegativeSeconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


class JobTime(SettingsModel):
    """Simulated decision time for one job: `job_s` + `task_s` for each of its pods."""

    job_s: NonNegativeSeconds = 0.0
    """Seconds for the job itself, whatever its number of pods."""

    task_s: NonNegativeSeconds = 0.0
    """Seconds for each pod of the job."""

    def of(self, pods: int) -> float:
        """Return the seconds for a job of `pods` pods."""
        return self.job_s + self.task_s * pods


class DecisionTime(SettingsModel):
    """Simulated time between reading the state and deciding, by kind of job (Omega, section 3)."""

    batch: JobTime = JobTime()
    """Decision time of batch jobs: all jobs that are not services."""

    service: JobTime = JobTime()
    """Decision time of services: jobs whose pods have the label `roadstead.io/kind: service`, or
    jobs without the label whose profile has the kind `service`."""

    profiles: dict[str, JobKind] = Field(default={})
    """Profile → kind of its jobs whose pods have no label `roadstead.io/kind`."""

    @property
    def is_positive(self) -> bool:
        """Whether any decision time is above 0."""
        times = (self.batch, self.service)
        return any(each.job_s or each.task_s for each in times)

    def of(self, kind: JobKind) -> JobTime:
        return self.service if kind == "service" else self.batch


def _checked_schedulers(value: object) -> object:
    """Check a number, or numbers by profile, with one error text for both forms."""
    counts: list[object] = [value]
    if isinstance(value, Mapping):
        counts = list(value.values())
        if not counts or not all(isinstance(name, str) and name for name in value):
            raise ValueError("must name at least one profile, and how many schedulers it has")
    if not all(type(count) is int for count in counts):
        raise ValueError("must be an integer, or a mapping of profiles to integers")
    numbers = [count for count in counts if isinstance(count, int)]
    if min(numbers) < 1:
        raise ValueError("must be at least 1")
    if sum(numbers) > MAX_SCHEDULERS:
        raise ValueError(f"must be at most {MAX_SCHEDULERS}")
    return value


Schedulers = Annotated[int | dict[str, int], BeforeValidator(_checked_schedulers)]
"""Number of schedulers that all serve every profile, or profile → its number of schedulers."""


def scheduler_profiles(schedulers: int | Mapping[str, int]) -> tuple[str, ...]:
    """Return the profile of each scheduler, in order; "" for one that serves all profiles."""
    if isinstance(schedulers, int):
        return ("",) * schedulers
    return tuple(name for name, count in schedulers.items() for _ in range(count))


def max_per_profile(schedulers: int | Mapping[str, int]) -> int:
    """Return the number of schedulers of the profile that has the most."""
    return schedulers if isinstance(schedulers, int) else max(schedulers.values())


def with_partitions(settings: object) -> object:
    """Set the default of `partitions`: one per scheduler of the largest profile, at least 2."""
    if (
        not isinstance(settings, dict)
        or settings.get("mode") != "partitioned"
        or "partitions" in settings
    ):
        return settings
    try:
        schedulers = _checked_schedulers(settings.get("schedulers", 1))
    except ValueError:
        return settings
    assert isinstance(schedulers, (int, dict))
    return {**settings, "partitions": max(2, max_per_profile(schedulers))}


def with_current_names(settings: object) -> object:
    """Return settings under their current names.

    `shards` was the number of partitions in mode `partitioned`, else that of workers. `nodes_at`
    said which actors stored the nodes, workers or schedulers; now schedulers always do.
    """
    if not isinstance(settings, dict) or not settings.keys() & {"shards", "nodes_at"}:
        return settings
    renamed = {
        name: value for name, value in settings.items() if name not in ("shards", "nodes_at")
    }
    # A wrong value is refused under the name by which the user wrote it.
    if settings.get("nodes_at") not in (None, "workers", "scheduler"):
        return settings
    is_partitioned = settings.get("mode") == "partitioned"
    # In other modes `shards` counted workers, of which a run with `nodes_at: scheduler` had none.
    if "shards" in settings and (is_partitioned or settings.get("nodes_at") != "scheduler"):
        renamed.setdefault(current_name_of_shards(settings.get("mode")), settings["shards"])
    return renamed


def refuse_old_name_of_gates(settings: object) -> object:
    """Raise pydantic's error, with the current name, for `feature_gates`."""
    if isinstance(settings, dict) and "feature_gates" in settings:
        rule = "is called featureGates, as in kube-scheduler"
        raise_contradictions([("feature_gates", settings["feature_gates"], rule)])
    return settings


def current_name_of_shards(mode: object) -> str:
    """Return the current name of `shards`."""
    return "partitions" if mode == "partitioned" else "workers"


def exact_error(schedulers: int | Mapping[str, int]) -> str:
    """Return why an exact run has one scheduler, and what to do instead."""
    count = len(scheduler_profiles(schedulers))
    return (
        f"is one logical scheduler, and there are {count}: side by side they do not see each "
        'other\'s decisions. Say "shared" (each on all nodes) or "partitioned" (each on '
        "partitions of its own), or schedulers: 1"
    )


def raise_contradictions(contradictions: list[Contradiction]) -> None:
    """Raise pydantic's error for settings that contradict each other, each with its field."""
    if contradictions:
        details = [
            InitErrorDetails(
                type=PydanticCustomError("contradiction", "{rule}", {"rule": rule}),
                loc=(field,),
                input=value,
            )
            for field, value, rule in contradictions
        ]
        raise ValidationError.from_exception_data("Settings", details)
