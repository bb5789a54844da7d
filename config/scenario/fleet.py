"""Schema of a scenario's nodes: generated ones, manifests, traces, and shapes of nodes.

The docstrings of fields are the texts of docs/scenario.md. openb: the trace of Alibaba's GPU
cluster (USENIX ATC 2023).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, Tag

from roadstead.config.scenario.values import (
    DocumentedAs,
    FileName,
    LabelValue,
    Name,
    PositiveCount,
    one_of,
    tag,
)
from roadstead.config.settings_model import SettingsModel
from roadstead.protocol.objects.base import Resources


class TaintEntry(SettingsModel):
    """A taint of a node."""

    key: Annotated[str, DocumentedAs("label key")]
    """Key of the taint."""

    value: LabelValue = ""
    """Value of the taint."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """Effect of the taint on pods that do not tolerate it."""


class NodeShape(SettingsModel):
    """A shape of nodes: resources, labels and taints."""

    allocatable: Annotated[Resources, DocumentedAs("resources")]
    """Resources of the node that pods can request, as in a manifest: `cpu: 64`, `memory: 256Gi`,
    `nvidia.com/gpu: 8`. `pods` is 110 unless it is given."""

    labels: Annotated[dict[str, str], DocumentedAs("labels")] = Field(default={})
    """Labels of the node, in addition to those of its name and zone."""

    taints: list[TaintEntry] = Field(default=[])
    """Taints of the node."""


def _check_shape(value: object) -> object:
    if not isinstance(value, (str, dict, NodeShape)):
        raise ValueError("must be the name of a shape, or a shape")
    return value


NodeShapeChoice = Annotated[
    str | NodeShape, BeforeValidator(_check_shape), DocumentedAs("name of a shape, or a shape")
]


class GeneratedNodes(SettingsModel):
    """Nodes of one shape, or of the sizes of openb, spread over zones."""

    nodes: PositiveCount
    """Number of nodes."""

    shape: NodeShapeChoice = "openb"
    """Name of an included shape, or of one in `shapes`, or a shape that is written out. `openb`: a
    mixture of sizes as in openb, the trace of a GPU cluster of Alibaba, drawn with seed 0."""

    zones: PositiveCount = 4
    """Number of zones. Nodes are assigned to them in turn: `zone-0`, `zone-1` and so on."""

    name: Name = ""
    """Prefix of the nodes' names; by default the shape's name (`node` for `openb` and a shape that
    is written out), with a number where it is in use."""


class GeneratedFleet(SettingsModel):
    """Nodes of a shape."""

    generate: GeneratedNodes
    """Nodes to generate."""


class ManifestFleet(SettingsModel):
    """Nodes and other objects from manifests."""

    manifests: Annotated[FileName | list[FileName], DocumentedAs("files")]
    """Files, folders or globs with nodes, pods, budgets, priority classes, volumes and others, as
    for `roadstead schedule --cluster`. Pending pods arrive at the start."""


class TraceFleet(SettingsModel):
    """The nodes of a trace."""

    trace: FileName
    """Trace, made by `roadstead trace import`; its pods are not used."""


FleetEntry = Annotated[
    Annotated[GeneratedFleet, Tag(tag("generate"))]
    | Annotated[ManifestFleet, Tag(tag("manifests"))]
    | Annotated[TraceFleet, Tag(tag("trace"))],
    one_of("generate", "manifests", "trace"),
]
