"""LocalNodes: the node table of a scheduler in one process with its cache, which sends all changes.

SchedulerCache ── Changes ──► LocalNodes ──► node table
                                 └── Tentative: placements decided here, which are on it already

With `conflicts: version` the binder refuses a pod whose node's row has a newer version than the one
that the decision read. The version of a row is the number of the journal record that changed it.
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.cache import ClusterState
from roadstead.cache.row_versions import KnownVersions, RowVersion
from roadstead.config.settings import Settings
from roadstead.cycle.batch import Decision
from roadstead.cycle.tentative import Tentative
from roadstead.facts.node_list import NodeList
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.placements import Delta, DeltaKind
from roadstead.storage import StorageChange


class LocalNodes:
    """A table with the contents of `state` and the placements that were decided on it since."""

    def __init__(self, state: ClusterState, classes: PodClasses, settings: Settings) -> None:
        self.table = NodeTable(classes)
        self.tentative = Tentative(self.table)
        self._state = state
        self._checks_versions = settings.conflicts == "version"
        self._versions = KnownVersions()

    def hold(self) -> None:
        """Do nothing: in one thread, no change of the cache arrives while a batch is decided."""

    def release(self) -> None:
        """Do nothing; see `hold`."""

    def row_versions(self, decisions: Sequence[Decision]) -> dict[str, int] | None:
        """Return the versions of the rows on which pods are placed; None if none are compared."""
        if not self._checks_versions:
            return None
        placed = {each.node_name for each in decisions if each.node_name is not None}
        return dict(self._versions.of(placed))

    # The changes of the cache.

    def send(self, deltas: Sequence[Delta]) -> None:
        """Apply changes of nodes, pods and nominations."""
        if deltas and all(each.kind is DeltaKind.ADD_POD for each in deltas):
            self._add_pods(deltas)
            return
        for delta in deltas:
            if delta.kind is DeltaKind.ADD_POD:
                self._add_pods([delta])
            elif delta.pod is not None:
                self._change_pod(delta)
            elif delta.node is not None:
                self._change_node(delta)
            else:
                self.table.remove_node(delta.node_name)
                self.tentative.node_removed(delta.node_name)
                self._versions.drop(delta.node_name)

    def _add_pods(self, deltas: Sequence[Delta]) -> None:
        """Add pods, each once; those that were decided here are on the table already."""
        table, pod_class = self.table, self.table.classes.pod_class
        names, uids = [each.node_name for each in deltas], [each.uid for each in deltas]
        pod_classes = [pod_class(each.pod) for each in deltas if each.pod is not None]
        key_of, started_s = self._state.core.key_of, self._state.started_s
        for index in self.tentative.confirm(uids, names, pod_classes):
            uid, since_s = uids[index], started_s.get(uids[index])
            table.add_pod(
                names[index], pod_classes[index], uid=uid, key=key_of(uid), started_s=since_s
            )

    def _change_pod(self, delta: Delta) -> None:
        assert delta.pod is not None, f"{delta.kind} is about a pod"
        name, uid, pod_class = delta.node_name, delta.uid, self.table.classes.pod_class(delta.pod)
        if delta.kind is DeltaKind.NOMINATE:
            self.tentative.nominate(uid, name, pod_class)
        elif delta.kind is DeltaKind.WITHDRAW:
            self.tentative.withdraw(uid, name, pod_class)
        # A pod that is a victim, or was decided again, is removed from the table already.
        elif not self.tentative.forget_removal(uid, name):
            self.table.remove_pod(name, pod_class, uid=uid)

    def _change_node(self, delta: Delta) -> None:
        assert delta.node is not None, f"{delta.kind} is about a node"
        if delta.kind is DeltaKind.UPDATE_NODE:
            self.table.update_node(delta.node)
            return
        self.table.add_node(delta.node)

    def send_nodes(self, nodes: NodeList) -> None:
        """Add nodes that are new."""
        self.table.add_nodes(nodes)

    def send_storage(self, changes: Sequence[StorageChange]) -> None:
        """Do nothing: a scheduler receives changes of claims with the next answer of the cache."""

    def send_versions(self, rows: Sequence[RowVersion]) -> None:
        """Store new versions of rows."""
        self._versions.record(rows)
