"""ClusterState: the cache's state of the cluster; only `SchedulerCache` changes it."""

from __future__ import annotations

from dataclasses import dataclass, field

from roadstead.cache.core import CacheCore
from roadstead.cache.pods import CacheSettings
from roadstead.cache.row_versions import KnownVersions
from roadstead.cache.volumes import CacheVolumes
from roadstead.nodes.partitioning import Partitioning, partitioning_over
from roadstead.nodes.table import NodeTable
from roadstead.placements import TableStore
from roadstead.revisions import Revisions
from roadstead.storage import BindingProfiles, StorageState


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Nodes, pods, claims and their versions.

    table: node table of `core`. volumes: claims and volumes, also claims of devices. partitioning:
    node name → partition. versions: of rows. node_revisions, pod_revisions: which messages about a
    node or pod are outdated (`roadstead.revisions`). started_s: pod UID → start time (seconds since
    1970) of pods that ran before the run.
    """

    core: CacheCore
    table: NodeTable
    volumes: CacheVolumes
    partitioning: Partitioning
    versions: KnownVersions = field(default_factory=KnownVersions)
    node_revisions: Revisions = field(default_factory=Revisions)
    pod_revisions: Revisions = field(default_factory=Revisions)
    started_s: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def empty(
        storage: StorageState,
        binding: BindingProfiles,
        settings: CacheSettings | None = None,
        *,
        partitions: int = 1,
        awaits_commits: bool = False,
    ) -> ClusterState:
        """Return the state of a cluster without nodes.

        storage: its claims. binding: the profiles whose pods bind claims. awaits_commits: this
        state replaces that of a lost cache, so changes of claims by earlier commits follow
        (`CacheVolumes.load`). partitions: number of node partitions.
        """
        store = TableStore()
        return ClusterState(
            CacheCore(store, settings),
            store.table,
            CacheVolumes(storage, binding, awaits_commits=awaits_commits),
            partitioning_over(partitions),
        )
