"""CEL expressions as the allocator's selectors.

The library of CEL is loaded only when the first expression is compiled: few runs have any.
"""

from __future__ import annotations

from roadstead.devices.selectors import DeviceSelectorError, Selector
from roadstead.facts.devices import DeviceFacts


def compile_cel(expression: str) -> Selector:
    """Compile an expression. DeviceSelectorError if upstream would not compile it."""
    from roadstead.cel.errors import CelCompileError
    from roadstead.cel.selector import compile_selector

    try:
        return _CelSelector(compile_selector(expression))
    except CelCompileError as error:
        raise DeviceSelectorError(str(error)) from error


class _CelSelector:
    def __init__(self, compiled: Selector) -> None:
        self._compiled = compiled

    def matches(self, driver: str, device: DeviceFacts) -> bool:
        from roadstead.cel.errors import CelRunError

        try:
            return self._compiled.matches(driver, device)
        except CelRunError as error:
            raise DeviceSelectorError(str(error)) from error
