"""Facts of a pod as bytes (wire format): packed once per class, unpacked once per process.

Equal bytes are unpacked to one object, so that lookups by identity stay cheap. Requested amounts
are packed apart from all other fields: classes that differ only in amounts share the packed rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_amounts import AMOUNT_FIELDS, FIELD_NAMES, amounts_of, other_fields_of
from roadstead.protocol.codec import from_wire, pack, to_wire, unpack

MAX_CACHED_CLASSES = 65_536


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Requested amounts, as in `PodFacts`; rest: all other fields, packed."""

    rest: bytes
    requests: tuple[tuple[str, int], ...]
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int
    container_requests: tuple[tuple[str, int], ...] | None


_START = FIELD_NAMES.index(AMOUNT_FIELDS[0])
_STOP = _START + len(AMOUNT_FIELDS)
assert FIELD_NAMES[_START:_STOP] == AMOUNT_FIELDS, "the amounts are adjacent"

OtherFields = tuple[object, ...]

_make = cast(Callable[..., PodFacts], PodFacts)


@lru_cache(maxsize=MAX_CACHED_CLASSES)
def encode_facts(facts: PodFacts) -> bytes:
    """Encode facts as bytes."""
    return pack(to_wire(_Amounts(_encode_other_fields(other_fields_of(facts)), *amounts_of(facts))))


@lru_cache(maxsize=MAX_CACHED_CLASSES)
def decode_facts(data: bytes) -> PodFacts:
    """Decode facts; CodecError if the bytes are malformed."""
    amounts = from_wire(_Amounts, unpack(data))
    rest = _decode_other_fields(amounts.rest)
    return _make(*rest[:_START], *amounts_of(amounts), *rest[_START:])


@lru_cache(maxsize=MAX_CACHED_CLASSES)
def _encode_other_fields(rest: OtherFields) -> bytes:
    no_amounts = amounts_of(PodFacts())
    return pack(to_wire(_make(*rest[:_START], *no_amounts, *rest[_START:])))


@lru_cache(maxsize=MAX_CACHED_CLASSES)
def _decode_other_fields(data: bytes) -> OtherFields:
    rest: OtherFields = other_fields_of(from_wire(PodFacts, unpack(data)))
    return rest
