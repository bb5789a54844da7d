"""Samples: the state of the fleet at one time, as rows (zone, metric, resource, value)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from roadstead.simulator.pod_lives import LifeState

if TYPE_CHECKING:
    from roadstead.simulator.engine import Engine

SampleRow = tuple[str, str, str, float]

WHOLE = ""
"""Zone of rows that concern the whole fleet."""


def sample_rows(engine: Engine) -> Iterator[SampleRow]:
    """Yield the rows of a sample; the whole fleet first, then zone by zone."""
    counts = engine.lives.counts
    for metric, states in (
        ("pending", (LifeState.PENDING,)),
        ("running", (LifeState.BOUND, LifeState.RUNNING, LifeState.TERMINATING)),
        ("ended", (LifeState.ENDED,)),
    ):
        yield WHOLE, metric, "", float(sum(counts[state] for state in states))
    yield WHOLE, "nodes", "", float(len(engine.nodes))
    yield from _resources(engine)


def _resources(engine: Engine) -> Iterator[SampleRow]:
    table = engine.cluster.table
    columns, rows = table.columns, slice(0, len(table))
    columns.fit_resources()
    zones = columns.zone[rows]
    for code, resource in enumerate(table.resource_names):
        allocatable, requested = columns.allocatable[code, rows], columns.requested[code, rows]
        yield WHOLE, "allocatable", resource, float(allocatable.sum())
        yield WHOLE, "requested", resource, float(requested.sum())
        for zone in np.unique(zones):
            here = zones == zone
            name = columns.zones.values[zone]
            if name:
                yield name, "allocatable", resource, float(allocatable[here].sum())
                yield name, "requested", resource, float(requested[here].sum())
