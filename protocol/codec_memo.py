"""Values that messages repeat: bytes of their own, decoded once by bytes, encoded once by identity.

A claim of a pod is sent to four actors, some of them several times, and a thousand claims have
equal requests. A dataclass declares `repeats_on_wire` if its values are immutable, and larger than
a comparison of their bytes. Equal values are then often one object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeAlias, TypeVar

CACHE_MAX_VALUES: Final = 4096
"""Values of a class in a cache; the last so many that were added or used, or more, are in it."""

CACHED_VALUE_MAX_BYTES: Final = 4096
"""Longer values are not cached."""

_Coder: TypeAlias = Callable[[object], object]
_Key = TypeVar("_Key")
_Found = TypeVar("_Found")


def repeats(kind: type) -> bool:
    """Whether values of a class are often equal to earlier ones."""
    return bool(getattr(kind, "repeats_on_wire", False))


class RecentValues(Generic[_Key, _Found]):
    """A mapping of the last values: when it is full, those that were not used lately are dropped.

    max_values: so many that were added or used last, or more, are in it.

    Messages of a batch repeat its values one after another, so that a cache that is emptied when it
    is full would often lose all of them just before.
    """

    __slots__ = ("_max_values", "_new", "_old")

    def __init__(self, max_values: int = CACHE_MAX_VALUES) -> None:
        self._max_values = max_values
        self._new: dict[_Key, _Found] = {}
        self._old: dict[_Key, _Found] = {}

    def get(self, key: _Key) -> _Found | None:
        found = self._new.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: _Key, value: _Found) -> None:
        if len(self._new) >= self._max_values:
            self._old, self._new = self._new, {}
        self._new[key] = value


def cached_encoder(encode: _Coder) -> _Coder:
    """Return an encoder that returns the same list for the same object; it must not be changed."""
    known: RecentValues[int, tuple[object, object]] = RecentValues()

    def code(value: object) -> object:
        found = known.get(id(value))
        if found is not None:
            return found[1]
        encoded = encode(value)
        # The value is kept, so that no other one gets its id.
        known.put(id(value), (value, encoded))
        return encoded

    return code


class RepeatedValues:
    """The values of one class, each packed to bytes of its own, inside of messages.

    pack, unpack: plain data to bytes and back. Equal bytes are unpacked to one object, and an
    object is packed once: not again if it was unpacked here.
    """

    __slots__ = ("_decode", "_encode", "_pack", "_packed", "_unpack", "_values")

    def __init__(
        self,
        encode: _Coder,
        decode: _Coder,
        *,
        pack: Callable[[object], bytes],
        unpack: Callable[[bytes], object],
    ) -> None:
        self._encode, self._decode = encode, decode
        self._pack, self._unpack = pack, unpack
        self._values: RecentValues[bytes, object] = RecentValues()
        self._packed: RecentValues[int, tuple[object, bytes]] = RecentValues()

    def encode(self, value: object) -> bytes:
        """Return the bytes of a value."""
        found = self._packed.get(id(value))
        if found is not None:
            return found[1]
        data = self._pack(self._encode(value))
        # The value is kept, so that no other one gets its id.
        self._packed.put(id(value), (value, data))
        return data

    def decode(self, data: object) -> object:
        """Return the value of bytes, or of the list of its fields, as files have it."""
        if type(data) is not bytes:
            return self._decode(data)
        found = self._values.get(data)
        if found is None:
            found = self._decode(self._unpack(data))
            if len(data) <= CACHED_VALUE_MAX_BYTES:
                self._values.put(data, found)
                self._packed.put(id(found), (found, data))
        return found
