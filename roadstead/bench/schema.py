"""The schema of scheduler_perf's test cases: a template of ops, and workloads with parameters.

Upstream: test/integration/scheduler_perf/{scheduler_perf,operations}.go (testCase, Workload, op).
Fields that only upstream's own reports need (thresholds, metric collectors, feature gates) are
ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter
from pydantic.alias_generators import to_camel

COUNT_MAX = 20_000_000

Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
Param = Annotated[str, StringConstraints(pattern=r"^(\$.+)?$", max_length=253)]
"""`$name` of a parameter of the workload, or "". Its value replaces that of another field:
`count_param` replaces `count`, and so on; only `count_multiplier_param` multiplies it."""

Text = Annotated[str, StringConstraints(max_length=253)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]
Labels = dict[Text, Text]
Scalar = int | float | str | bool


class _GoStruct(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class NodeAllocatable(_GoStruct):
    """Additional resources of every node, and the limits of its CSI drivers."""

    node_allocatable: dict[Text, str | int] = {}
    csi_node_allocatable: dict[Text, dict[Text, int]] = {}
    migrated_plugins: Annotated[tuple[Text, ...], Field(strict=False)] = ()


class LabelNodes(_GoStruct):
    """A label whose values are assigned to the nodes in turn."""

    label_key: Text
    label_values: Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]


class UniqueLabel(_GoStruct):
    """A label with a different value on every node."""

    label_key: Text


class CreateNodesOp(_GoStruct):
    """Create nodes from a template, by default upstream's."""

    opcode: Literal["createNodes"]
    count: Count = 0
    count_param: Param = ""
    node_template_path: Path | None = None
    node_allocatable_strategy: NodeAllocatable | None = None
    label_node_prepare_strategy: LabelNodes | None = None
    unique_node_label_strategy: UniqueLabel | None = None
    template_params: dict[Text, Scalar] = {}


class CreateNamespacesOp(_GoStruct):
    """Create the namespaces `prefix-0`, `prefix-1` and so on."""

    opcode: Literal["createNamespaces"]
    prefix: Text
    count: Count = 0
    count_param: Param = ""
    namespace_template_path: Path | None = None


class CreatePodsOp(_GoStruct):
    """Create pods from a template. collect_metrics: measure them."""

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


class CreatePodSetsOp(_GoStruct):
    """Create the same pods in each of the namespaces `prefix-0`, `prefix-1` and so on."""

    opcode: Literal["createPodSets"]
    count: Count = 0
    count_param: Param = ""
    namespace_prefix: Text
    create_pods_op: CreatePodsOp


class DeletePodsOp(_GoStruct):
    """Delete pods of a namespace, all at once or a number per second."""

    opcode: Literal["deletePods"]
    namespace: Text
    label_selector: Labels = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class ChurnOp(_GoStruct):
    """Create (and delete) objects at an interval until the workload ends."""

    opcode: Literal["churn"]
    mode: Literal["create", "recreate"]
    number: Count = 0
    interval_milliseconds: Annotated[int, Field(ge=0, le=3_600_000)] = 500
    namespace: Text | None = None
    template_paths: Annotated[tuple[Path, ...], Field(min_length=1, strict=False)]


class BarrierOp(_GoStruct):
    """Wait for pods that no earlier op waited for."""

    opcode: Literal["barrier"]
    namespaces: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    label_selector: Labels = {}
    stage_requirement: Literal["", "Scheduled", "Attempted"] = ""


class SleepOp(_GoStruct):
    """Wait for a duration in Go's notation ("1m30s")."""

    opcode: Literal["sleep"]
    duration: Text = ""
    duration_param: Param = ""


class CreateAny(_GoStruct):
    """Create objects of any kind."""

    opcode: Literal["createAny"]
    count: Count | None = None
    count_param: Param = ""
    namespace: Text = ""
    template_path: Path
    template_params: dict[Text, Scalar] = {}


class CreateResourceDriver(_GoStruct):
    """Create devices of a driver on each node whose name matches a pattern with wildcards."""

    opcode: Literal["createResourceDriver"]
    driver_name: Text
    nodes: Text
    max_claims_per_node: Annotated[int, Field(ge=0, le=1024)] = 0
    max_claims_per_node_param: Param = ""


class AllocResourceClaims(_GoStruct):
    """Allocate all claims of devices in a namespace."""

    opcode: Literal["allocResourceClaims"]
    namespace: Text


class StartCollecting(_GoStruct):
    """Start to measure pods of these namespaces."""

    opcode: Literal["startCollectingMetrics"]
    name: Text = ""
    namespaces: Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]
    label_selector: Labels = {}


class StopCollecting(_GoStruct):
    """Stop measuring."""

    opcode: Literal["stopCollectingMetrics"]


Op = (
    CreateNodesOp
    | CreateNamespacesOp
    | CreatePodsOp
    | CreatePodSetsOp
    | DeletePodsOp
    | ChurnOp
    | BarrierOp
    | SleepOp
    | CreateAny
    | CreateResourceDriver
    | AllocResourceClaims
    | StartCollecting
    | StopCollecting
)


class WorkloadSpec(_GoStruct):
    """Parameter values for the ops of a test case."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    labels: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    params: dict[Text, Scalar] = {}


class CaseSpec(_GoStruct):
    """A test case as written in a file."""

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
    """Validate test cases. Raises pydantic's ValidationError."""
    return CASES.validate_python(document)
