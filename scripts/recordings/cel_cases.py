"""Recorded answers to CEL selectors: errors, estimates, and the result for each device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from roadstead.cel.devices import DeviceView, view_device
from roadstead.cel.errors import CelCompileError, CelRunError
from roadstead.cel.selector import CompiledSelector, compile_selector
from roadstead.facts.devices import AttributeFacts, DeviceCapacity, DeviceFacts
from scripts.recordings.queueing_cases import Check
from scripts.recordings.result import Json, differing


def selector_check(file: Path, document: Json) -> Check:
    """Return a check of selectors against a recording's devices."""
    objects = document["objects"]
    assert isinstance(objects, dict)
    views = [
        view_device(each["driver"], device_facts(each["device"])) for each in objects["devices"]
    ]

    def check(case: Json) -> tuple[Json, list[str]]:
        expression = str(case["expression"])
        ours: Json = {"expression": expression}
        try:
            selector = compile_selector(expression)
        except CelCompileError as error:
            ours["compileError"] = str(error)
        else:
            ours["maxCost"] = selector.max_cost
            ours["results"] = [answer(selector, view) for view in views]
        return ours, differing(ours, case)

    return check


def answer(selector: CompiledSelector, view: DeviceView) -> bool | str:
    """Return whether a device matches, or the text of the error."""
    try:
        return selector.matches_view(view)
    except CelRunError as error:
        return str(error)


def device_facts(device: Mapping[str, object]) -> DeviceFacts:
    """Return a device of a manifest, as far as selectors read it."""
    attributes, capacity = device.get("attributes", {}), device.get("capacity", {})
    assert isinstance(attributes, dict)
    assert isinstance(capacity, dict)
    return DeviceFacts(
        name=str(device["name"]),
        attributes=tuple(_attribute(name, value) for name, value in attributes.items()),
        capacity=tuple(DeviceCapacity(name, each["value"]) for name, each in capacity.items()),
        allows_several=bool(device.get("allowMultipleAllocations", False)),
    )


def _attribute(name: str, typed: Mapping[str, int | bool | str]) -> AttributeFacts:
    kind, value = next(iter(typed.items()), ("", ""))
    return AttributeFacts(name, kind, value)
