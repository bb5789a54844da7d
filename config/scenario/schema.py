"""Schema of a scenario: its document as a whole.

The docstrings of fields are the texts of docs/scenario.md.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, Tag, model_validator

from roadstead.config.scenario.distributions import (
    DURATIONS,
    FixedDuration,
    TaggedDuration,
    with_fixed,
)
from roadstead.config.scenario.events import NodeEvent
from roadstead.config.scenario.fleet import FleetEntry, NodeShape
from roadstead.config.scenario.values import (
    DocumentedAs,
    FileName,
    Fraction,
    Micros,
    Name,
    PositiveMicros,
    one_of,
    tag,
)
from roadstead.config.scenario.workload import AnyWorkload
from roadstead.config.settings import Settings
from roadstead.config.settings_model import SettingsModel

API_VERSION: Final = "roadstead.dev/v1"
KIND: Final = "Scenario"
SAMPLES_MAX: Final = 10_000_000
"""Maximum number of samples of a run."""
SEEDS_MAX: Final = 10_000
"""Maximum number of runs of a scenario."""
ENTRIES_MAX: Final = 10_000
"""Maximum number of entries of a list in the document."""

PerSecond = Annotated[
    float, Field(gt=0, le=1e6, allow_inf_nan=False), DocumentedAs("nodes per second")
]


class ScenarioMetadata(SettingsModel):
    name: Annotated[Name, Field(min_length=1)]
    """Name of the scenario."""

    description: Annotated[str, Field(max_length=10_000), DocumentedAs("text")] = ""
    """Purpose of the scenario, for people."""


class SchedulerChoice(SettingsModel):
    """The scheduler configurations with which the scenario is simulated."""

    config: Annotated[list[FileName], Field(max_length=100), DocumentedAs("files")] = Field(
        default=[]
    )
    """Files with a KubeSchedulerConfiguration. Several ones are compared on the same seeds."""

    preset: Annotated[list[str], Field(max_length=100), DocumentedAs("names")] = Field(default=[])
    """Included configurations, as for `roadstead schedule --preset`; compared with those of
    `config`."""

    settings: Annotated[Settings, DocumentedAs("settings")] = Settings()
    """Roadstead's own settings, as in `roadstead.yaml`."""


class ControllerTimes(SettingsModel):
    """Times and rates of the controllers, with the names of kube-controller-manager's flags."""

    node_monitor_grace_period: PositiveMicros = 50_000_000
    """Time after which a node that has stopped is not ready."""

    default_toleration: Micros = 300_000_000
    """Time for which pods without a toleration of their own tolerate nodes that are not ready or
    unreachable."""

    node_eviction_rate: PerSecond = 0.1
    """Nodes per second of one zone whose pods are evicted."""

    secondary_node_eviction_rate: Annotated[
        float, Field(ge=0, le=1e6, allow_inf_nan=False), DocumentedAs("nodes per second")
    ] = 0.01
    """The same in a zone that is unhealthy and large."""

    unhealthy_zone_threshold: Fraction = 0.55
    """A zone is unhealthy if at least this part of its nodes is not ready."""

    large_cluster_size_threshold: Annotated[
        int, Field(ge=0, le=10_000_000), DocumentedAs("nodes")
    ] = 50
    """Number of nodes of a zone above which it is large; in an unhealthy zone that is not large, no
    pods are evicted."""


class RunLimits(SettingsModel):
    """Bounds of one run. A run that exceeds one of them ends with an error."""

    pods: Annotated[int, Field(ge=1, le=100_000_000), DocumentedAs("number")] = 10_000_000
    """Maximum number of pods that exist at one time."""

    rows: Annotated[int, Field(ge=1, le=10**12), DocumentedAs("number")] = 1_000_000_000
    """Maximum number of rows of one table of the results."""

    memory_mib: Annotated[int, Field(ge=64, le=2**24), DocumentedAs("MiB")] = 16_384
    """Maximum memory of the process."""


