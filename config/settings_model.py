"""The base of the models of Roadstead's settings, and how they read a path."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class SettingsModel(BaseModel):
    """Base of the models of settings and scenarios: strict, frozen, no unknown field."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        use_attribute_docstrings=True,
        serialize_by_alias=True,
    )


def read_path(value: object) -> object:
    """Read a path from a text; None stays None. ValueError for anything else."""
    if value is None or isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("must be a path")
    return Path(value)
