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


class TransportError(Exception):
    """There is no whole reply. is_in_body: a status came, and its body did not."""

    def __init__(self, why: str, *, is_in_body: bool = False) -> None:
        super().__init__(why)
        self.is_in_body = is_in_body


class Transport(Protocol):
    """Carries one extender's requests."""

    def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        """The status of the reply, and its body where that is 200. TransportError without one."""
        ...


class Caller(Protocol):
    """Reaches one extender."""

    def call(self, verb: str, payload: Payload) -> object:
        """The reply, as plain JSON data. ExtenderError, with URL and verb, where there is none."""
        ...


CallerOf = Callable[[ExtenderConfig], Caller]


class InProcess:
    """Makes callers that are answered in this process, without threads and sockets.

    caller_of: makes one; the answers' time is told to `spend` and passes afterwards.
    """

    def __init__(self, caller_of: Callable[[ExtenderConfig, InProcess], Caller]) -> None:
        self._caller_of = caller_of
        self._spent_s = 0.0

    def __call__(self, config: ExtenderConfig) -> Caller:
        return self._caller_of(config, self)

    def spend(self, seconds: float) -> None:
        """An answer took so long."""
        self._spent_s += seconds

    def take_spent_s(self) -> float:
        """How long all answers since the last call took, in seconds."""
        spent_s, self._spent_s = self._spent_s, 0.0
        return spent_s


def shown_url(url: str) -> str:
    """A URL as it may be shown: without user and password."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"
