"""To schedulers and workers: changes of the cluster; to workers: questions about their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadstead.actors.seam import method
from roadstead.cycle.messages import RankAnswer, RankAsk, ScoreAnswer, ScoreAsk
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.protocol.codec import from_wire, pack, to_wire, unpack
from roadstead.storage import StorageChange

NO_NODES = NodeList()


@dataclass(frozen=True, slots=True)
class DeltaBatch:
    """Cache → schedulers and workers: changes numbered from `first_seq`; known ones are skipped.

    kinds[i] is a DeltaKind; pods[i] points into `classes` (-1 for none); `nodes` holds the facts
    of the add_node and update_node deltas, in order, and `arrivals` when each of these nodes came
    to the whole cluster. uids[i] is a pod's UID, "" for none; keys[i] its namespace/name where the
    UID is another text; started_s: (place among the deltas, start time) of pods that have one.
    changes: of the storage, one for each delta of kind STORAGE. versions: of rows, one for each
    delta of kind VERSION. came: nodes that nobody knew, ahead of all else, one number each;
    came_at: int64[node], as `arrivals`. partitions: of all these nodes, `came` first; empty where
    no scheduler has partitions of its own.
    """

    first_seq: int
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    pods: tuple[int, ...]
    classes: tuple[bytes, ...]
    nodes: tuple[NodeFacts, ...]
    arrivals: tuple[int, ...]
    changes: tuple[StorageChange, ...] = ()
    uids: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    started_s: tuple[tuple[int, float], ...] = ()
    versions: tuple[int, ...] = ()
    came: NodeList = NO_NODES
    came_at: bytes = b""
    partitions: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """How many changes these are."""
        return len(self.came) + len(self.kinds)

    def node_names(self) -> list[str]:
        """The nodes that come or are changed, in the order of `partitions`."""
        return [*self.came.names, *(facts.name for facts in self.nodes)]


@dataclass(frozen=True, slots=True)
class PackedChanges:
    """Cache → one follower: a `DeltaBatch`, which was packed once for all followers.

    epoch: of the receiver's life that it is for, as of `Restore`; 0 for any.
    """

    data: bytes
    epoch: int = 0

    @staticmethod
    def of(batch: DeltaBatch, epoch: int = 0) -> PackedChanges:
        """A batch for a follower."""
        return PackedChanges(pack(to_wire(batch)), epoch)

    def opened(self) -> DeltaBatch:
        """The batch. CodecError for anything else."""
        return from_wire(DeltaBatch, unpack(self.data, typed=True))


@dataclass(frozen=True, slots=True)
class Applied:
    """Follower → cache: changes came. is_asked: schedulers ask this worker at present, so that it
    should have the next ones at once."""

    is_asked: bool = False


APPLIED = Applied()


STORAGE = "storage"
"""The kind of a delta that changes claims and volumes."""

VERSION = "version"
"""The kind of a delta that tells the version of a node's row."""


def nodes_batch(
    first_seq: int, nodes: NodeList, came_at: NDArray[np.int64], partitions: tuple[int, ...] = ()
) -> DeltaBatch:
    """Nodes that nobody knew as they are streamed. came_at: int64[node]."""
    nothing: tuple[()] = ()
    columns = (nothing,) * 6
    return DeltaBatch(
        first_seq, *columns, came=nodes, came_at=came_at.tobytes(), partitions=partitions
    )


APPLY = method("apply", PackedChanges, Applied)
SCORE = method("score", ScoreAsk, ScoreAnswer)
RANK = method("rank", RankAsk, RankAnswer)
