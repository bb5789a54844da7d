"""A mutant in place of a module: an import hook for one process."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

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
    """Imports of the mutant's module get the mutant from here on.

    Raises AssertionError where the module is imported already.
    """
    name = module_name(mutant.path)
    assert name not in sys.modules, f"{name} is imported already"
    sys.meta_path.insert(0, _Finder(mutant))
