"""Test cases as scheduler_perf writes them: a template of ops, and workloads with parameters.

Upstream: test/integration/scheduler_perf/{scheduler_perf,operations}.go (testCase, Workload, op).
What only upstream's own reports need (thresholds, metric collectors, feature gates) is read over.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter
from pydantic.alias_generators import to_camel

COUNT_MAX = 20_000_000

Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
Param = Annotated[str, StringConstraints(pattern=r"^(\$.+)?$", max_length=253)]
Text = Annotated[str, StringConstraints(max_length=253)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]
Labels = dict[Text, Text]
Scalar = int | float | str | bool


class _Wire(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class NodeAllocatable(_Wire):
    """Further resources of every node, and the limits of its CSI drivers."""

    node_allocatable: dict[Text, str | int] = {}
    csi_node_allocatable: dict[Text, dict[Text, int]] = {}
    migrated_plugins: Annotated[tuple[Text, ...], Field(strict=False)] = ()


class LabelNodes(_Wire):
    """A label whose values go round among the nodes."""

    label_key: Text
    label_values: Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]


class UniqueLabel(_Wire):
    """A label with another value on every node."""

    label_key: Text


class CreateNodes(_Wire):
    """Nodes from a template, upstream's default one where none is named."""

    opcode: Literal["createNodes"]
    count: Count = 0
    count_param: Param = ""
    node_template_path: Path | None = None
    node_allocatable_strategy: NodeAllocatable | None = None
    label_node_prepare_strategy: LabelNodes | None = None
    unique_node_label_strategy: UniqueLabel | None = None
    template_params: dict[Text, Scalar] = {}


class CreateNamespaces(_Wire):
    """Namespaces `prefix-0`, `prefix-1` and so on."""

    opcode: Literal["createNamespaces"]
    prefix: Text
    count: Count = 0
    count_param: Param = ""
    namespace_template_path: Path | None = None


class CreatePods(_Wire):
    """Pods from a template; measured where metrics are collected."""

    opcode: Literal["createPods"]
    count: Count = 0
    count_param: Param = ""
    count_multiplier_param: Param = ""
    collect_metrics: bool = False
    namespace: Text | None = None
    pod_template_path: Path | None = None
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: Path | None = None
    persistent_volume_claim_template_path: Path | None = None
    template_params: dict[Text, Scalar] = {}
    steady_state: bool = False
    steady_state_param: Param = ""
    duration: Text = ""
    duration_param: Param = ""


class CreatePodSets(_Wire):
    """The same pods in each of the namespaces `prefix-0`, `prefix-1` and so on."""

    opcode: Literal["createPodSets"]
    count: Count = 0
    count_param: Param = ""
    namespace_prefix: Text
    create_pods_op: CreatePods


class DeletePods(_Wire):
    """Pods of a namespace go, at once or so many in a second."""

    opcode: Literal["deletePods"]
    namespace: Text
    label_selector: Labels = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class Churn(_Wire):
    """Objects that come (and go again) at an interval, as long as the workload runs."""

    opcode: Literal["churn"]
    mode: Literal["create", "recreate"]
    number: Count = 0
    interval_milliseconds: Annotated[int, Field(ge=0, le=3_600_000)] = 500
    namespace: Text | None = None
    template_paths: Annotated[tuple[Path, ...], Field(min_length=1, strict=False)]


class Barrier(_Wire):
    """Waits for pods that were not waited for."""

    opcode: Literal["barrier"]
    namespaces: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    label_selector: Labels = {}
    stage_requirement: Literal["", "Scheduled", "Attempted"] = ""


class Sleep(_Wire):
    """Waits for a time, written as Go writes one ("1m30s")."""

    opcode: Literal["sleep"]
    duration: Text = ""
    duration_param: Param = ""


class CreateAny(_Wire):
    """Objects of any kind."""

    opcode: Literal["createAny"]
    count: Count | None = None
    count_param: Param = ""
    namespace: Text = ""
    template_path: Path
    template_params: dict[Text, Scalar] = {}


class StartCollecting(_Wire):
    """From here on pods of these namespaces are measured."""

    opcode: Literal["startCollectingMetrics"]
    name: Text = ""
    namespaces: Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]
    label_selector: Labels = {}


class StopCollecting(_Wire):
    """Up to here."""

    opcode: Literal["stopCollectingMetrics"]


Op = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | DeletePods
    | Churn
    | Barrier
    | Sleep
    | CreateAny
    | StartCollecting
    | StopCollecting
)


class WorkloadSpec(_Wire):
    """Sizes for the ops of a test case."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    labels: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    params: dict[Text, Scalar] = {}


class CaseSpec(_Wire):
    """A test case as it stands in a file."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    scheduler_config_path: Path | None = None
    default_pod_template_path: Path | None = None
    labels: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    workload_template: Annotated[
        tuple[Annotated[Op, Field(discriminator="opcode")], ...],
        Field(min_length=1, strict=False),
    ]
    workloads: Annotated[tuple[WorkloadSpec, ...], Field(min_length=1, strict=False)]


CASES: TypeAdapter[list[CaseSpec]] = TypeAdapter(list[CaseSpec])


def cases_of(document: Any) -> list[CaseSpec]:  # noqa: ANN401
    """Validated test cases. pydantic's ValidationError where they are wrong."""
    return CASES.validate_python(document)
