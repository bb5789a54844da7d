"""ImageLocality: nodes that hold the pod's images score by their size, damped by rarity.

    scaled(image) = int64(size * (nodes with the image / all nodes))
    low, high = 23 MiB, 1000 MiB * containers
    raw = 100 * (clamp(sum, low, high) - low) / (high - low)

How many nodes have an image is counted over all shards, which is this plugin's summary.
Upstream: pkg/scheduler/framework/plugins/imagelocality/image_locality.go.
"""

from __future__ import annotations

from collections import Counter
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


@dataclass(frozen=True, slots=True)
class ImageNodes:
    """How many nodes have each of the pod's images (sorted; images nobody has are left out)."""

    with_image: tuple[tuple[str, int], ...]

    def merge(self, other: ImageNodes) -> ImageNodes:
        counts = Counter(dict(self.with_image))
        counts.update(dict(other.with_image))
        return ImageNodes(tuple(sorted(counts.items())))


class ImageLocality(ScorePlugin, SummarizesScore):
    name = "ImageLocality"
    reads = Reads.NODE
    score_summary_type = ImageNodes

    def score_summary(
        self, state: CycleState, pod: PodInfo, table: Table, feasible: Bools
    ) -> Summary | None:
        wanted = set(pod.facts.images)
        per_set = np.bincount(table.image_codes, minlength=len(table.image_sets))
        counts: Counter[str] = Counter()
        for images, nodes in zip(table.image_sets, per_set.tolist(), strict=True):
            if nodes:
                counts.update(dict.fromkeys({name for name, _ in images} & wanted, nodes))
        return ImageNodes(tuple(sorted(counts.items()))) if counts else None

    def score(self, state: CycleState, pod: PodInfo, table: Table) -> I64:
        summary = state.score_summaries.get(self.name)
        if summary is None:
            return np.zeros(len(table), dtype=np.int64)
        assert isinstance(summary, ImageNodes)
        share = {name: count / state.node_count for name, count in summary.with_image}
        by_set = [self._score_images(pod, dict(images), share) for images in table.image_sets]
        return np.array(by_set, dtype=np.int64)[table.image_codes]

    def _score_images(self, pod: PodInfo, size_of: dict[str, int], share: dict[str, float]) -> int:
        scaled = sum(
            int(float(size_of[image]) * share[image])
            for image in pod.facts.images
            if image in size_of
        )
        highest = MAX_CONTAINER_THRESHOLD * pod.facts.container_count
        if scaled < MIN_THRESHOLD:
            return 0
        return MAX_NODE_SCORE * (min(scaled, highest) - MIN_THRESHOLD) // (highest - MIN_THRESHOLD)

    def sign(self, pod: PodFacts) -> Hashable:
        return (pod.images, pod.container_count)
