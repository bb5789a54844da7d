"""The seam between what an extender is asked and how it is reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from roadstead.config.model import ExtenderConfig
from roadstead.protocol.errors import RoadsteadError

Payload = Mapping[str, object]
"""A JSON object."""


class ExtenderError(RoadsteadError):
    """An extender that cannot be reached, answers what it must not, or says that it failed."""


class Caller(Protocol):
    """Reaches one extender."""

    def call(self, verb: str, payload: Payload) -> object:
        """The reply, as plain JSON data. ExtenderError, with URL and verb, where there is none."""
        ...


CallerOf = Callable[[ExtenderConfig], Caller]
