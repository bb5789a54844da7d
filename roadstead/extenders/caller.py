"""Interfaces between the requests to an extender and their transport."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from roadstead.config.model import ExtenderConfig
from roadstead.protocol.errors import RoadsteadError

Payload = Mapping[str, object]
"""A JSON object."""


class ExtenderError(RoadsteadError):
    """An extender cannot be reached, sends an invalid reply, or reports an error."""


class TransportError(Exception):
    """No complete reply was received.

    is_in_body: the status was received before the failure, so upstream's text is another one.
    """

    def __init__(self, why: str, *, is_in_body: bool = False) -> None:
        super().__init__(why)
        self.is_in_body = is_in_body


class Transport(Protocol):
    """Send requests to one extender."""

    def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        """Return the reply's status, and its body if that is 200; TransportError without one."""
        ...


class ExtenderCaller(Protocol):
    """Call one extender."""

    def call(self, verb: str, payload: Payload) -> object:
        """Return the reply as plain JSON data; ExtenderError, with URL and verb, without one."""
        ...


CallerOf = Callable[[ExtenderConfig], ExtenderCaller]


class InProcessExtenders:
    """A factory of callers that answer in this process, for runs in virtual time.

    caller_of: creates one. Callers add the duration that an answer would take (`add_time`); the
    scheduler waits for that time after the calls.
    """

    def __init__(
        self, caller_of: Callable[[ExtenderConfig, InProcessExtenders], ExtenderCaller]
    ) -> None:
        self._caller_of = caller_of
        self._unwaited_s = 0.0

    def __call__(self, config: ExtenderConfig) -> ExtenderCaller:
        return self._caller_of(config, self)

    def add_time(self, seconds: float) -> None:
        """Add the duration of an answer."""
        self._unwaited_s += seconds

    def pop_time_s(self) -> float:
        """Return the duration of all answers since the last call, in seconds."""
        time_s, self._unwaited_s = self._unwaited_s, 0.0
        return time_s


def shown_url(url: str) -> str:
    """Return a URL without user and password."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"
