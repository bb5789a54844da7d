"""Nodes (core/v1), by the fields that scheduling reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from roadstead.protocol.objects.base import (
    ApiModel,
    ListOf,
    NonNegativeInt64,
    Resources,
    empty_map,
    interned,
)
from roadstead.protocol.objects.meta import ApiObject
from roadstead.protocol.objects.selectors import Taint


class NodeSpec(ApiModel):
    """Taints, and whether the node is cordoned."""

    taints: ListOf[Taint] = ()
    unschedulable: bool = False


class ContainerImage(ApiModel):
    """An image on the node, under each of its names."""

    names: ListOf[str] = ()
    size_bytes: NonNegativeInt64 = 0


class NodeCondition(ApiModel):
    """A condition of a node; its change is upstream's event UpdateNodeCondition."""

    type: str = ""
    status: str = ""


class NodeStatus(ApiModel):
    """Capacity, allocatable resources, images and conditions of a node."""

    allocatable: Resources = Field(default_factory=empty_map)
    capacity: Resources = Field(default_factory=empty_map)
    images: ListOf[Annotated[ContainerImage, interned()]] = ()
    conditions: ListOf[NodeCondition] = ()


class Node(ApiObject):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
