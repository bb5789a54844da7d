"""ChangeEncoder: encodes changes of the cluster as batches for followers."""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.actors.messages import STORAGE, VERSION, ClassColumn, DeltaBatch, nodes_batch
from roadstead.actors.messages.recovery import PAGE
from roadstead.cache import ClusterState
from roadstead.cache.row_versions import RowVersion
from roadstead.facts.node_list import NodeList
from roadstead.placements import Delta, DeltaKind
from roadstead.storage import StorageChange


class ChangeEncoder:
    """Encoder of changes. It adds fields that only the cache has.

    Of nodes: partitions and arrival numbers, the order in which the cache received them. Of pods:
    keys (namespace/name) and start times.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state, self._core, self._table = state, state.core, state.table

    def nodes(self, first_seq: int, nodes: NodeList) -> DeltaBatch:
        """Encode new nodes, which are the last rows of the table."""
        arrivals = self._table.arrivals[-len(nodes) :]
        return nodes_batch(first_seq, nodes, arrivals, self._partitions_of(nodes.names))

    def _partitions_of(self, node_names: Sequence[str]) -> tuple[int, ...]:
        """Return the partition of each node; () without partitions."""
        partitioning = self._state.partitioning
        if len(partitioning.sizes) == 1:
            return ()
        return tuple(map(partitioning.partition_of, node_names))

    def deltas(self, first_seq: int, deltas: Sequence[Delta]) -> DeltaBatch:
        """Encode changes of nodes, pods and nominations."""
        nodes = [delta.node for delta in deltas if delta.node is not None]
        arrivals, started_s = self._table.arrivals, self._state.started_s
        # By `id` of a pod's facts, which pods of one class share: the index in `classes.table`.
        classes, indices = ClassColumn(), {id(None): -1}
        for pod_id, facts in {id(delta.pod): delta.pod for delta in deltas}.items():
            if facts is not None:
                # Appends the index of the class to `column`.
                classes.add(facts)
                indices[pod_id] = classes.column[-1]
        return DeltaBatch(
            first_seq,
            kinds=tuple(str(delta.kind) for delta in deltas),
            names=tuple(delta.node_name for delta in deltas),
            pods=tuple([indices[id(delta.pod)] for delta in deltas]),
            classes=classes.table,
            nodes=tuple(nodes),
            arrivals=tuple(int(arrivals[self._table.row_of(facts.name)]) for facts in nodes),
            uids=tuple(delta.uid for delta in deltas),
            partitions=self._partitions_of([facts.name for facts in nodes]),
            keys=self._keys_of(deltas),
            started_s=tuple(
                (index, started_s[delta.uid])
                for index, delta in enumerate(deltas)
                if delta.kind is DeltaKind.ADD_POD and delta.uid in started_s
            ),
        )

    def _keys_of(self, deltas: Sequence[Delta]) -> tuple[str, ...]:
        """Return the key of each added pod; "" if it equals the UID, and for other changes."""
        added, key_of = DeltaKind.ADD_POD, self._core.key_of
        keys = [key_of(each.uid) if each.kind is added else "" for each in deltas]
        pairs = zip(keys, deltas, strict=True)
        return tuple([key if key != each.uid else "" for key, each in pairs])

    def cluster_state(self, seq: int) -> list[DeltaBatch]:
        """Encode the whole cluster as batches, numbered so that `seq` is the last number."""
        deltas, changes = self._core.snapshot(), tuple(self._state.volumes.log)
        rows = self._state.versions.of(self._core.placements.nodes)
        first_seq = seq - len(deltas) - len(changes) - len(rows) + 1
        parts = [storage_batch(first_seq, changes)]
        first_seq += len(changes)
        for start in range(0, len(deltas), PAGE):
            parts.append(self.deltas(first_seq + start, deltas[start : start + PAGE]))
        return [*parts, version_batch(first_seq + len(deltas), rows)]


def storage_batch(first_seq: int, changes: Sequence[StorageChange]) -> DeltaBatch:
    """Encode changes of claims and volumes."""
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


def version_batch(first_seq: int, rows: Sequence[RowVersion]) -> DeltaBatch:
    """Encode new versions of rows."""
    return DeltaBatch(
        first_seq,
        kinds=(VERSION,) * len(rows),
        names=tuple(name for name, _ in rows),
        pods=(-1,) * len(rows),
        classes=(),
        nodes=(),
        arrivals=(),
        versions=tuple(version for _, version in rows),
    )
