"""CEL selectors of devices: compiled once, evaluated for each device.

Upstream: dynamic-resource-allocation cel/compile.go, cel/cache.go (1.34).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from roadstead.cel.checker import check
from roadstead.cel.cost import estimate_max_cost
from roadstead.cel.devices import DeviceView, view_device
from roadstead.cel.errors import (
    COST_EXCEEDED,
    CelAbortError,
    CelCompileError,
    CelRunError,
    IssuesError,
    issues_text,
)
from roadstead.cel.limits import EXPRESSION_MAX_BYTES
from roadstead.cel.parser import parse
from roadstead.cel.planner import PlanError, Program, plan
from roadstead.cel.steps import COST_SLOT, DEVICE_SLOT, Variables
from roadstead.cel.tree import TreeNode
from roadstead.cel.types import ANY, BOOL
from roadstead.cel.validators import validate
from roadstead.cel.values import (
    DurationValue,
    NamedFormat,
    Optional,
    Timestamp,
    Uint,
    Url,
    Value,
    content_of,
    type_name,
)

if TYPE_CHECKING:
    from roadstead.facts.devices import DeviceFacts

UNMETERED_COST_MAX: Final = 900
"""Up to this estimate, costs are not counted as a selector is evaluated.

An evaluation may cost more than upstream's estimate, which leaves out the text on which
`startsWith` is called and the pattern of a format. But each call adds at least 1 to the estimate,
so there are at most 900 calls. Each costs at most 900, as estimated, or 1,100, for the longest text
or pattern that is left out: 990,000 in all, which is less than `COST_MAX`.
"""

CACHED_SELECTORS: Final = 256
"""Number of compiled selectors that are kept."""


_SHALLOW_LEVELS = 60
"""Trees of at most this depth are evaluated within Python's own limit of frames."""
_DEEP_FRAMES = 30_000
"""Limit of frames for deeper trees; the parser bounds their depth."""

_NATIVE_NAMES: dict[type, str] = {
    float: "Double",
    bytes: "Bytes",
    type(None): "'null_type'",
    DurationValue: "'Duration'",
    Timestamp: "'Timestamp'",
    Url: "'URL'",
    NamedFormat: "'Format'",
}
"""Names of types in upstream's errors of conversions to a bool of Go."""


@dataclass(frozen=True, slots=True)
class CompiledSelector:
    """A selector that compiles. max_cost: upstream's estimate of what an evaluation may cost.

    The API server refuses more than `COST_MAX`; the scheduler evaluates any stored selector.
    """

    expression: str
    max_cost: int
    _program: Program = field(repr=False)
    _is_deep: bool = field(repr=False)

    def matches(self, driver: str, device: DeviceFacts) -> bool:
        """Return whether a device matches.

        For many selectors, `matches_view` is faster: `view_device` converts the device only once.

        Raises:
            CelRunError: the evaluation fails, is no bool, or costs more than `COST_MAX`.
        """
        return self.matches_view(view_device(driver, device))

    def matches_view(self, view: DeviceView) -> bool:
        """Return whether a converted device matches; raises as `matches`."""
        if view.error:
            raise CelRunError(view.error)
        variables: Variables = [None] * self._program.variable_count
        variables[DEVICE_SLOT] = view.variable
        variables[COST_SLOT] = 0
        try:
            if self._is_deep:
                with _deep_stack():
                    value = self._program.run(variables)
            else:
                value = self._program.run(variables)
        except CelAbortError as error:
            raise CelRunError(str(error)) from None
        except RecursionError:
            raise CelRunError(COST_EXCEEDED) from None
        return value if value is True or value is False else _as_bool(value)


def compile_selector(expression: str) -> CompiledSelector:
    """Compile an expression; the most recently used selectors are cached.

    Raises:
        CelCompileError: upstream would not compile it, or it is longer than the API allows.
    """
    compiled = _compiled(expression)
    if isinstance(compiled, str):
        raise CelCompileError(compiled)
    return compiled


@lru_cache(maxsize=CACHED_SELECTORS)
def _compiled(expression: str) -> CompiledSelector | str:
    """Return the selector, or the error of an expression that does not compile."""
    size = len(expression.encode("utf-8", "surrogatepass"))
    if size > EXPRESSION_MAX_BYTES:
        return f"expression has {size} bytes, at most {EXPRESSION_MAX_BYTES} are allowed"
    with _deep_stack():
        try:
            return _compile(expression)
        except IssuesError as error:
            return f"compilation failed: {issues_text(error.issues, expression)}"
        except PlanError as error:
            return f"program instantiation failed: {error}"
        except RecursionError:
            return "expression nests too deeply"


def _compile(expression: str) -> CompiledSelector | str:
    root = parse(expression)
    issues = check(root) or validate(root)
    if issues:
        raise IssuesError(issues)
    if root.type not in (BOOL, ANY):
        return f"must evaluate to bool or the unknown type, not {root.type}"
    max_cost = estimate_max_cost(root)
    program = plan(root, is_metered=max_cost > UNMETERED_COST_MAX)
    return CompiledSelector(expression, max_cost, program, _is_deep(root))


def _is_deep(root: TreeNode) -> bool:
    """Return whether an evaluation may need more frames than Python allows by itself."""
    waiting = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _SHALLOW_LEVELS:
            return True
        waiting.extend((child, depth + 1) for child in node.children())
    return False


@contextmanager
def _deep_stack() -> Iterator[None]:
    """Allow as many frames as the deepest expression needs; Python's own limit is 1,000."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEP_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _as_bool(value: Value) -> bool:
    """Return the bool inside an optional.

    Raises:
        CelRunError: the result is no bool.
    """
    prefix = f"CEL result of type {type_name(value)} could not be converted to bool: "
    while isinstance(value, Optional):
        try:
            value = content_of(value)
        except CelRunError as error:
            raise CelRunError(f"{prefix}{error}") from None
    if isinstance(value, bool):
        return value
    raise CelRunError(prefix + _native_error(value))


def _native_error(value: Value) -> str:
    name = type_name(value)
    if type(value) in (int, Uint):
        return f"unsupported type conversion from '{name}' to bool"
    if isinstance(value, str):
        return "unsupported native conversion from string to 'bool'"
    if name == "type":
        return "type conversion not supported for 'type'"
    shown = _NATIVE_NAMES.get(type(value))
    if shown is None:
        shown = name if name in ("list", "map") else f"'{name.rpartition('.')[2]}'"
    return f"type conversion error from {shown} to 'bool'"
