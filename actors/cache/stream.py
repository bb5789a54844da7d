"""ChangeStream: numbers the cache's changes and sends them to all followers.

change ──► number ──► every follower that is filled, workers through their `WorkerFeed`
                          scheduler does not answer ──► `lost`: nothing more is sent
                          worker does not answer ──► not filled: changes are only numbered,
                                                     and it is filled again after a pause
fill ──► the whole cluster state ──► filled: later changes follow

A `WorkerFeed` joins the changes for an idle worker, so that fewer messages are sent; a worker whose
fills fail again and again is left behind (`WorkerRefill`): it is not filled until it is replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from roadstead.actors.cache.encoding import ChangeEncoder, storage_batch, version_batch
from roadstead.actors.cache.refill import WorkerRefill
from roadstead.actors.cache.worker_feed import Joiner, WorkerFeed
from roadstead.actors.interface import Directory, Ref, ResendingRef
from roadstead.actors.logs import log
from roadstead.actors.messages import APPLY, DeltaBatch, PackedChanges
from roadstead.actors.messages.recovery import RESTORE, Restore, Restream
from roadstead.actors.names import CACHE, WORKER, follower_names
from roadstead.cache.row_versions import RowVersion
from roadstead.facts.node_list import NodeList
from roadstead.placements import Delta
from roadstead.protocol.errors import RoadsteadError
from roadstead.run import RunPlan
from roadstead.storage import StorageChange


class ChangeStream:
    """The cache's output of changes (protocol `Changes`): sends them to followers.

    seq: number of the last change. lost: failure of a scheduler that did not apply a change; "" for
    none. unfilled: followers that receive nothing until `fill`. is_new: the cache replaces another
    one, and all its followers are unfilled.
    """

    def __init__(
        self, plan: RunPlan, directory: Directory, encoder: ChangeEncoder, *, is_new: bool = False
    ) -> None:
        self._directory = directory
        self._call_s = plan.settings.deadlines.call_s
        self._encoder = encoder
        self.followers = follower_names(plan.settings)
        self._refs: dict[str, Ref] = {}
        self.seq = 0
        self.lost = ""
        self.unfilled = {*self.followers} if is_new else set()
        # By follower: the epoch of its incarnation, and the last change in its last fill. `_feeds`
        # has only workers.
        self._epochs = dict.fromkeys(self.followers, plan.first_epoch)
        self._filled_to = dict.fromkeys(self.followers, 0)
        self.refill = WorkerRefill(self._fill_again, self.unfilled.__contains__)
        # Joins the waiting changes of a worker to one batch, shared by the workers' feeds.
        self._join = Joiner()
        self._feeds = {name: self._feed(name) for name in self.followers if name.startswith(WORKER)}
        self._last_packed: tuple[DeltaBatch, bytes] | None = None
        self._to_schedulers: set[asyncio.Task[None]] = set()
        self._to_workers: set[asyncio.Task[None]] = set()

    def _feed(self, name: str) -> WorkerFeed:
        return WorkerFeed(partial(self._start_sending, name), self._join)

    def _follow(self, name: str) -> None:
        """Add a worker that was started after the cache; a run never gets more schedulers."""
        assert name.startswith(WORKER), name
        self.followers.append(name)
        self._epochs[name] = 0
        self._feeds[name] = self._feed(name)

    async def flush(self) -> None:
        """Wait until every scheduler answered all changes, or failed to.

        RoadsteadError if a scheduler was lost before the call; a loss during the wait is raised by
        the next call.
        """
        self._raise_if_lost()
        await asyncio.gather(*self._to_schedulers)

    def send(self, deltas: Sequence[Delta]) -> None:
        """Send deltas without waiting for the replies. RoadsteadError if a scheduler is lost."""
        self._raise_if_lost()
        if deltas:
            self._publish(self._encoder.deltas(self.seq + 1, deltas))

    def send_nodes(self, nodes: NodeList) -> None:
        """Send new nodes, all in one batch."""
        self._publish(self._encoder.nodes(self.seq + 1, nodes))

    def send_storage(self, changes: Sequence[StorageChange]) -> None:
        """Send changes of claims and volumes."""
        if changes:
            self._publish(storage_batch(self.seq + 1, changes))

    def send_versions(self, rows: Sequence[RowVersion]) -> None:
        """Send new versions of rows, after the changes that the versions include."""
        if rows:
            self._publish(version_batch(self.seq + 1, rows))

    def _raise_if_lost(self) -> None:
        if self.lost:
            raise RoadsteadError(self.lost)

    def _publish(self, batch: DeltaBatch) -> None:
        """Count the changes of a batch, and start to send it to all filled followers."""
        self.seq += batch.count
        # Schedulers receive changes of claims and volumes in the answers to their requests.
        to_schedulers = batch.without_storage_contents()
        for name in self.followers:
            if name in self.unfilled:
                continue
            if name in self._feeds:
                self._feeds[name].add(batch)
            else:
                self._start_sending(name, to_schedulers)

    def _start_sending(self, name: str, batch: DeltaBatch) -> None:
        # `flush` does not wait for workers: decisions do not depend on them.
        tasks = self._to_workers if name in self._feeds else self._to_schedulers
        changes = PackedChanges(self._packed(batch), self._epochs[name])
        task = asyncio.create_task(self._send(name, changes, batch.first_seq + batch.count - 1))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _packed(self, batch: DeltaBatch) -> bytes:
        """Return a packed batch; it is packed once for all followers."""
        if self._last_packed is None or self._last_packed[0] is not batch:
            self._last_packed = batch, PackedChanges.of(batch).data
        return self._last_packed[1]

    async def _send(self, name: str, changes: PackedChanges, last_seq: int) -> None:
        try:
            answer = await self._follower(name).call(APPLY, changes, timeout_s=self._call_s)
        except RoadsteadError as failure:
            if name in self._feeds:
                self._handle_missed(name, last_seq, failure)
                return
            self.lost = f"{name} no longer applies changes: {failure}"
            return
        if name in self._feeds:
            # A worker that schedulers send requests to is sent each change at once.
            self._feeds[name].receives_requests = answer.receives_requests

    def _handle_missed(self, name: str, seq: int, failure: RoadsteadError) -> None:
        """Begin to fill a worker again that did not answer a change.

        Do nothing if a later fill contained the change, or if the worker is unfilled already: then
        its fill is under way, or it was left behind and must not be filled again.
        """
        if seq <= self._filled_to[name] or name in self.unfilled:
            return
        self._mark_unfilled(name)
        log(CACHE, "worker missed a change", worker=name, seq=seq, why=str(failure))
        self.refill.begin(name)

    async def _fill_again(self, name: str) -> None:
        epoch = self._epochs[name]
        try:
            await self.fill(Restream(name, epoch))
        except RoadsteadError:
            # If the supervisor has replaced the worker, another fill restores the new one.
            if self._epochs[name] == epoch:
                self._mark_unfilled(name)
            raise

    async def fill(self, request: Restream) -> None:
        """Send the whole cluster state to a follower, perhaps a new one; later changes follow."""
        if request.follower not in self._epochs:
            self._follow(request.follower)
        # No `await` up to the sends: changes after `seq` are sent to the follower from here on, so
        # that none is missed between its fill and the stream.
        self._drop_waiting(request.follower)
        self.unfilled.discard(request.follower)
        self._epochs[request.follower] = max(request.epoch, self._epochs[request.follower])
        self._filled_to[request.follower] = self.seq
        batches = self._encoder.cluster_state(self.seq)
        messages = [
            Restore(self.seq, part=number, parts=len(batches), batch=batch, epoch=request.epoch)
            for number, batch in enumerate(batches)
        ]
        follower = self._follower(request.follower)
        sends = [
            asyncio.ensure_future(follower.call(RESTORE, message, timeout_s=self._call_s))
            for message in messages
        ]
        try:
            await asyncio.gather(*sends)
        finally:
            # After a failure, no other part is resent: the next fill sends them all.
            for send in sends:
                send.cancel()

    def _mark_unfilled(self, name: str) -> None:
        self._drop_waiting(name)
        self.unfilled.add(name)

    def _drop_waiting(self, name: str) -> None:
        """Drop a worker's waiting changes; its next fill contains them."""
        if name in self._feeds:
            self._feeds[name].drop()

    def _follower(self, name: str) -> Ref:
        if name not in self._refs:
            self._refs[name] = ResendingRef(self._directory.find(name))
        return self._refs[name]

    def cancel_all(self) -> None:
        """Cancel all sends and fills."""
        for task in (*self._to_schedulers, *self._to_workers):
            task.cancel()
        for feed in self._feeds.values():
            feed.drop()
        self.refill.cancel_all()
