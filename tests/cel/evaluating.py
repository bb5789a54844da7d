"""A device, and short ways to evaluate expressions on it."""

from __future__ import annotations

from roadstead.cel.devices import view_device
from roadstead.cel.errors import CelCompileError, CelRunError
from roadstead.cel.selector import compile_selector
from roadstead.facts.devices import AttributeFacts, DeviceCapacity, DeviceFacts

DRIVER = "gpu.example.com"
DEVICE = DeviceFacts(
    name="d0",
    attributes=(
        AttributeFacts("model", "string", "a100"),
        AttributeFacts("index", "int", 3),
        AttributeFacts("ready", "bool", True),
        AttributeFacts("driverVersion", "version", "1.10.0"),
        AttributeFacts("rack.example.com/switch", "string", "s1"),
    ),
    capacity=(DeviceCapacity("memory", "40Gi"), DeviceCapacity("cores", "500m")),
    allows_several=True,
)
VIEW = view_device(DRIVER, DEVICE)


def evaluate(expression: str) -> bool | str:
    """Return the result on the device, or the text of the error."""
    try:
        return compile_selector(expression).matches_view(VIEW)
    except (CelCompileError, CelRunError) as error:
        return str(error)


def compile_error(expression: str) -> str:
    """Return why an expression does not compile, or ""."""
    try:
        compile_selector(expression)
    except CelCompileError as error:
        return str(error)
    return ""


def holds(*expressions: str) -> None:
    """Assert that every expression is true on the device."""
    for expression in expressions:
        assert evaluate(expression) is True, (expression, evaluate(expression))
