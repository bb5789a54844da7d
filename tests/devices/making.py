"""Slices, claims and selectors for tests of the allocator."""

import re
from dataclasses import dataclass

from roadstead.devices import Allocator, DeviceGates, DeviceSelectorError
from roadstead.facts.devices import (
    AttributeFacts,
    ClaimSpec,
    DeviceClaimFacts,
    DeviceClassFacts,
    DeviceFacts,
    DeviceRequest,
    ExactRequest,
    Placement,
    SliceFacts,
)

GPU = "gpu.example.com"
NODE = "n0"
HERE = Placement(node_name=NODE)
EVERYWHERE = Placement(all_nodes=True)


_DRIVER = re.compile(r'device\.driver == "(.*)"')
_ATTRIBUTE = re.compile(r'device\.attributes\["(.*)"\]\.(.*) == "(.*)"')


@dataclass(frozen=True)
class StubSelector:
    """Three kinds of CEL expressions: `true`, and those of `driver_is` and `attribute_is`."""

    expression: str

    def matches(self, driver: str, device: DeviceFacts) -> bool:
        if self.expression == "true":
            return True
        if found := _DRIVER.fullmatch(self.expression):
            return driver == found[1]
        found = _ATTRIBUTE.fullmatch(self.expression)
        assert found is not None, self.expression
        domain, name, wanted = found.groups()
        values = {each.name: each.value for each in device.attributes}
        if domain != driver or name not in values:
            raise DeviceSelectorError(f"no such key: {name}")
        return values[name] == wanted


def driver_is(driver: str) -> str:
    return f'device.driver == "{driver}"'


def model_is(model: str, driver: str = GPU) -> str:
    """Return a selector that fails on a device without the attribute."""
    return f'device.attributes["{driver}"].model == "{model}"'


def compile_stub(expression: str) -> StubSelector:
    if expression == "1":
        raise DeviceSelectorError("compilation failed")
    return StubSelector(expression)


def device(name: str, *, numa: int | None = None, model: str | None = None, **more) -> DeviceFacts:
    attributes = []
    if model is not None:
        attributes.append(AttributeFacts("model", "string", model))
    if numa is not None:
        attributes.append(AttributeFacts("numa", "int", numa))
    return DeviceFacts(name, tuple(attributes), **more)


def slice_of(*devices: DeviceFacts, name="s0", driver=GPU, pool="p0", place=HERE, **more):
    more = {"generation": 1, "slices_in_pool": 1, **more}
    return SliceFacts(name, driver, pool, placement=place, devices=devices, **more)


def request(name="r", device_class="any", **more) -> DeviceRequest:
    return DeviceRequest(name, device_class, **more)


def alternatives(name: str, *forms: ExactRequest) -> DeviceRequest:
    return DeviceRequest(name, alternatives=forms)


def alternative(name: str, device_class="any", **more) -> ExactRequest:
    return ExactRequest(name, device_class, **more)


def claim(*requests: DeviceRequest, name="c", constraints=(), configs=()) -> DeviceClaimFacts:
    spec = ClaimSpec(requests, tuple(constraints), tuple(configs))
    return DeviceClaimFacts("ns", name, spec=spec)


CLASSES = (DeviceClassFacts("any"), DeviceClassFacts("gpu", (driver_is(GPU),)))


def allocator(*slices: SliceFacts, classes=CLASSES, **gates: bool) -> Allocator:
    made = Allocator(DeviceGates(**gates), compile_stub)
    made.set_classes(classes)
    made.pools.replace(slices)
    return made


def allocate(made: Allocator, *claims: DeviceClaimFacts, node=NODE, labels=(), **more):
    """Return the allocations, or None."""
    return made.allocate(made.plan(claims), node, labels, **more)


def devices_of(made: Allocator, *claims: DeviceClaimFacts, **more):
    """Return (request, device) by claim, or None."""
    found = allocate(made, *claims, **more)
    if found is None:
        return None
    return [[(each.request, each.device) for each in one.results] for one in found]
