"""Objects of resource.k8s.io in the forms of earlier API versions, converted to v1.

v1beta2 has the form of v1. In v1beta1 a device has its fields in `basic`, and a request those of
`exactly` itself. Upstream: pkg/apis/resource/v1beta1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Json = dict[str, object]

GROUP: Final = "resource.k8s.io"
EARLIER: Final = {f"{GROUP}/v1beta1", f"{GROUP}/v1beta2"}
# Fields of a request that v1 does not have in `exactly`.
_OF_REQUEST = ("name", "firstAvailable", "exactly")


def as_v1(kind: str, document: Json) -> Json:
    """Return a document of an earlier version as one of v1; any other document unchanged."""
    version = document.get("apiVersion")
    if not isinstance(version, str) or version not in EARLIER or kind == "DeviceTaintRule":
        return document
    converted = {**document, "apiVersion": f"{GROUP}/v1"}
    spec = document.get("spec")
    if version == f"{GROUP}/v1beta2" or not isinstance(spec, dict):
        return converted
    if kind == "ResourceSlice":
        converted["spec"] = {**spec, "devices": _converted(spec.get("devices"), _device)}
    elif kind == "ResourceClaim":
        converted["spec"] = _claim_spec(spec)
    elif kind == "ResourceClaimTemplate":
        converted["spec"] = {**spec, "spec": _claim_spec(spec.get("spec"))}
    return converted


def _claim_spec(spec: object) -> object:
    devices = spec.get("devices") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(devices, dict):
        return spec
    return {
        **spec,
        "devices": {**devices, "requests": _converted(devices.get("requests"), _request)},
    }


def _device(device: Json) -> Json:
    basic = device.get("basic")
    others = {name: value for name, value in device.items() if name != "basic"}
    return {**others, **basic} if isinstance(basic, dict) else others


def _request(request: Json) -> Json:
    exact = {name: value for name, value in request.items() if name not in _OF_REQUEST}
    others = {name: value for name, value in request.items() if name in _OF_REQUEST}
    return {**others, "exactly": exact} if exact else others


def _converted(items: object, convert: Callable[[Json], Json]) -> object:
    """Return a list with each map converted; anything but a list is returned, for validation."""
    if not isinstance(items, list):
        return items or []
    return [convert(each) if isinstance(each, dict) else each for each in items]
