"""Included scenarios, each with comments: a base for a user's own."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from roadstead.protocol.errors import InputError, cut_short

_SUFFIX: Final = ".yaml"


def list_examples() -> tuple[str, ...]:
    """Return the names, sorted."""
    entries = (entry.name for entry in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in entries if name.endswith(_SUFFIX)))


def example_text(name: str) -> str:
    """Return the YAML of an example; InputError for an unknown name."""
    if name not in list_examples():
        known = ", ".join(list_examples())
        raise InputError(f"is not an example (there are: {known})", value=cut_short(name))
    return files(__package__).joinpath(name + _SUFFIX).read_text(encoding="utf-8")
