"""Where a user's plugin is written: the file and line that a failure names.

    few_pods.py:23                  a module of the working directory
    my_package/scores.py:41         a module of a package, from the folder that holds the package

A file is named from the folder that its module is imported from, so that every process of a run
gives the same text for the same failure.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FunctionType

PLACE_OF_SCORES: dict[str, str] = {}
"""Plugin name → where its final scores are computed. Of this process, as its plugins are."""


def defined_at(plugin: object, method: str) -> str:
    """Where a plugin defines a method; "" where its author does not define it."""
    # The object that the author wrote, where a per-node plugin is adapted to tables.
    kind = type(getattr(plugin, "wrapped", plugin))
    return function_at(kind.__module__, getattr(kind, method, None))


def function_at(module: str, function: object) -> str:
    """Where a function begins; "" for one that the author of the module did not write."""
    if callable(function):
        function = getattr(inspect.unwrap(function), "__func__", inspect.unwrap(function))
    if not isinstance(function, FunctionType):
        return ""
    code = function.__code__
    return _place(module, function.__globals__, code, code.co_firstlineno)


def raised_at(module: str, failure: BaseException) -> str:
    """The innermost line through which a failure came that the author of the module wrote.

    "" for none. The author's are the module, or all of its package.
    """
    places = [
        _place(module, frame.f_globals, frame.f_code, line)
        for frame, line in walk_tb(failure.__traceback__)
    ]
    return next((place for place in reversed(places) if place), "")


def _place(module: str, module_globals: Mapping[str, object], code: CodeType, line: int) -> str:
    """`file:line`; "" for code of another author."""
    name = str(module_globals.get("__name__"))
    path = Path(code.co_filename)
    parts = name.split(".")
    # A package's __init__.py is in a folder of the package's name.
    depth = len(parts) - (path.stem != "__init__")
    if parts[0] != module.partition(".")[0] or depth >= len(path.parents):
        return ""
    return f"{path.relative_to(path.parents[depth]).as_posix()}:{line}"


def with_place(text: str, place: str) -> str:
    """A text that ends with the place; as it is where there is none."""
    return f"{text} ({place})" if place else text
