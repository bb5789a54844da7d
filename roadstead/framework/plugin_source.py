"""Source locations of users' plugins: the file and line that a failure names.

    few_pods.py:23                  a module of the working directory
    my_package/scores.py:41         a module of a package, from the folder that holds the package

Paths are relative to the folder that the module is imported from, so that every process of a run
has the same text for the same failure.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FunctionType

LOCATION_OF_SCORES: dict[str, str] = {}
"""Plugin name → where its final scores are computed, for the error of scores out of range."""


def defined_at(plugin: object, method: str) -> str:
    """Return where a plugin defines a method; "" if its author does not define it."""
    # For an adapted per-node plugin, the object of the author's class.
    plugin_class = type(getattr(plugin, "wrapped", plugin))
    return function_at(plugin_class.__module__, getattr(plugin_class, method, None))


def function_at(module: str, function: object) -> str:
    """Return where a function begins; "" if it is not in the author's module or package."""
    if callable(function):
        function = getattr(inspect.unwrap(function), "__func__", inspect.unwrap(function))
    if not isinstance(function, FunctionType):
        return ""
    code = function.__code__
    return _location(module, function.__globals__, code, code.co_firstlineno)


def raised_at(module: str, failure: BaseException) -> str:
    """Return the innermost line of the author's code through which an exception passed.

    "" for none. The author's code is the module, or all of its package.
    """
    locations = [
        _location(module, frame.f_globals, frame.f_code, line)
        for frame, line in walk_tb(failure.__traceback__)
    ]
    return next((location for location in reversed(locations) if location), "")


def _location(module: str, module_globals: Mapping[str, object], code: CodeType, line: int) -> str:
    """Return `file:line`; "" for code of another author."""
    name = str(module_globals.get("__name__"))
    path = Path(code.co_filename)
    parts = name.split(".")
    # A package's __init__.py is in a folder of the package's name.
    depth = len(parts) - (path.stem != "__init__")
    if parts[0] != module.partition(".")[0] or depth >= len(path.parents):
        return ""
    return f"{path.relative_to(path.parents[depth]).as_posix()}:{line}"


def with_location(text: str, location: str) -> str:
    """Return a text followed by the location, if there is one."""
    return f"{text} ({location})" if location else text
