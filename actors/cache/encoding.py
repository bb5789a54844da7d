"""ChangeEncoder: changes of the cluster as the batches that followers are sent."""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.actors.cache.row_versions import KnownVersions, version_batch
from roadstead.actors.cache.volumes import CacheVolumes
from roadstead.actors.messages import STORAGE, ClassColumn, DeltaBatch, nodes_batch
from roadstead.actors.messages.recovery import PAGE
from roadstead.cache import CacheCore
from roadstead.facts.node_list import NodeList
from roadstead.nodes.partitioning import Partitioning
from roadstead.nodes.table import NodeTable
from roadstead.placements import Delta, DeltaKind
from roadstead.storage import StorageChange


class ChangeEncoder:
    """Adds to a change what only the cache's actor knows: partitions, arrivals, keys, start times.

    table: the core's. versions: of the nodes' rows. started_s: pod UID → start time, of pods that
    ran before.
    """

    def __init__(
        self, core: CacheCore, table: NodeTable, volumes: CacheVolumes, partitioning: Partitioning
    ) -> None:
        self._core, self._table, self._volumes = core, table, volumes
        self._partitioning = partitioning
        self.versions = KnownVersions()
        self.started_s: dict[str, float] = {}

    def node_removed(self, name: str) -> None:
        """A node is gone, with its partition and the version of its row."""
        self._partitioning.remove(name)
        self.versions.drop(name)

    def nodes(self, first_seq: int, nodes: NodeList) -> DeltaBatch:
        """The last nodes of the table, which no follower knows."""
        arrivals = self._table.arrivals[-len(nodes) :]
        self._partitioning.deal(nodes)
        return nodes_batch(first_seq, nodes, arrivals, self._parts_of(nodes.names))

    def _parts_of(self, node_names: Sequence[str]) -> tuple[int, ...]:
        """The partition of each node; () where the nodes are not partitioned."""
        if len(self._partitioning.sizes) == 1:
            return ()
        return tuple(map(self._partitioning.partition_of, node_names))

    def deltas(self, first_seq: int, deltas: Sequence[Delta]) -> DeltaBatch:
        """Changes of nodes, pods and nominations."""
        nodes = [delta.node for delta in deltas if delta.node is not None]
        arrival = self._table.arrivals
        classes, places = ClassColumn(), {id(None): -1}
        for known, facts in {id(delta.pod): delta.pod for delta in deltas}.items():
            if facts is not None:
                classes.add(facts)
                places[known] = classes.column[-1]
        return DeltaBatch(
            first_seq,
            kinds=tuple(str(delta.kind) for delta in deltas),
            names=tuple(delta.node_name for delta in deltas),
            pods=tuple([places[id(delta.pod)] for delta in deltas]),
            classes=classes.table,
            nodes=tuple(nodes),
            arrivals=tuple(int(arrival[self._table.row_of(facts.name)]) for facts in nodes),
            uids=tuple(delta.uid for delta in deltas),
            partitions=self._parts_of([facts.name for facts in nodes]),
            keys=self._keys_of(deltas),
            started_s=tuple(
                (place, self.started_s[delta.uid])
                for place, delta in enumerate(deltas)
                if delta.kind is DeltaKind.ADD_POD and delta.uid in self.started_s
            ),
        )

    def _keys_of(self, deltas: Sequence[Delta]) -> tuple[str, ...]:
        """The names of pods that come, where they are other texts than the UIDs."""
        coming, key_of = DeltaKind.ADD_POD, self._core.key_of
        keys = [key_of(each.uid) if each.kind is coming else "" for each in deltas]
        return tuple([k if k != d.uid else "" for k, d in zip(keys, deltas, strict=True)])

    def everything(self, seq: int) -> list[DeltaBatch]:
        """The cluster as batches, numbered so that the last change bears the number `seq`."""
        deltas, changes = self._core.snapshot(), tuple(self._volumes.log)
        rows = self.versions.among(self._core.placements.nodes)
        first_seq = seq - len(deltas) - len(changes) - len(rows) + 1
        parts = [storage_batch(first_seq, changes)]
        first_seq += len(changes)
        for start in range(0, len(deltas), PAGE):
            parts.append(self.deltas(first_seq + start, deltas[start : start + PAGE]))
        return [*parts, version_batch(first_seq + len(deltas), rows)]


def storage_batch(first_seq: int, changes: Sequence[StorageChange]) -> DeltaBatch:
    """Changes of claims and volumes as they are streamed."""
    return DeltaBatch(
        first_seq,
        kinds=(STORAGE,) * len(changes),
        names=("",) * len(changes),
        pods=(-1,) * len(changes),
        classes=(),
        nodes=(),
        arrivals=(),
        changes=tuple(changes),
    )
