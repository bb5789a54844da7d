"""Metadata (apimachinery/pkg/apis/meta/v1/types.go)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from roadstead.protocol.objects.base import (
    ApiModel,
    ListOf,
    Name,
    OptionalName,
    StringMap,
    empty_map,
    interned,
)


class OwnerReference(ApiModel):
    """An owner of an object; at most one owner is its controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class TemplateMeta(ApiModel):
    """Metadata of a template, copied to its pods or claims."""

    name: OptionalName = ""
    labels: StringMap = Field(default_factory=empty_map)
    annotations: StringMap = Field(default_factory=empty_map)


class ObjectMeta(TemplateMeta):
    """Metadata of an object that has a name. Times are kept as written."""

    name: Name
    namespace: OptionalName = ""
    uid: str = ""
    generate_name: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: Annotated[ListOf[OwnerReference], interned()] = ()
    finalizers: ListOf[str] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, if there is one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class ApiObject(ApiModel):
    """Fields of every top-level object; `kind` may be absent, as in a typed list."""

    api_version: Annotated[str, Field(max_length=253)] = ""
    kind: str = ""
    metadata: ObjectMeta
