"""Validation of plain data as models, with errors that a person can act on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.objects.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from roadstead.protocol.objects.meta import ApiObject
from roadstead.protocol.objects.node import Node
from roadstead.protocol.objects.pod import Pod
from roadstead.protocol.objects.policy import (
    LimitRange,
    Namespace,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    ResourceQuota,
    RuntimeClass,
    Service,
)
from roadstead.protocol.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from roadstead.protocol.objects.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

# The models of each API group; a model is named after its kind.
_GROUPS: dict[str, tuple[type[ApiObject], ...]] = {
    "": (
        Node, Pod, Namespace, PersistentVolume, PersistentVolumeClaim, Service,
        ReplicationController, LimitRange, ResourceQuota,
    ),
    "apps": (Deployment, ReplicaSet, StatefulSet, DaemonSet),
    "batch": (Job, CronJob),
    "node.k8s.io": (RuntimeClass,),
    "policy": (PodDisruptionBudget,),
    "resource.k8s.io": (
        ResourceSlice, DeviceClass, ResourceClaim, ResourceClaimTemplate, DeviceTaintRule,
    ),
    "scheduling.k8s.io": (PriorityClass,),
    "scheduling.x-k8s.io": (PodGroup,),
    "storage.k8s.io": (StorageClass, CSINode, CSIDriver, CSIStorageCapacity, VolumeAttachment),
}  # fmt: skip
API_GROUPS: dict[str, str] = {
    model.__name__: group for group, models in _GROUPS.items() for model in models
}
"""API group of each kind, "" for the core group; a kind of this name in another group differs."""

_VERSIONS = {"PodGroup": "v1alpha1", "DeviceTaintRule": "v1alpha3"}
API_VERSIONS: dict[str, str] = {
    kind: "/".join(part for part in (group, _VERSIONS.get(kind, "v1")) if part)
    for kind, group in API_GROUPS.items()
}
"""The apiVersion under which Kubernetes 1.34 serves each kind."""

KINDS: dict[str, type[ApiObject]] = {
    model.__name__: model for models in _GROUPS.values() for model in models
}
"""The model of each kind."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# By pydantic's type of error: the rule in the words of an InputError.
_RULES = {
    "missing": "is missing",
    "string_type": "must be a string",
    "string_unicode": "is not valid Unicode",
    "string_too_short": "must not be empty",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a map",
    "model_type": "must be a map",
    "quantity": "{msg}",
    "quantity_sign": "{msg}",
    "int_or_string": "{msg}",
    "literal_error": "must be one of {expected}",
    "string_too_long": "must be no more than {max_length} characters",
    "too_long": "must have no more than {max_length} items",
    "greater_than_equal": "must be no less than {ge}",
    "less_than_equal": "must be no more than {le}",
}


def validate(kind: str, manifest: object, *, source: str) -> ApiObject:
    """Validate an object, e.g. as a `Pod` for "Pod".

    Raises:
        InputError: unknown kind, or the first field that is wrong, with its path and value.
    """
    model = KINDS.get(kind)
    if model is None:
        raise InputError(
            "is not a kind that scheduling looks at", source=source, value=cut_short(kind)
        )
    try:
        return model.read(manifest)
    except ValidationError as error:
        raise _input_error(kind, manifest, error).at(source=source) from None
    except RecursionError:
        obj = describe(kind, manifest)
        raise InputError("is nested too deep", source=source, obj=obj) from None


def describe(kind: str, manifest: object) -> str:
    """Return the name of an object in errors: `Pod "web"`, or its kind if it has no name."""
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{kind} {cut_short(name)}" if name and isinstance(name, str) else kind


def field_path(location: Sequence[str | int]) -> str:
    """Return a path, `spec.containers[0].resources.requests.cpu`; keys with dots in brackets."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            path += f".{part}" if path else part
        else:
            path += f"[{cut_short(part)}]"
    return path


def _input_error(kind: str, manifest: object, error: ValidationError) -> InputError:
    first = error.errors(include_url=False)[0]
    location = first["loc"]
    problem = _rule(first)
    # pydantic appends "[key]" if the wrong value is a key of a map.
    if location and location[-1] == "[key]":
        location, problem = location[:-2], "must be a string to be a key"
    return InputError(
        problem,
        obj=describe(kind, manifest),
        field=field_path(location),
        value="" if first["type"] == "missing" else cut_short(first["input"]),
    )


def _rule(detail: ErrorDetails) -> str:
    template = _RULES.get(detail["type"], "{msg}")
    return template.format(msg=detail["msg"], **detail.get("ctx", {}))
