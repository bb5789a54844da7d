"""Values that messages repeat: decoded once by their bytes, encoded once by their identity.

A claim of a pod is sent to four actors, some of them several times, and a thousand claims ask for
the same. A dataclass declares `repeats_on_wire` if its values are immutable, and larger than a
comparison of their bytes. Equal values are then often one object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgpack

KNOWN_MAX: Final = 4096
"""Values that are remembered of a class; with more, all are forgotten."""

BYTES_MAX: Final = 4096
"""Values that are longer are not remembered."""

_Coder: TypeAlias = Callable[[object], object]


def repeats(kind: type) -> bool:
    """Whether values of a class are often equal to earlier ones."""
    return bool(getattr(kind, "repeats_on_wire", False))


def remembered_decoder(decode: _Coder) -> _Coder:
    """Return a decoder that answers equal data with the same object."""
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
            if len(key) <= BYTES_MAX:
                if len(known) >= KNOWN_MAX:
                    known.clear()
                known[key] = found
        return found

    return code


def remembered_encoder(encode: _Coder) -> _Coder:
    """Return an encoder that answers the same object with the same list, not to be changed."""
    known: dict[int, tuple[object, object]] = {}

    def code(value: object) -> object:
        found = known.get(id(value))
        if found is not None:
            return found[1]
        if len(known) >= KNOWN_MAX:
            known.clear()
        encoded = encode(value)
        # The value is kept, so that no other one gets its id.
        known[id(value)] = value, encoded
        return encoded

    return code
