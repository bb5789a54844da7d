"""Devices as expressions read them: attributes and capacities by domain and name.

Upstream: dynamic-resource-allocation cel/compile.go (DeviceMatches, 1.34).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.cel.semver import SemverError, parse_semver
from roadstead.cel.values import DomainMap, Value
from roadstead.protocol.quantity import parse_quantity

if TYPE_CHECKING:
    from roadstead.facts.devices import AttributeFacts, DeviceFacts


@dataclass(frozen=True, slots=True)
class DeviceView:
    """The variable `device`. error: of every expression that is evaluated for it; "" for none."""

    variable: dict[str, Value]
    error: str = ""


def view_device(driver: str, device: DeviceFacts) -> DeviceView:
    """Return a device as expressions read it; callers keep it, as it costs more than an evaluation.

    Names without a domain are the driver's. An attribute without a valid value makes every
    expression fail.
    """
    attributes: dict[object, object] = DomainMap()
    for attribute in device.attributes:
        try:
            value = _attribute_value(attribute)
        except SemverError as error:
            text = f"attribute {attribute.name}: parse semantic version: {error}"
            return DeviceView({}, text)
        except ValueError as error:
            return DeviceView({}, f"attribute {attribute.name}: {error}")
        _add(attributes, driver, attribute.name, value)
    capacity: dict[object, object] = DomainMap()
    for entry in device.capacity:
        _add(capacity, driver, entry.name, parse_quantity(entry.amount))
    return DeviceView(
        {
            "driver": driver,
            "attributes": attributes,
            "capacity": capacity,
            "allowMultipleAllocations": device.allows_several,
        }
    )


def _attribute_value(attribute: AttributeFacts) -> Value:
    if attribute.kind == "version":
        return parse_semver(str(attribute.value))
    if not attribute.kind:
        raise ValueError("unsupported attribute value")
    return attribute.value


def _add(domains: dict[object, object], driver: str, name: str, value: Value) -> None:
    domain, slash, id_ = name.partition("/")
    if not slash:
        domain, id_ = driver, name
    names = domains.setdefault(domain, {})
    assert isinstance(names, dict)
    names[id_] = value
