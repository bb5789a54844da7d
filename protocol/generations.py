"""Generations: a bounded mapping of the last values, without an order of their use."""

from __future__ import annotations

from typing import Generic, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Generations(Generic[KeyT, ValueT]):
    """A mapping of the last values: when it is full, those that were not used lately are dropped.

    Messages of a batch repeat its values one after another, so that a cache that is emptied when it
    is full would often lose all of them just before.

    most: the last so many that were added or used are in it, and up to twice as many.
    """

    __slots__ = ("_dropped", "_most", "_new", "_old")

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: dict[KeyT, ValueT] = {}
        self._old: dict[KeyT, ValueT] = {}
        self._dropped: dict[KeyT, ValueT] = {}

    def get(self, key: KeyT) -> ValueT | None:
        """Return the value of a key, which is used thereby; None if it is not known."""
        found = self._new.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: KeyT, value: ValueT) -> None:
        """Add a value."""
        if len(self._new) >= self._most:
            self._dropped, self._old, self._new = self._old, self._new, {}
        elif self._dropped:
            # One by one: to free thousands of values at once took 20 to 90 ms.
            self._dropped.popitem()
        self._new[key] = value
