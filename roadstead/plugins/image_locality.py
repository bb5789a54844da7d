"""ImageLocality: scores nodes by the size of the pod's images on them, less for rare images.

    scaled(image) = int64(size * (nodes with the image / all nodes))
    low, high = 23 MiB, 1000 MiB * containers
    raw = 100 * (clamp(sum, low, high) - low) / (high - low)

Upstream takes an image's size from the first node that reported it, whatever other nodes report;
here that is the first node by arrival. The size and the number of nodes with an image depend on all
nodes and are computed before Score. As in upstream, a node's snapshot is renewed only when the node
changes, and nodes that arrived later do not count for it yet (see roadstead/nodes/snapshots.py).

Upstream: pkg/scheduler/framework/plugins/imagelocality/image_locality.go and
pkg/scheduler/backend/cache/cache.go (addNodeImageStates).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import MAX_NODE_SCORE, Feasible, PreparesScore, Reads, ScorePlugin
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Rows, Table
from roadstead.protocol.status import SUCCESS, Status

MIB = 1024 * 1024
MIN_THRESHOLD = 23 * MIB
"""Upstream's minThreshold: the sum of scaled sizes with score 0."""
MAX_CONTAINER_THRESHOLD = 1000 * MIB
"""Upstream's maxContainerThreshold: the sum for each container with score 100."""


ImageOnNodes = tuple[str, int, int, int]
"""(image, number of nodes that have it, arrival of the first of them, size there in bytes).

The arrival of a node is its position in the order in which nodes joined the cluster.
"""


@dataclass(frozen=True, slots=True)
class ImageNodes:
    """The nodes that have the pod's images, sorted by image; images that no node has are omitted.

    late: (image, arrival) of each node that has it and arrived after the table's first snapshot, so
    that not every row's snapshot counts it.
    """

    images: tuple[ImageOnNodes, ...]
    late: tuple[tuple[str, int], ...] = ()

    def at(self, snapshot_at: int) -> ImageNodes:
        """Return the counts for rows with a snapshot taken when `snapshot_at` nodes had arrived."""
        later = Counter(image for image, arrival in self.late if arrival >= snapshot_at)
        return ImageNodes(
            tuple(
                (image, nodes - later[image], arrival, size_bytes)
                for image, nodes, arrival, size_bytes in self.images
            )
        )


class ImageLocality(ScorePlugin, PreparesScore):
    name = "ImageLocality"
    # Other nodes' images are read, too, but no placement changes images.
    reads = Reads.NODE
    shares_by_shape = True

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        on_nodes: list[ImageOnNodes] = []
        late: list[tuple[str, int]] = []
        for image in sorted(set(pod.facts.images)):
            rows, size_bytes = _rows_with(image, table)
            if len(rows):
                on_nodes.append(_nodes_with(image, rows, size_bytes, table))
                late += [(image, arrival) for arrival in sorted(_late_arrivals(rows, table))]
        if on_nodes:
            state.write(self.name, ImageNodes(tuple(on_nodes), tuple(late)))
        return SUCCESS

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        if not state.has(self.name):
            return np.zeros(len(table), dtype=np.int64)
        image_nodes = state.read(self.name, ImageNodes)
        if not image_nodes.late:
            return _by_set(state, pod, table, image_nodes)[table.image_codes]
        snapshots, snapshot_of = np.unique(table.snapshot_at, return_inverse=True)
        scores = [_by_set(state, pod, table, image_nodes.at(each)) for each in snapshots.tolist()]
        return np.array(scores, dtype=np.int64).reshape(-1, len(table.image_sets))[
            snapshot_of, table.image_codes
        ]

    def sign(self, pod: PodFacts) -> Hashable:
        return (pod.images, pod.container_count)


def _by_set(state: CycleState, pod: PodClass, table: Table, image_nodes: ImageNodes) -> I64:
    """Return the score for each set of images that some node has: int64[code in image_codes]."""
    scaled = {
        image: int(float(size_bytes) * (nodes / state.node_count))
        for image, nodes, _, size_bytes in image_nodes.images
    }
    wanted = [image for image in pod.facts.images if image in scaled]
    highest = MAX_CONTAINER_THRESHOLD * pod.facts.container_count
    by_set = [
        _scale(sum(scaled[image] for image in wanted if image in names), highest)
        for names in ({name for name, _ in images} for images in table.image_sets)
    ]
    return np.array(by_set, dtype=np.int64)


def _rows_with(image: str, table: Table) -> tuple[Rows, I64]:
    """Return the rows that have an image, and its size on every row (-1 without it)."""
    sizes = [
        next((size for name, size in images if name == image), -1) for images in table.image_sets
    ]
    size_bytes: I64 = np.array(sizes, dtype=np.int64)[table.image_codes]
    return np.flatnonzero(size_bytes >= 0), size_bytes


def _nodes_with(image: str, rows: Rows, size_bytes: I64, table: Table) -> ImageOnNodes:
    """Summarize the nodes that have an image."""
    first = rows[table.arrivals[rows].argmin()]
    return (image, len(rows), int(table.arrivals[first]), int(size_bytes[first]))


def _late_arrivals(rows: Rows, table: Table) -> list[int]:
    """Return the arrivals of rows whose nodes arrived after the table's first snapshot."""
    arrivals = table.arrivals[rows]
    late: list[int] = arrivals[arrivals >= table.columns.first_snapshot_at].tolist()
    return late


def _scale(total: int, highest: int) -> int:
    if total < MIN_THRESHOLD:
        return 0
    return MAX_NODE_SCORE * (min(total, highest) - MIN_THRESHOLD) // (highest - MIN_THRESHOLD)
