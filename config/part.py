"""The base of Roadstead's settings, and the types that their parts share."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """Base of a part of Roadstead's settings: strict, frozen, no unknown field."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )


def path_of(value: object) -> object:
    """Return a path for a text; ValueError for anything that is no path. None stays None."""
    if value is None or isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("must be a path")
    return Path(value)
