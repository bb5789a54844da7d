"""Facts of a pod as bytes (wire format): packed once per class, unpacked once per process.

Equal bytes are unpacked to one object, so that lookups by identity stay cheap; if they were packed
by this process, to the packed object. Requested amounts and claims of devices are packed apart from
all other fields, the *rest*: classes that differ only in amounts or claims share the packed rest.
`Generations` is a cache of the most recently used values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from roadstead.facts.pod import PodClaim, PodFacts, PodReference
from roadstead.facts.pod_amounts import (
    AMOUNT_FIELDS,
    CLAIM_FIELDS,
    FIELD_NAMES,
    OTHER_FIELDS,
    amounts_of,
    other_fields_of,
    own_claims_of,
)
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.fast_init import fast_init
from roadstead.protocol.generations import Generations
from roadstead.protocol.plain_data import pack, unpack

MAX_CACHED_CLASSES = 65_536
"""Classes in each cache of this module."""


@fast_init
@dataclass(frozen=True, slots=True)
class _Parts:
    """Requested amounts and own claims, as in `PodFacts`; rest: all other fields, packed."""

    rest: bytes
    requests: tuple[tuple[str, int], ...]
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int
    container_requests: tuple[tuple[str, int], ...] | None
    device_claims: tuple[PodClaim, ...]
    claims_as: PodReference | None


OtherFields = tuple[object, ...]
"""Values of OTHER_FIELDS."""

# `_facts_of` gets the values in this order, and sorts them as the fields of `PodFacts`.
_SPLIT_ORDER = (*OTHER_FIELDS, *AMOUNT_FIELDS, *CLAIM_FIELDS)
_in_order_of_facts = itemgetter(*map(_SPLIT_ORDER.index, FIELD_NAMES))

# The bytes by the id of the facts: an id is found sooner than a hash is computed. The facts are
# kept, so that no other facts get their id.
_encoded: Generations[int, tuple[PodFacts, bytes]] = Generations(MAX_CACHED_CLASSES)

# The facts by their bytes.
_decoded: Generations[bytes, PodFacts] = Generations(MAX_CACHED_CLASSES)


def encode_facts(facts: PodFacts) -> bytes:
    """Encode facts as bytes.

    Equal facts become equal bytes; decoded facts become the bytes from which they were decoded.
    """
    found = _encoded.get(id(facts))
    if found is not None:
        return found[1]
    data = _encode_equal(facts)
    _encoded.put(id(facts), (facts, data))
    if _decoded.get(data) is None:
        # Another actor of this process may receive it.
        _decoded.put(data, facts)
    return data


@lru_cache(maxsize=MAX_CACHED_CLASSES)
def _encode_equal(facts: PodFacts) -> bytes:
    rest = _encode_other_fields(other_fields_of(facts))
    return pack(to_wire(_Parts(rest, *amounts_of(facts), *own_claims_of(facts))))


def decode_facts(data: bytes) -> PodFacts:
    """Decode facts, or return those that this process knows; CodecError for malformed bytes."""
    found = _decoded.get(data)
    if found is None:
        found = decode_unknown_facts(data)
        _decoded.put(data, found)
        _encoded.put(id(found), (found, data))
    return found


def decode_unknown_facts(data: bytes) -> PodFacts:
    """Decode facts as in a process that did not pack them; CodecError for malformed bytes."""
    parts = from_wire(_Parts, unpack(data))
    return _facts_of(_decode_other_fields(parts.rest), parts)


@lru_cache(maxsize=MAX_CACHED_CLASSES)
def _encode_other_fields(rest: OtherFields) -> bytes:
    return pack(to_wire(_facts_of(rest, PodFacts())))


@lru_cache(maxsize=MAX_CACHED_CLASSES)
def _decode_other_fields(data: bytes) -> OtherFields:
    rest: OtherFields = other_fields_of(from_wire(PodFacts, unpack(data)))
    return rest


def _facts_of(rest: OtherFields, parts: _Parts | PodFacts) -> PodFacts:
    """Return the facts with these other fields, and amounts and claims of `parts`."""
    return PodFacts(*_in_order_of_facts((*rest, *amounts_of(parts), *own_claims_of(parts))))