class MeasuredTime(SettingsModel):
    measured: Literal[True]
    """The time that the decision really took, so that two runs differ; `decision_time: measured` is
    short for it."""


def _with_measured(value: object) -> object:
    return {"measured": True} if value == "measured" else with_fixed(value)


DecisionTimeChoice = Annotated[
    Annotated[MeasuredTime, Tag(tag("measured"))] | TaggedDuration,
    one_of("measured", *DURATIONS),
    BeforeValidator(_with_measured),
]


def _seeds(value: object) -> object:
    """Return the seeds of a number of runs; a list of seeds is checked."""
    if type(value) is int:
        if not 1 <= value <= SEEDS_MAX:
            raise ValueError(f"must be 1 to {SEEDS_MAX}")
        return list(range(value))
    if not isinstance(value, list) or not all(type(each) is int for each in value):
        raise ValueError("must be a number of runs, or a list of seeds")
    if not 1 <= len(value) <= SEEDS_MAX or len(set(value)) < len(value):
        raise ValueError(f"must be 1 to {SEEDS_MAX} different seeds")
    if not all(0 <= each < 2**63 for each in value):
        raise ValueError("must be seeds from 0 to 9223372036854775807")
    return value


Seeds = Annotated[list[int], BeforeValidator(_seeds), DocumentedAs("number, or numbers")]


class Scenario(SettingsModel):
    """A scenario: a fleet, its arrivals and its events."""

    api_version: Annotated[Literal["roadstead.dev/v1"], DocumentedAs("text")] = Field(
        alias="apiVersion"
    )
    """Version of this format."""

    kind: Annotated[Literal["Scenario"], DocumentedAs("text")]
    """Type of this document."""

    metadata: ScenarioMetadata
    """Name of the scenario."""

    extends: FileName | None = None
    """Another scenario, whose keys this one inherits. A key that both have is this scenario's, with
    all keys below it."""

    fleet: Annotated[list[FleetEntry], Field(min_length=1, max_length=ENTRIES_MAX)]
    """Nodes at the start: all entries joined."""

    shapes: dict[str, NodeShape] = Field(default={}, max_length=ENTRIES_MAX)
    """Sizes of nodes by name, for `shape`, in addition to the included ones."""

    workload: list[AnyWorkload] = Field(default=[], max_length=ENTRIES_MAX)
    """Arrivals and their durations: all entries joined."""

    trace_gpus: Annotated[Literal["amount", "devices"], DocumentedAs("amount or devices")] = (
        "amount"
    )
    """Form of the GPUs of all traces: one amount for each node, or devices that pods claim. With
    `devices`, `scheduler.settings.featureGates` must have `DRAConsumableCapacity: true`."""

    events: list[NodeEvent] = Field(default=[], max_length=ENTRIES_MAX)
    """Events of nodes."""

    scheduler: SchedulerChoice = SchedulerChoice()
    """Configurations of the scheduler."""

    controllers: ControllerTimes = ControllerTimes()
    """Times and rates of the controllers."""

    decision_time: DecisionTimeChoice = FixedDuration(fixed=0)
    """Simulated time that the scheduler takes for a pod: a time, a distribution as for `duration`,
    or `measured`."""

    start_delay: Micros = 0
    """Time from the bind of a pod to its start."""

    termination_grace: Micros = 30_000_000
    """Time from the deletion of a pod to its end, for pods without
    `terminationGracePeriodSeconds`."""

    horizon: PositiveMicros = 86_400_000_000
    """Time at which the scenario ends."""

    sample: PositiveMicros = 300_000_000
    """Interval of the samples of the fleet's state."""

    seeds: Seeds = Field(default=[0])
    """Number of runs with different random choices (seeds 0, 1, 2 and so on), or the seeds
    themselves."""

    limits: RunLimits = RunLimits()
    """Bounds of one run."""

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if self.horizon // self.sample > SAMPLES_MAX:
            raise ValueError(f"sample is too short: more than {SAMPLES_MAX:,} samples to horizon")
        return self
