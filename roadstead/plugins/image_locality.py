"""ImageLocality: nodes that hold the pod's images score by their size, damped by rarity.

    scaled(image) = int64(size * (nodes with the image / all nodes))
    low, high = 23 MiB, 1000 MiB * containers
    raw = 100 * (clamp(sum, low, high) - low) / (high - low)

Upstream takes an image's size from the first node that reported it, whatever other nodes say: here
it is the node that came first to the cluster. That, and how many nodes have an image, is known over
all shards only, which is this plugin's summary.
Upstream: pkg/scheduler/framework/plugins/imagelocality/image_locality.go and
pkg/scheduler/backend/cache/cache.go (addNodeImageStates).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState, Summary
from roadstead.framework.plugin import MAX_NODE_SCORE, Reads, ScorePlugin, SummarizesScore
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import Table

MIB = 1024 * 1024
MIN_THRESHOLD = 23 * MIB
MAX_CONTAINER_THRESHOLD = 1000 * MIB


ImageOnNodes = tuple[str, int, int, int]
"""(image, how many nodes have it, when the first of them came, its size there in bytes)."""


@dataclass(frozen=True, slots=True)
class ImageNodes:
    """Who has the pod's images, sorted; images that nobody has are left out."""

    images: tuple[ImageOnNodes, ...]

    def merge(self, other: ImageNodes) -> ImageNodes:
        merged = {each[0]: each for each in self.images}
        for each in other.images:
            known = merged.get(each[0])
            merged[each[0]] = each if known is None else _joined(known, each)
        return ImageNodes(tuple(sorted(merged.values())))


def _joined(one: ImageOnNodes, other: ImageOnNodes) -> ImageOnNodes:
    image, _, arrival, size_bytes = min(one, other, key=lambda each: each[2:])
    return (image, one[1] + other[1], arrival, size_bytes)


class ImageLocality(ScorePlugin, SummarizesScore):
    name = "ImageLocality"
    reads = Reads.NODE
    score_summary_type = ImageNodes

    def score_summary(
        self, state: CycleState, pod: PodInfo, table: Table, feasible: Bools
    ) -> Summary | None:
        found = [
            each
            for image in sorted(set(pod.facts.images))
            if (each := _nodes_with(image, table)) is not None
        ]
        return ImageNodes(tuple(found)) if found else None

    def score(self, state: CycleState, pod: PodInfo, table: Table) -> I64:
        summary = state.score_summaries.get(self.name)
        if summary is None:
            return np.zeros(len(table), dtype=np.int64)
        assert isinstance(summary, ImageNodes)
        scaled = {
            image: int(float(size_bytes) * (nodes / state.node_count))
            for image, nodes, _, size_bytes in summary.images
        }
        wanted = [image for image in pod.facts.images if image in scaled]
        highest = MAX_CONTAINER_THRESHOLD * pod.facts.container_count
        by_set = [
            _scale(sum(scaled[image] for image in wanted if image in names), highest)
            for names in ({name for name, _ in images} for images in table.image_sets)
        ]
        return np.array(by_set, dtype=np.int64)[table.image_codes]

    def sign(self, pod: PodFacts) -> Hashable:
        return (pod.images, pod.container_count)


def _nodes_with(image: str, table: Table) -> ImageOnNodes | None:
    """One line of the summary; None if no row has the image."""
    sizes = [next((s for name, s in images if name == image), -1) for images in table.image_sets]
    size_bytes = np.array(sizes, dtype=np.int64)[table.image_codes]
    rows = np.flatnonzero(size_bytes >= 0)
    if not len(rows):
        return None
    first = rows[table.arrivals[rows].argmin()]
    return (image, len(rows), int(table.arrivals[first]), int(size_bytes[first]))


def _scale(total: int, highest: int) -> int:
    if total < MIN_THRESHOLD:
        return 0
    return MAX_NODE_SCORE * (min(total, highest) - MIN_THRESHOLD) // (highest - MIN_THRESHOLD)
