"""SchedulerNodes: a scheduler's own table of all nodes, which the cache's change stream updates.

    catch up with the cache ──► decide: changes wait ──► apply the waiting changes
                                      ▲                     │
                                      └── decide again ◄────┘ if the state may be stale

A placement is on the table from the decision on (`tentative`); the cache's change confirms it
later. With `staleness_s` or `decision_time`, changes wait from one `catch_up` to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.actors.interface import DeadlineError
from roadstead.actors.messages import DeltaBatch
from roadstead.actors.worker.table_follower import MAX_WAITING_BATCHES, TableFollower
from roadstead.cache.row_versions import KnownVersions
from roadstead.cycle.batch import Decision
from roadstead.cycle.needs import CatchUpTimeoutError
from roadstead.cycle.tentative import Tentative
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.run import RunPlan

SPARE_NAMES = 1024
"""`partition_of` keeps removed nodes until there are this many more of them than nodes."""


class SchedulerNodes(TableFollower):
    """The node table of one scheduler, on which it decides batches.

    partition_of: node name → partition; empty unless schedulers own partitions.
    _is_deciding: a batch is being decided (between `hold` and `release`). _stays_stale: changes
    wait after a batch, too. _version_at_hold: see `known_version`. _versions: of rows, for the
    binder's check in mode `conflicts: version`.
    """

    def __init__(
        self, name: str, plan: RunPlan, classes: PodClasses, *, is_new: bool, epoch: int
    ) -> None:
        settings = plan.settings
        table, call_s = NodeTable(classes), settings.deadlines.call_s
        super().__init__(name, table, call_s, is_new=is_new, epoch=epoch)
        self._stays_stale = settings.staleness_s is not None
        # The simulated latency is between reading the state and deciding. In mode `exact` the state
        # is read after it, so that no change has to wait.
        self._has_decision_time = (
            settings.decision_time.is_positive and settings.concurrency != "exact"
        )
        self._is_deciding = False
        self._version_at_hold = 0
        self._versions = KnownVersions()
        self._checks_versions = settings.conflicts == "version"
        self.tentative = Tentative(table)
        self.partition_of: dict[str, int] = {}

    async def catch_up(self, seq: int) -> None:
        """Wait until change `seq` is applied; undo placements that the cache did not confirm.

        With `staleness_s` or `decision_time`, later changes wait from now on. Raises
        CatchUpTimeoutError if change `seq` is not received in time.
        """
        try:
            await self._wait_for(seq)
        except DeadlineError as late:
            raise CatchUpTimeoutError(str(late)) from late
        self.tentative.undo_unconfirmed()
        if len(self.partition_of) > 2 * len(self.table) + SPARE_NAMES:
            for removed_name in [
                name for name in self.partition_of if not self.table.has_node(name)
            ]:
                del self.partition_of[removed_name]
        self.is_paused = self._stays_stale or self._has_decision_time

    async def _wait_for(self, seq: int) -> None:
        if not self._is_deciding:
            await self.resume()
        await super()._wait_for(seq)

    async def receive(self, batch: DeltaBatch) -> None:
        """Receive changes; if too many wait, apply them between two batches despite the settings.

        The superclass raises an error once `MAX_WAITING_BATCHES` wait.
        """
        if not self._is_deciding and len(self._waiting_batches) >= MAX_WAITING_BATCHES // 2:
            await self.resume()
        await super().receive(batch)

    def touched_since(self, seq: int) -> set[str] | None:
        """Return the nodes whose rows may differ from those at change `seq`; None if unknown.

        Unconfirmed placements are not in the cache's changes, so their nodes are added.
        """
        names = self.touched.since(seq)
        return None if names is None else names | self.tentative.nodes()

    @property
    def known_version(self) -> int:
        """The version of the table up to which `touched_since` is complete.

        It excludes the placements of the present batch.
        """
        return self._version_at_hold if self._is_deciding else self.table.version

    async def resume(self) -> None:
        """Apply the waiting changes, and later ones as they are received."""
        self.is_paused = False
        await self._advance()

    def hold(self) -> None:
        """Begin a batch: until `release`, changes wait and only decisions change the table."""
        self._version_at_hold = self.table.version
        self.is_paused = self._is_deciding = True

    def release(self) -> None:
        """End a batch; the changes that waited are applied by `apply_waiting`."""
        self._is_deciding, self.is_paused = False, self._stays_stale

    async def apply_waiting(self) -> None:
        """Apply the changes received during a batch; with `staleness_s` they continue to wait."""
        await self._advance()

    def row_versions(self, decisions: Sequence[Decision]) -> dict[str, int] | None:
        """Return the versions of the chosen nodes' rows; None if the binder does not check them."""
        if not self._checks_versions:
            return None
        placed = {each.node_name for each in decisions if each.node_name is not None}
        return dict(self._versions.of(placed))

    def _add_new_nodes(self, batch: DeltaBatch) -> None:
        if batch.partitions:
            self.partition_of |= zip(batch.node_names(), batch.partitions, strict=True)
        super()._add_new_nodes(batch)

    def _add_pods_only(
        self, batch: DeltaBatch, pod_classes: Sequence[PodClass], start: int
    ) -> None:
        added = [pod_classes[pod] for pod in batch.pods[start:]]
        names, uids, keys = batch.names[start:], batch.uids[start:], batch.keys[start:]
        # Only the pods that are not on the table yet, as placements of this scheduler.
        if absent := self.tentative.confirm(uids, names, added):
            self._add_pods(
                [names[index] for index in absent],
                [uids[index] for index in absent],
                [keys[index] for index in absent],
                [added[index] for index in absent],
            )

    def _add_pod(
        self, name: str, pod_class: PodClass, uid: str, key: str, started_s: float | None
    ) -> None:
        # Confirm the placement; add the pod only if it is not on the table yet.
        if self.tentative.confirm([uid], [name], [pod_class]):
            super()._add_pod(name, pod_class, uid, key, started_s)

    def _remove_pod(self, name: str, pod_class: PodClass, uid: str) -> None:
        # True if this scheduler has removed the pod from its table already, as a victim perhaps.
        if not self.tentative.forget_removal(uid, name):
            super()._remove_pod(name, pod_class, uid)

    def _add_nomination(self, name: str, pod_class: PodClass, uid: str) -> None:
        self.tentative.nominate(uid, name, pod_class)

    def _remove_nomination(self, name: str, pod_class: PodClass, uid: str) -> None:
        self.tentative.withdraw(uid, name, pod_class)

    def _set_version(self, name: str, version: int) -> None:
        self._versions.record([(name, version)])

    def _remove_node(self, name: str) -> None:
        super()._remove_node(name)
        self.tentative.node_removed(name)
        self._versions.drop(name)
