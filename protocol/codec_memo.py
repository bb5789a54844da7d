"""Caches for values that messages repeat: decoded once by bytes, encoded once by identity.

A claim of a pod is sent to four actors, some of them several times, and a thousand claims have
equal requests. A dataclass declares `repeats_on_wire` if its values are immutable, and larger than
a comparison of their bytes. Equal values are then often one object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgpack

CACHE_MAX_VALUES: Final = 4096
"""Cached values of a class; with more, the cache is emptied."""

CACHED_VALUE_MAX_BYTES: Final = 4096
"""Longer values are not cached."""

_Coder: TypeAlias = Callable[[object], object]


def repeats(kind: type) -> bool:
    """Whether values of a class are often equal to earlier ones."""
    return bool(getattr(kind, "repeats_on_wire", False))


def cached_decoder(decode: _Coder) -> _Coder:
    """Return a decoder that returns the same object for equal data."""
    known: dict[bytes, object] = {}

    def code(data: object) -> object:
        try:
            key = msgpack.packb(data)
        except (TypeError, ValueError, OverflowError):
            # No data of a message: the decoder reports it.
            return decode(data)
        found = known.get(key)
        if found is None:
            found = decode(data)
            if len(key) <= CACHED_VALUE_MAX_BYTES:
                if len(known) >= CACHE_MAX_VALUES:
                    known.clear()
                known[key] = found
        return found

    return code


def cached_encoder(encode: _Coder) -> _Coder:
    """Return an encoder that returns the same list for the same object; it must not be changed."""
    known: dict[int, tuple[object, object]] = {}

    def code(value: object) -> object:
        found = known.get(id(value))
        if found is not None:
            return found[1]
        if len(known) >= CACHE_MAX_VALUES:
            known.clear()
        encoded = encode(value)
        # The value is kept, so that no other one gets its id.
        known[id(value)] = value, encoded
        return encoded

    return code
