"""A bounded mapping of recently used values, in two generations instead of an order of use."""

from __future__ import annotations

from typing import Generic, TypeVar

KeyT = TypeVar("KeyT")
"""Key of the mapping."""
ValueT = TypeVar("ValueT")
"""Value of the mapping."""


class Generations(Generic[KeyT, ValueT]):
    """A mapping of recent values: when it is full, those that were not used lately are dropped.

    Not a cache that is emptied when it is full: the messages of a batch use the same values one
    after another, and would decode all of them again if it were emptied between two messages.

    min_values: it has at least so many of the most recently used values, and at most twice that.
    """

    __slots__ = ("_dropped", "_min_values", "_new", "_old")

    def __init__(self, min_values: int) -> None:
        self._min_values = min_values
        # Values used since the generations changed; those used before; and older ones, to be freed.
        self._new: dict[KeyT, ValueT] = {}
        self._old: dict[KeyT, ValueT] = {}
        self._dropped: dict[KeyT, ValueT] = {}

    def get(self, key: KeyT) -> ValueT | None:
        """Return the value of a key and count it as used; None if the key is unknown."""
        value = self._new.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: KeyT, value: ValueT) -> None:
        """Add a value."""
        if len(self._new) >= self._min_values:
            self._dropped, self._old, self._new = self._old, self._new, {}
        elif self._dropped:
            # One by one: to free thousands of values at once took 20 to 90 ms.
            self._dropped.popitem()
        self._new[key] = value
