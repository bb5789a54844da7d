"""A mutant replaces a module in one process: before its import, or in its functions afterwards."""

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from tests.mutation.sites import Mutant, mutate

ROOT = Path(__file__).resolve().parent.parent.parent


def module_name(path: str) -> str:
    """The name under which a file of the project is imported; top-level folders are links."""
    parts = Path(path.removesuffix("/__init__.py")).with_suffix("").parts
    return ".".join(parts if parts[0] == "roadstead" else ("roadstead", *parts))


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the mutant instead of the source, and neither reads nor writes a cache."""

    def __init__(self, name: str, mutant: Mutant) -> None:
        super().__init__(name, str(ROOT / mutant.path))
        self._mutant = mutant

    def path_stats(self, path: str) -> dict:
        raise OSError("compiled code of a mutant is not kept")

    def set_data(self, path: str, data: bytes, **_: object) -> None:
        raise OSError("compiled code of a mutant is not kept")

    def source_to_code(self, data: bytes, path: str, **_: object):
        tree = mutate(self._mutant.path, data.decode(), self._mutant.number)
        return compile(tree, path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._name, self._mutant = module_name(mutant.path), mutant

    def find_spec(self, name: str, path: object, target: object = None):
        if name != self._name:
            return None
        loader = _Loader(name, self._mutant)
        return importlib.util.spec_from_file_location(name, loader.path, loader=loader)


def plant(mutant: Mutant) -> None:
    """Make imports of the mutant's module return the mutant from here on.

    Raises AssertionError where the module is imported already.
    """
    name = module_name(mutant.path)
    assert name not in sys.modules, f"{name} is imported already"
    sys.meta_path.insert(0, _Finder(mutant))


class UnsuitedError(Exception):
    """A mutant that cannot be planted in existing functions: it must be imported."""


def plant_in_functions(mutant: Mutant) -> None:
    """Give the functions of the mutant's imported module the mutant's code.

    A process that has imported everything plants mutants in forks of itself, without importing
    anything again. Code that ran during the import of the module is unaffected.

    Raises UnsuitedError where the mutant is not in a function, or its function cannot be changed.
    """
    path = ROOT / mutant.path
    source = path.read_text()
    codes: dict[tuple[str, int], list[CodeType]] = {}
    for code in _functions_in(compile(mutate(mutant.path, source, mutant.number), path, "exec")):
        codes.setdefault(_key(code), []).append(code)
    having = _having(mutant, compile(source, path, "exec"))
    planted = False
    for function in _functions_of(path):
        new = codes.get(_key(function.__code__), [])
        if len(new) != 1:
            if function.__code__.co_firstlineno == mutant.line:
                raise UnsuitedError(f"{mutant}: several functions on this line")
            continue
        planted |= _key(function.__code__) == having
        try:
            function.__code__ = new[0]
        except ValueError as error:
            raise UnsuitedError(f"{mutant}: {error}") from None
    if not planted:
        raise UnsuitedError(f"{mutant} is in no function that is there")


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _having(mutant: Mutant, module: CodeType) -> tuple[str, int] | None:
    """Return the outermost function that contains the mutant's line."""
    for code in _functions_in(module):
        within = f"{mutant.function}.".startswith(f"{code.co_qualname}.")
        if within and mutant.line in _lines(code):
            return _key(code)
    return None


def _functions_in(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of all functions, also inside classes and functions; the outer ones first."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & inspect.CO_OPTIMIZED:
                yield each
            yield from _functions_in(each)


def _lines(code: CodeType) -> set[int]:
    """All lines of a function, with those of the functions in it."""
    spans = [code.co_lines(), *(each.co_lines() for each in _functions_in(code))]
    return {line for span in spans for _, _, line in span if line is not None}


def _functions_of(path: Path) -> list[FunctionType]:
    """Return all functions of this process whose source is in a file, links followed."""
    real, known = os.path.realpath(path), {}
    found = []
    # `get_objects` omits frozen objects: those that exist when pytest has collected the tests.
    gc.unfreeze()
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            name = each.__code__.co_filename
            if name not in known:
                known[name] = os.path.realpath(name)
            if known[name] == real:
                found.append(each)
    return found
