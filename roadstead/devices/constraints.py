"""Constraints on the devices of a claim.

Upstream: matchAttributeConstraint in allocator_experimental.go, and constraint.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from roadstead.devices.pools import DeviceId, PoolDevice
    from roadstead.facts.devices import AttributeFacts, DeviceConstraint


AttributeValue = tuple[str, int | bool | str]
"""Kind and value of an attribute."""


class Constraint(Protocol):
    """A constraint with the devices that were added to it."""

    def add(self, request: str, alternative: str, device: PoolDevice) -> bool:
        """Add a device for a request, unless that violates the constraint; return whether added.

        alternative: name of the alternative of the request, or "".
        """
        ...

    def remove(self, request: str, alternative: str, device: PoolDevice) -> None:
        """Undo an `add` that returned true."""
        ...


def constraint_of(facts: DeviceConstraint) -> Constraint | None:
    """Return a constraint without devices; None if it is of no known type."""
    requests = frozenset(facts.requests)
    if facts.match_attribute is not None:
        return MatchAttribute(requests, facts.match_attribute)
    if facts.distinct_attribute is not None:
        return DistinctAttribute(requests, facts.distinct_attribute)
    return None


def find_attribute(device: PoolDevice, name: str) -> AttributeFacts | None:
    """Return an attribute by its qualified name; names without domain are of the driver's."""
    attributes = {each.name: each for each in device.facts.attributes}
    found = attributes.get(name)
    if found is not None:
        return found
    domain, slash, bare = name.partition("/")
    return attributes.get(bare) if slash and domain == device.id[0] else None


def _applies_to(requests: frozenset[str], request: str, alternative: str) -> bool:
    return (
        not requests
        or request in requests
        or (bool(alternative) and f"{request}/{alternative}" in requests)
    )


@dataclass(slots=True)
class MatchAttribute:
    """All devices must have the same value of an attribute, of the same type."""

    requests: frozenset[str]
    name: str
    value: AttributeValue = ("", "")
    count: int = 0
    known: dict[PoolDevice, AttributeValue | None] = field(default_factory=dict)
    """Cache of values: a search tries a device many times."""

    def add(self, request: str, alternative: str, device: PoolDevice) -> bool:
        if not _applies_to(self.requests, request, alternative):
            return True
        value = self._value_of(device)
        # An attribute without a value matches nothing, but may be the first.
        if value is None or (self.count and (not value[0] or value != self.value)):
            return False
        if not self.count:
            self.value = value
        self.count += 1
        return True

    def remove(self, request: str, alternative: str, device: PoolDevice) -> None:
        if _applies_to(self.requests, request, alternative):
            self.count -= 1

    def _value_of(self, device: PoolDevice) -> AttributeValue | None:
        if device not in self.known:
            attribute = find_attribute(device, self.name)
            value = None if attribute is None else (attribute.kind, attribute.value)
            self.known[device] = value
        return self.known[device]


@dataclass(slots=True)
class DistinctAttribute:
    """All devices must have an attribute, with different values as upstream compares them.

    Upstream compares pointers: a value is equal only to that of the same device. For each request
    it keeps only the value of the last device.
    """

    requests: frozenset[str]
    name: str
    devices: dict[str, DeviceId] = field(default_factory=dict)
    """By request: the last device."""

    count: int = 0

    def add(self, request: str, alternative: str, device: PoolDevice) -> bool:
        if not _applies_to(self.requests, request, alternative):
            return True
        attribute = find_attribute(device, self.name)
        if attribute is None:
            return False
        known = self.devices.values() if self.count else ()
        if known and (not attribute.kind or device.id in known):
            return False
        self.devices[request] = device.id
        self.count += 1
        return True

    def remove(self, request: str, alternative: str, device: PoolDevice) -> None:
        if _applies_to(self.requests, request, alternative):
            self.devices.pop(request, None)
            self.count -= 1
