"""A trace of ten pod shapes that together give every stateless plugin work."""

from __future__ import annotations

import numpy as np

from roadstead.fleet.generate import raw_stream, trace_of_arrivals
from roadstead.fleet.ten_classes import TEN_CLASSES, TEN_NAMESPACE, ten_node
from roadstead.fleet.trace import Trace


def ten_shapes(nodes: int, pods: int, seed: int) -> Trace:
    """Return pods of all shapes, equally often, in a seeded order."""
    order = np.argsort(raw_stream(seed, "order", pods), kind="stable")
    classes = [TEN_CLASSES[int(place) % len(TEN_CLASSES)] for place in order]
    fleet = map(ten_node, range(nodes))
    return trace_of_arrivals(f"ten shapes, seed {seed}", TEN_NAMESPACE, fleet, classes, seed)
