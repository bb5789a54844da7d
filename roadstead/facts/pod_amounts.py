"""Getters that split `PodFacts` into requested amounts and all other fields."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter

from roadstead.facts.pod import PodFacts

FIELD_NAMES = tuple(each.name for each in fields(PodFacts))
AMOUNT_FIELDS = ("requests", "nonzero_cpu_milli", "nonzero_memory_bytes", "container_requests")
"""Fields of `PodFacts` that hold requested amounts."""

amounts_of = attrgetter(*AMOUNT_FIELDS)
other_fields_of = attrgetter(*(name for name in FIELD_NAMES if name not in AMOUNT_FIELDS))
"""Getter of all other fields, in order."""
