"""Facts of a pod as bytes: packed once per class, unpacked once per process.

The same bytes come back as the same object, so that what is looked up by identity stays cheap.
"""

from __future__ import annotations

from functools import lru_cache

from roadstead.facts.pod import PodFacts
from roadstead.protocol.codec import from_wire, pack, to_wire, unpack

MAX_CLASSES_REMEMBERED = 65_536


@lru_cache(maxsize=MAX_CLASSES_REMEMBERED)
def facts_out(facts: PodFacts) -> bytes:
    """The bytes that stand for facts."""
    return pack(to_wire(facts))


@lru_cache(maxsize=MAX_CLASSES_REMEMBERED)
def facts_in(data: bytes) -> PodFacts:
    """The facts that bytes stand for. CodecError where they stand for none."""
    return from_wire(PodFacts, unpack(data))
