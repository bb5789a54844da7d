"""Getters that split `PodFacts`: requested amounts, the pod's own claims, all other fields."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter

from roadstead.facts.pod import PodFacts

FIELD_NAMES = tuple(each.name for each in fields(PodFacts))
AMOUNT_FIELDS = ("requests", "nonzero_cpu_milli", "nonzero_memory_bytes", "container_requests")
"""Fields of `PodFacts` that hold requested amounts."""

CLAIM_FIELDS = ("device_claims", "claims_as")
"""Fields that name the claims of devices of a single pod."""

amounts_of = attrgetter(*AMOUNT_FIELDS)
own_claims_of = attrgetter(*CLAIM_FIELDS)
OTHER_FIELDS = tuple(name for name in FIELD_NAMES if name not in AMOUNT_FIELDS + CLAIM_FIELDS)
other_fields_of = attrgetter(*OTHER_FIELDS)
"""Getter of all other fields, in order."""
