"""CycleState: what the plugins of one scheduling cycle hand to one another and to themselves.

Upstream: pkg/scheduler/framework/cycle_state.go.
"""

from __future__ import annotations

from enum import Enum
from types import NoneType
from typing import TypeVar

T = TypeVar("T")

_FIXED = (str, bytes, int, float, frozenset, Enum, NoneType)


class CycleState:
    """Values by key, usually a plugin's name. One per class of pods and evaluation.

    node_count: all nodes. skipped: plugins whose PreFilter or PreScore said Skip. before: what
    PreFilter wrote, where PreScore writes; read here too, and never changed.
    """

    __slots__ = ("_before", "_values", "node_count", "skipped")

    def __init__(self, node_count: int, before: CycleState | None = None) -> None:
        self.node_count = node_count
        self.skipped: set[str] = set()
        self._before = before
        self._values: dict[str, object] = {}

    def write(self, key: str, value: object) -> None:
        """Keep a value. While equal values are written for a pod, what was found with them holds:
        a value that does not compare is found anew each time.
        """
        self._values[key] = value

    def has(self, key: str) -> bool:
        """Whether somebody wrote it."""
        return key in self._values or (self._before is not None and self._before.has(key))

    def get(self, key: str) -> object | None:
        """The value under `key`, None if nobody wrote it."""
        if key in self._values or self._before is None:
            return self._values.get(key)
        return self._before.get(key)

    def read(self, key: str, kind: type[T]) -> T:
        """The value under `key`. KeyError if nobody wrote it, TypeError if it is another kind."""
        if not self.has(key):
            raise KeyError(key)
        value = self.get(key)
        if not isinstance(value, kind):
            raise TypeError(f"state {key!r} holds {type(value).__name__}, not {kind.__name__}")
        return value

    def with_value(self, key: str, value: object) -> CycleState:
        """A copy that holds another value under `key`."""
        found = CycleState(self.node_count, self._before)
        found.skipped = self.skipped
        found._values = {**self._values, key: value}
        return found

    def is_same(self, other: CycleState) -> bool:
        """Whether both hold equal values and the same plugins were skipped, `before` apart."""
        if (self.node_count, self.skipped) != (other.node_count, other.skipped):
            return False
        theirs = other._values
        try:
            return self._values.keys() == theirs.keys() and all(
                _is_fixed(value) if value is theirs[key] else value == theirs[key]
                for key, value in self._values.items()
            )
        except Exception:
            # Values of users' plugins, such as arrays, may not say whether they are equal.
            return False


def _is_fixed(value: object) -> bool:
    """Whether a value cannot have changed since it was written the last time."""
    if isinstance(value, tuple):
        return all(map(_is_fixed, value))
    if isinstance(value, _FIXED):
        return True
    parameters = getattr(value, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return False
    # A frozen dataclass of dicts or lists has no hash, which raises.
    hash(value)
    return True
