"""Schema of a scenario's workload: traces, pods that arrive over time, and controllers.

The docstrings of fields are the texts of docs/scenario.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, Tag, model_validator

from roadstead.config.scenario.distributions import Arrivals, Duration
from roadstead.config.scenario.values import (
    DocumentedAs,
    Factor,
    FileName,
    Fraction,
    Micros,
    Name,
    PodCount,
    PodShare,
    PositiveFraction,
    Weight,
    one_of,
    tag,
)
from roadstead.config.settings_model import SettingsModel


def _check_template(value: object) -> object:
    if not isinstance(value, dict) and (not isinstance(value, str) or not value or "\0" in value):
        raise ValueError("must be the name of a file, or a pod template")
    return value


Template = Annotated[
    str | dict[str, Any], BeforeValidator(_check_template), DocumentedAs("file, or pod template")
]
"""The name of a file, or a pod template that is written out."""


class PodChoice(SettingsModel):
    """Pods that one arrival may bring."""

    template: Template
    """File with one object that has a pod template (a Pod, a Deployment, a Job and others), or a
    pod template that is written out."""

    weight: Weight = 1.0
    """Probability of this choice, relative to the other ones of the entry."""

    gang: Annotated[int, Field(ge=1, le=10_000), DocumentedAs("number")] = 1
    """Number of pods that arrive at one time. More than one form a pod group, of which all pods
    or none are placed if the profile has the plugin Coscheduling."""


class WorkloadEntry(SettingsModel):
    """Fields of all entries of the workload."""

    name: Name = ""
    """Name of the entry in tables and reports; by default its number and type."""


class TraceWorkload(WorkloadEntry):
    """The pods of a trace, with their own arrivals and lifetimes."""

    trace: FileName
    """Trace, made by `roadstead trace import`; its nodes are not used."""

    rate: Factor = 1.0
    """Factor of the rate of arrivals: 2 halves all times between two arrivals. Lifetimes stay."""

    sample: PositiveFraction = 1.0
    """Part of the pods that arrive, chosen at random."""

    start_from: Micros = 0
    """Time in the trace from which on it is used; pods created earlier are left out."""

    shift: Micros = 0
    """Time of the scenario at which the trace begins."""


class PodsWorkload(WorkloadEntry):
    """Pods that arrive over time and that no controller owns."""

    arrivals: Arrivals
    """Times of the arrivals."""

    duration: Duration | None = None
    """Time for which a pod runs once it has started; by default, until the scenario ends."""

    pods: Annotated[list[PodChoice], Field(min_length=1, max_length=10_000)]
    """Pods that arrive, chosen by weight."""


class ScaleStep(SettingsModel):
    """A change of the number of replicas."""

    at: Micros
    """Time of the change."""

    replicas: PodCount
    """Number of replicas from then on."""


class RolloutStep(SettingsModel):
    """A change of the template."""

    at: Micros
    """Time of the change."""

    template: Template
    """Template of the pods from then on, as in `template`."""


class ControllerEntry(SettingsModel):
    """Fields of all controllers."""

    template: Template
    """File with the controller, or with another object that has a pod template, or a pod template
    that is written out."""

    name: Name = ""
    """Name of the controller; by default the one in the template, else the name of the file."""

    at: Micros = 0
    """Time at which the controller is created."""

    delete_at: Micros | None = None
    """Time at which the controller is deleted, with its pods; by default never."""

    @model_validator(mode="after")
    def _check_life(self) -> Self:
        end = self.delete_at
        if end is not None and end <= self.at:
            raise ValueError("delete_at must be later than at")
        steps = [*getattr(self, "scale", ()), *getattr(self, "rollout", ())]
        if any(step.at < self.at or (end is not None and step.at >= end) for step in steps):
            raise ValueError("changes must be between at and delete_at")
        return self


class ScaledController(ControllerEntry):
    """Fields of controllers with replicas."""

    replicas: PodCount | None = None
    """Number of pods; by default the number in the file, else 1."""

    scale: list[ScaleStep] = Field(default=[], max_length=100_000)
    """Changes of the number of replicas."""

    duration: Duration | None = None
    """Time after which a pod ends and another one replaces it; by default never."""


class DeploymentEntry(ScaledController):
    """A Deployment."""

    rollout: list[RolloutStep] = Field(default=[], max_length=1_000)
    """Changes of the template: pods are replaced step by step."""

    max_surge: PodShare | None = None
    """Number of pods above `replicas` during a rollout; by default as in the file, else
    25%."""

    max_unavailable: PodShare | None = None
    """Number of pods that may be missing during a rollout; by default as in the file, else
    25%."""


class ReplicaSetEntry(ScaledController):
    """A ReplicaSet."""


class StatefulSetEntry(ScaledController):
    """A StatefulSet."""

    rollout: list[RolloutStep] = Field(default=[], max_length=1_000)
    """Changes of the template: pods are replaced one by one, from the highest ordinal."""

    pod_management: Literal["OrderedReady", "Parallel"] | None = None
    """`OrderedReady`: a pod is created when those before it run. `Parallel`: all at once. By
    default as in the file, else `OrderedReady`."""


class DaemonSetEntry(ControllerEntry):
    """A DaemonSet."""

    rollout: list[RolloutStep] = Field(default=[], max_length=1_000)
    """Changes of the template: pods are replaced node by node."""

    max_unavailable: PodShare | None = None
    """Number of pods that may be missing during a rollout; by default as in the file, else
    1."""


class JobEntry(ControllerEntry):
    """A Job."""

    duration: Duration
    """Time for which a pod of the job runs."""

    completions: PodCount | None = None
    """Number of pods that must succeed; by default the number in the file, else `parallelism`."""

    parallelism: PodCount | None = None
    """Maximum number of pods at a time; by default the number in the file, else 1."""

    backoff_limit: Annotated[int, Field(ge=0, le=2**31 - 1), DocumentedAs("number")] | None = None
    """Number of failed pods after which the job has failed; by default the number in the file, else
    6."""

    failing: Fraction = 0.0
    """Part of the pods that fail at the end of their time, chosen at random."""


class DeploymentWorkload(WorkloadEntry):
    """A Deployment."""

    deployment: DeploymentEntry
    """The Deployment: lost pods are replaced."""


class ReplicaSetWorkload(WorkloadEntry):
    """A ReplicaSet."""

    replica_set: ReplicaSetEntry = Field(alias="replicaSet")
    """The ReplicaSet: lost pods are replaced."""


class StatefulSetWorkload(WorkloadEntry):
    """A StatefulSet."""

    stateful_set: StatefulSetEntry = Field(alias="statefulSet")
    """The StatefulSet: lost pods are replaced under their names."""


class DaemonSetWorkload(WorkloadEntry):
    """A DaemonSet."""

    daemon_set: DaemonSetEntry = Field(alias="daemonSet")
    """The DaemonSet: one pod on each node that its template allows."""


class JobWorkload(WorkloadEntry):
    """A Job."""

    job: JobEntry
    """The Job: pods that fail or are lost are replaced, up to `backoff_limit`."""


AnyWorkload = Annotated[
    Annotated[TraceWorkload, Tag(tag("trace"))]
    | Annotated[PodsWorkload, Tag(tag("arrivals"))]
    | Annotated[DeploymentWorkload, Tag(tag("deployment"))]
    | Annotated[ReplicaSetWorkload, Tag(tag("replicaSet"))]
    | Annotated[StatefulSetWorkload, Tag(tag("statefulSet"))]
    | Annotated[DaemonSetWorkload, Tag(tag("daemonSet"))]
    | Annotated[JobWorkload, Tag(tag("job"))],
    one_of("trace", "arrivals", "deployment", "replicaSet", "statefulSet", "daemonSet", "job"),
]
