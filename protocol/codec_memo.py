"""Caches for values that messages repeat: decode equal bytes once, encode one object once.

A claim of a pod is sent to four actors, some of them several times, and a thousand claims have
equal requests. A dataclass declares `repeats_on_wire = True` if its values are immutable, and if
decoding one takes longer than comparing its bytes with those of earlier values. Equal values are
then often one object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from roadstead.protocol.generations import Generations

CACHED_RECENT_VALUES: Final = 4096
"""Number of most recently used values of a class that a cache keeps; it has at most twice that."""

CACHED_VALUE_MAX_BYTES: Final = 4096
"""Values with longer encodings are not cached."""

_Coder: TypeAlias = Callable[[object], object]


def repeats(cls: type) -> bool:
    """Whether values of a class are often equal to earlier ones."""
    return bool(getattr(cls, "repeats_on_wire", False))


def cached_encoder(encode: _Coder) -> _Coder:
    """Return an encoder that returns one list for one object; the list must not be changed."""
    # By id of a value: the value and its list.
    cache: Generations[int, tuple[object, object]] = Generations(CACHED_RECENT_VALUES)

    def code(value: object) -> object:
        cached = cache.get(id(value))
        if cached is not None:
            return cached[1]
        encoded = encode(value)
        # The value is kept, so that no other one gets its id.
        cache.put(id(value), (value, encoded))
        return encoded

    return code


class RepeatedValues:
    """Coder of the values of one class: in a message, each value is a string of packed bytes.

    encode, decode: value to list of fields and back. pack, unpack: such lists to bytes and back.
    Equal bytes are unpacked to one object: that from which this process packed them, if it did.
    Bytes are kept with their object, so that it is packed at most once.
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
        # By bytes.
        self._values: Generations[bytes, object] = Generations(CACHED_RECENT_VALUES)
        # By id of a value: the value and its bytes.
        self._packed: Generations[int, tuple[object, bytes]] = Generations(CACHED_RECENT_VALUES)

    def encode(self, value: object) -> bytes:
        """Return the bytes of a value."""
        packed = self._packed.get(id(value))
        if packed is not None:
            return packed[1]
        data = self._pack(self._encode(value))
        # The value is kept, so that no other one gets its id.
        self._packed.put(id(value), (value, data))
        if len(data) <= CACHED_VALUE_MAX_BYTES and self._values.get(data) is None:
            # Another actor of this process will receive it.
            self._values.put(data, value)
        return data

    def decode(self, data: object) -> object:
        """Return the value of packed bytes or of a list of fields, the form that files contain."""
        if type(data) is not bytes:
            return self._decode(data)
        value = self._values.get(data)
        if value is None:
            value = self._decode(self._unpack(data))
            if len(data) <= CACHED_VALUE_MAX_BYTES:
                self._values.put(data, value)
                self._packed.put(id(value), (value, data))
        return value
