"""The cache's change stream to its followers (schedulers, workers), and requests to workers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roadstead.actors.interface import method
from roadstead.cycle.messages import RankAnswer, RankRequest, ScoreAnswer, ScoreRequest
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.protocol.codec import from_wire, to_message
from roadstead.protocol.plain_data import pack, unpack
from roadstead.storage import StorageChange

NO_NODES = NodeList()


@dataclass(frozen=True, slots=True)
class DeltaBatch:
    """Cache → schedulers and workers: changes numbered from `first_seq`.

    A receiver skips those that it has applied.

    kinds: one for each change: a `DeltaKind` of `roadstead.placements`, STORAGE or VERSION.
    names: of each change's node. pods: index of its pod in `classes`, -1 for none. classes: the
    packed facts of the batch's pods, each once.
    nodes, arrivals: facts and arrival numbers of the add_node and update_node changes, in order. An
    arrival number is a node's place in the order in which the cache received the nodes.
    uids: UID of each change's pod, "" for none. keys: namespace/name of added pods where it differs
    from the UID, else "". started_s: (index of the change, start time) of pods that have one.
    changes: the content of each change of kind STORAGE; empty in batches for schedulers, which
    receive it in the cache's answers. versions: one for each change of kind VERSION.
    new_nodes: added nodes, the first changes of the batch, before those of `kinds`. new_arrivals:
    their arrival numbers, int64[node].
    partitions: of the nodes, `new_nodes` first; empty unless schedulers own partitions.
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
    new_nodes: NodeList = NO_NODES
    new_arrivals: bytes = b""
    partitions: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of changes."""
        return len(self.new_nodes) + len(self.kinds)

    def without_storage_contents(self) -> DeltaBatch:
        """Return the batch without the contents of its changes of kind STORAGE."""
        return replace(self, changes=()) if self.changes else self

    def node_names(self) -> list[str]:
        """Return the names of added and changed nodes, in the order of `partitions`."""
        return [*self.new_nodes.names, *(facts.name for facts in self.nodes)]


@dataclass(frozen=True, slots=True)
class PackedChanges:
    """Cache → one follower: a `DeltaBatch`, packed once for all followers.

    epoch: of the receiving incarnation, as in `Restore`; 0 for any.
    """

    data: bytes
    epoch: int = 0

    @staticmethod
    def of(batch: DeltaBatch, epoch: int = 0) -> PackedChanges:
        """Pack a batch for a follower."""
        return PackedChanges(pack(to_message(batch)), epoch)

    def unpacked(self) -> DeltaBatch:
        """Unpack the batch. CodecError for anything else."""
        return from_wire(DeltaBatch, unpack(self.data, typed=True))


@dataclass(frozen=True, slots=True)
class ChangesApplied:
    """Follower → cache: changes were received.

    receives_requests: schedulers send requests to this worker now, so that the next changes
    should be sent without delay.
    """

    receives_requests: bool = False


CHANGES_APPLIED = ChangesApplied()


STORAGE = "storage"
"""The kind of a change of claims and volumes."""

VERSION = "version"
"""The kind of a change that sets the version of a node's row."""


def nodes_batch(
    first_seq: int,
    nodes: NodeList,
    new_arrivals: NDArray[np.int64],
    partitions: tuple[int, ...] = (),
) -> DeltaBatch:
    """Return the batch that streams new nodes. new_arrivals: int64[node]."""
    empty_column: tuple[()] = ()
    return DeltaBatch(
        first_seq,
        *(empty_column,) * 6,
        new_nodes=nodes,
        new_arrivals=new_arrivals.tobytes(),
        partitions=partitions,
    )


APPLY = method("apply", PackedChanges, ChangesApplied)
SCORE = method("score", ScoreRequest, ScoreAnswer)
"""Scheduler → worker: evaluate pod classes with the user's plugins, on the worker's nodes."""
RANK = method("rank", RankRequest, RankAnswer)
"""Scheduler → worker: list the best of the worker's nodes for pod classes."""
