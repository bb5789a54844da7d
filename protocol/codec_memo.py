"""Caches for values that messages repeat: decoded once by bytes, encoded once by identity.

A claim of a pod is sent to four actors, some of them several times, and a thousand claims have
equal requests. A dataclass declares `repeats_on_wire` if its values are immutable, and larger than
a comparison of their bytes. Equal values are then often one object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeAlias, TypeVar

import msgpack

CACHE_MAX_VALUES: Final = 4096
"""A cache has this many of the values of a class that were used last, or up to twice as many."""

CACHED_VALUE_MAX_BYTES: Final = 4096
"""Longer values are not cached."""

_Coder: TypeAlias = Callable[[object], object]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def repeats(kind: type) -> bool:
    """Whether values of a class are often equal to earlier ones."""
    return bool(getattr(kind, "repeats_on_wire", False))


class _RecentValues(Generic[_Key, _Value]):
    """A mapping of values used recently: when it is full, those not used since it was are dropped.

    Messages of a batch repeat its values one after another. A cache that is emptied when it is full
    would often lose all of them just before they are repeated.
    """

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self._new: dict[_Key, _Value] = {}
        self._old: dict[_Key, _Value] = {}

    def get(self, key: _Key) -> _Value | None:
        found = self._new.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: _Key, value: _Value) -> None:
        if len(self._new) >= CACHE_MAX_VALUES:
            self._old, self._new = self._new, {}
        self._new[key] = value


def cached_decoder(decode: _Coder) -> _Coder:
    """Return a decoder that returns the same object for equal data."""
    cache: _RecentValues[bytes, object] = _RecentValues()

    def code(data: object) -> object:
        try:
            key = msgpack.packb(data)
        except (TypeError, ValueError, OverflowError):
            # No data of a message: the decoder reports it.
            return decode(data)
        found = cache.get(key)
        if found is None:
            found = decode(data)
            if len(key) <= CACHED_VALUE_MAX_BYTES:
                cache.put(key, found)
        return found

    return code


def cached_encoder(encode: _Coder) -> _Coder:
    """Return an encoder that returns the same list for the same object; it must not be changed."""
    cache: _RecentValues[int, tuple[object, object]] = _RecentValues()

    def code(value: object) -> object:
        found = cache.get(id(value))
        if found is not None:
            return found[1]
        encoded = encode(value)
        # The value is kept, so that no other one gets its id.
        cache.put(id(value), (value, encoded))
        return encoded

    return code
