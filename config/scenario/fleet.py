"""Schema of a scenario's nodes: generated ones, manifests, traces, and shapes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, Tag

from roadstead.config.part import Part
from roadstead.config.scenario.values import (
    FileName,
    LabelValue,
    Name,
    Nodes,
    Unit,
    one_of,
    tag,
)
from roadstead.protocol.objects.base import Resources


class TaintEntry(Part):
    """A taint of a node."""

    key: Annotated[str, Unit("label key")]
    """Key of the taint."""

    value: LabelValue = ""
    """Value of the taint."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """What the taint does to pods that do not tolerate it."""


class ShapeEntry(Part):
    """A size of node."""

    allocatable: Annotated[Resources, Unit("resources")]
    """Resources of the node that pods can request, as in a manifest: `cpu: 64`, `memory: 256Gi`,
    `nvidia.com/gpu: 8`. `pods` is 110 unless it is given."""

    labels: Annotated[dict[str, str], Unit("labels")] = Field(default={})
    """Labels of the node, in addition to those of its name and zone."""

    taints: list[TaintEntry] = Field(default=[])
    """Taints of the node."""


def _shape(value: object) -> object:
    if not isinstance(value, (str, dict, ShapeEntry)):
        raise ValueError("must be the name of a shape, or a shape")
    return value


NodeShapeChoice = Annotated[
    str | ShapeEntry, BeforeValidator(_shape), Unit("name of a shape, or a shape")
]


class GeneratedNodes(Part):
    """Equal nodes, spread over zones."""

    nodes: Nodes
    """Number of nodes."""

    shape: NodeShapeChoice = "openb"
    """Name of an included shape, or of one in `shapes`, or a shape that is written out. `openb`: a
    mixture of sizes as in the openb trace, drawn with seed 0."""

    zones: Nodes = 4
    """Number of zones. Nodes are assigned to them in turn: `zone-0`, `zone-1` and so on."""

    name: Name = ""
    """Prefix of the nodes' names; by default the shape's name (`node` for `openb` and a shape that
    is written out), with a number where it is in use."""


class GeneratedFleet(Part):
    """Nodes of a shape."""

    generate: GeneratedNodes
    """Nodes to generate."""


class ManifestFleet(Part):
    """Nodes and other objects from manifests."""

    manifests: Annotated[FileName | list[FileName], Unit("files")]
    """Files, folders or globs with nodes, pods, budgets, priority classes, volumes and others, as
    for `roadstead schedule --cluster`. Pending pods arrive at the start."""


class TraceFleet(Part):
    """The nodes of a trace."""

    trace: FileName
    """Trace, made by `roadstead trace import`; its pods are not used."""


FleetEntry = Annotated[
    Annotated[GeneratedFleet, Tag(tag("generate"))]
    | Annotated[ManifestFleet, Tag(tag("manifests"))]
    | Annotated[TraceFleet, Tag(tag("trace"))],
    one_of("generate", "manifests", "trace"),
]
