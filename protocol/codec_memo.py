"""Caches for values that messages repeat: decoded once by bytes, encoded once by identity.

A claim of a pod is sent to four actors, some of them several times, and a thousand claims have
equal requests. A dataclass declares `repeats_on_wire` if its values are immutable, and larger than
a comparison of their bytes. Equal values are then often one object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgpack

from roadstead.protocol.generations import Generations

CACHE_MAX_VALUES: Final = 4096
"""A cache has this many of the values of a class that were used last, or up to twice as many."""

CACHED_VALUE_MAX_BYTES: Final = 4096
"""Longer values are not cached."""

_Coder: TypeAlias = Callable[[object], object]


def repeats(kind: type) -> bool:
    """Whether values of a class are often equal to earlier ones."""
    return bool(getattr(kind, "repeats_on_wire", False))


def cached_decoder(decode: _Coder) -> _Coder:
    """Return a decoder that returns the same object for equal data."""
    cache: Generations[bytes, object] = Generations(CACHE_MAX_VALUES)

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
    cache: Generations[int, tuple[object, object]] = Generations(CACHE_MAX_VALUES)

    def code(value: object) -> object:
        found = cache.get(id(value))
        if found is not None:
            return found[1]
        encoded = encode(value)
        # The value is kept, so that no other one gets its id.
        cache.put(id(value), (value, encoded))
        return encoded

    return code
