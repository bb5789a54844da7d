"""Taints that rules add to devices (gate DRADeviceTaints).

Upstream: resourceslice/tracker/tracker.go (applyPatches).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roadstead.devices.selectors import SelectorResults
    from roadstead.facts.devices import (
        DeviceClassFacts,
        DeviceFacts,
        DeviceTaintRule,
        SliceFacts,
    )


def tainted(
    facts: SliceFacts,
    rules: Iterable[DeviceTaintRule],
    classes: Mapping[str, DeviceClassFacts],
    selectors: SelectorResults,
) -> SliceFacts | None:
    """Return a slice with the taints that rules add, itself if none does.

    A selector that fails on a device does not match it. One that does not compile makes upstream's
    tracker drop the slice: None.
    """
    devices = list(facts.devices)
    for rule in rules:
        if rule.driver not in (None, facts.driver) or rule.pool not in (None, facts.pool):
            continue
        expressions = rule.selectors
        if rule.device_class is not None:
            device_class = classes.get(rule.device_class)
            if device_class is None:
                continue
            expressions = device_class.selectors + expressions
        for index, device in enumerate(devices):
            if rule.device not in (None, device.name):
                continue
            matches = _matches(expressions, facts.driver, device, selectors)
            if matches is None:
                return None
            if matches:
                devices[index] = replace(device, taints=(*device.taints, rule.taint))
    return facts if tuple(devices) == facts.devices else replace(facts, devices=tuple(devices))


def _matches(
    expressions: tuple[str, ...], driver: str, device: DeviceFacts, selectors: SelectorResults
) -> bool | None:
    """Return whether a device matches all expressions; None if one does not compile."""
    # Upstream does not show these selectors whether several may use the device.
    seen = replace(device, allows_several=False)
    for expression in expressions:
        outcome = selectors.matches(expression, driver, seen)
        if isinstance(outcome, str):
            return None if outcome.startswith("CEL compile error") else False
        if not outcome:
            return False
    return True
