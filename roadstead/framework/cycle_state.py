"""CycleState: the data that plugins write in one scheduling cycle and read later in it.

Upstream: pkg/scheduler/framework/cycle_state.go.
"""

from __future__ import annotations

from enum import Enum
from types import NoneType
from typing import TypeVar

ValueT = TypeVar("ValueT")
"""The type of a value that is read."""

_IMMUTABLE_TYPES = (str, bytes, int, float, frozenset, Enum, NoneType)


class CycleState:
    """Values by key, usually a plugin's name.

    There is one for each group of equal pods (pod class) and each evaluation of nodes.
    node_count: the number of all nodes. skipped: plugins whose PreFilter or PreScore returned Skip.
    before: PreFilter's state, if this is PreScore's state; its values can be read here, too, but
    are not changed.
    """

    __slots__ = ("_before", "_values", "node_count", "skipped")

    def __init__(self, node_count: int, before: CycleState | None = None) -> None:
        self.node_count = node_count
        self.skipped: set[str] = set()
        self._before = before
        self._values: dict[str, object] = {}

    def write(self, key: str, value: object) -> None:
        """Store a value under `key`.

        Filter and Score results are reused for later pods of the class as long as the values
        written for them are equal. Values that cannot be compared count as different.
        """
        self._values[key] = value

    def has(self, key: str) -> bool:
        """Whether there is a value under `key`."""
        return key in self._values or (self._before is not None and self._before.has(key))

    def get(self, key: str) -> object | None:
        """Return the value under `key`, None if there is none."""
        if key in self._values or self._before is None:
            return self._values.get(key)
        return self._before.get(key)

    def read(self, key: str, expected: type[ValueT]) -> ValueT:
        """Return the value under `key`. KeyError if there is none, TypeError for another type."""
        if not self.has(key):
            raise KeyError(key)
        value = self.get(key)
        if not isinstance(value, expected):
            raise TypeError(f"state {key!r} holds {type(value).__name__}, not {expected.__name__}")
        return value

    def with_value(self, key: str, value: object) -> CycleState:
        """Return a copy with another value under `key`."""
        changed = CycleState(self.node_count, self._before)
        changed.skipped = self.skipped
        changed._values = {**self._values, key: value}
        return changed

    def is_same(self, other: CycleState) -> bool:
        """Whether both have equal values and skipped plugins; `before` is not compared."""
        if (self.node_count, self.skipped) != (other.node_count, other.skipped):
            return False
        other_values = other._values
        try:
            # If both states contain the same object, comparing it with itself shows nothing: it may
            # have been modified since the other state was written. So it must be immutable.
            return self._values.keys() == other_values.keys() and all(
                _is_immutable(value) if value is other_values[key] else value == other_values[key]
                for key, value in self._values.items()
            )
        except Exception:
            # Comparing values of users' plugins, such as arrays, may raise.
            return False


def _is_immutable(value: object) -> bool:
    """Whether a value is immutable, so that it has not changed since it was last written."""
    if isinstance(value, tuple):
        return all(map(_is_immutable, value))
    if isinstance(value, _IMMUTABLE_TYPES):
        return True
    parameters = getattr(value, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return False
    # Raises for a frozen dataclass that contains dicts or lists.
    hash(value)
    return True
