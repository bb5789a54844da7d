"""A run in steps: nodes and pods are added and removed while the schedulers work.

    begin ─► add_nodes, submit ─► commits, state ─► submit more, delete, remove_nodes ─► …

In `actors/runs/client.py` all inputs are given at the start; here the caller chooses each next
step. Each change is sent to the binder first, because a replaced cache is restored from the binder.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from roadstead.actors.interface import NOTHING, A, Method, Q, RunFailedError
from roadstead.actors.messages import (
    ADD_NODES,
    ADD_PENDING,
    COMMITS,
    PENDING,
    QUEUE_STATE,
    RUN,
    SUBMIT,
    ActorStatus,
    CommitPage,
    PageRequest,
    PodList,
    QueueStatus,
    RunningPods,
    Submitted,
    node_batch,
    pod_list,
)
from roadstead.actors.messages.changes import (
    DELETE_PODS,
    OBSERVE,
    REMOVE_DELETED,
    REMOVE_NODES,
    UPDATE_PODS,
    UPDATE_RUNNING,
    ClusterChanges,
    NodeNames,
)
from roadstead.actors.messages.recovery import REMOVE_PODS, PodRemoval
from roadstead.actors.names import BINDER, CACHE, QUEUE, SCHEDULER
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.queue.reports import NodeChange, PendingReason, PodChange
from roadstead.run import RunPlan

PODS_PER_MESSAGE = 5_000
"""Pods in one message."""

CLASSES_PER_MESSAGE = 32
"""Maximum number of pod classes in one message of submitted pods, unless a batch is larger. Binder
and queue need about 60 µs to decode each, and handle no other message meanwhile. Each pod with
claims of its own is a class.
"""

NODES_PER_MESSAGE = 20_000
"""Nodes in one message."""

SAME_CLOCK_S = 0.5
"""Clocks that differ by less are regarded as one: the difference may be the delay of a message."""


class RunSession:
    """The actors of a run, and changes of the cluster step by step."""

    def __init__(self, supervisor: Supervisor, plan: RunPlan) -> None:
        self.supervisor = supervisor
        self.plan = plan
        # Number of the last removal or change (`roadstead/revisions.py`).
        self._revision = 0

    async def call(self, name: str, method: Method[Q, A], message: Q) -> A:
        """Send a message to an actor and return the answer."""
        timeout_s = self.plan.settings.deadlines.call_s
        return await self.supervisor.refs[name].call(method, message, timeout_s=timeout_s)

    async def begin(self) -> None:
        """Start the schedulers."""
        for name in self.supervisor.refs:
            if name.startswith(SCHEDULER):
                await self.call(name, RUN, NOTHING)

    async def add_nodes(self, nodes: Sequence[NodeFacts], *, notify_queue: bool = True) -> None:
        """Add nodes. notify_queue: whether the queue may requeue pods for them."""
        for start in range(0, len(nodes), NODES_PER_MESSAGE):
            part = node_batch(nodes[start : start + NODES_PER_MESSAGE], self._revision)
            await self.call(BINDER, ADD_NODES, part)
            await self.call(CACHE, ADD_NODES, part)
            if notify_queue:
                changes = tuple(NodeChange(old=None, new=facts) for facts in part.nodes)
                await self.call(QUEUE, OBSERVE, ClusterChanges(changes))

    async def remove_nodes(self, nodes: Sequence[NodeFacts]) -> None:
        """Remove nodes; their pods stay bound to them."""
        self._revision += 1
        removed = NodeNames(tuple(facts.name for facts in nodes), self._revision)
        await self.call(BINDER, REMOVE_NODES, removed)
        await self.call(CACHE, REMOVE_NODES, removed)
        changes = tuple(NodeChange(old=facts, new=None) for facts in nodes)
        await self.call(QUEUE, OBSERVE, ClusterChanges(changes))

    async def submit(self, batch: PodList) -> None:
        """Submit pods. RunFailedError if the queue has no room for all of them."""
        # At least as many as a batch has pods: else a lease could find too few for a full batch.
        classes_max = max(CLASSES_PER_MESSAGE, self.plan.settings.batch)
        for part in replace(batch, revision=self._revision).split(classes_max):
            await self.call(BINDER, ADD_PENDING, part)
            await self._enqueue(part)

    async def _enqueue(self, batch: PodList) -> None:
        answer = await self.call(QUEUE, SUBMIT, replace(batch, revision=self._revision))
        check_accepted(answer, self.plan)

    async def update_pods(self, changes: Sequence[tuple[PodIdentity, PodFacts, PodFacts]]) -> None:
        """Change pods (identity, old facts, new facts), bound or pending, except deleted ones.

        RunFailedError if the queue has no room for the pending ones.
        """
        self._revision += 1
        for start in range(0, len(changes), PODS_PER_MESSAGE):
            # By UID: (identity, old facts, new facts).
            change_of = {
                who.uid: (who, old, new)
                for who, old, new in changes[start : start + PODS_PER_MESSAGE]
            }
            changed_pods = pod_list(
                ((who, new) for who, _, new in change_of.values()), self._revision
            )
            page = await self.call(BINDER, UPDATE_PODS, changed_pods)
            node_of = dict(zip(page.pods.uids, page.nodes, strict=True))
            bound = [uid for uid, node_name in node_of.items() if node_name]
            pods = pod_list(
                ((change_of[uid][0], change_of[uid][2]) for uid in bound), self._revision
            )
            nodes = tuple(node_of[uid] for uid in bound)
            await self.call(CACHE, UPDATE_RUNNING, RunningPods(pods, nodes))
            waiting = [uid for uid, node_name in node_of.items() if not node_name]
            if waiting:
                # Before `OBSERVE`, which must not requeue these pods with their old facts.
                await self._enqueue(
                    pod_list((change_of[uid][0], change_of[uid][2]) for uid in waiting)
                )
            changed = tuple(PodChange(*change_of[uid][1:]) for uid in bound)
            await self.call(QUEUE, OBSERVE, ClusterChanges(pods=changed))

    async def delete_pods(self, uids: Sequence[str]) -> None:
        """Delete pods, bound or pending; unknown ones are ignored."""
        self._revision += 1
        for start in range(0, len(uids), PODS_PER_MESSAGE):
            part = PodRemoval(tuple(uids[start : start + PODS_PER_MESSAGE]), self._revision)
            removed = await self.call(BINDER, DELETE_PODS, part)
            await self.call(CACHE, REMOVE_PODS, PodRemoval(removed.uids, removed.revision))
            await self.call(QUEUE, REMOVE_DELETED, removed)

    async def state(self) -> QueueStatus:
        """Return the number of pods in each part of the queue."""
        return await self.call(QUEUE, QUEUE_STATE, NOTHING)

    async def commits(self, start: int, count: int = PODS_PER_MESSAGE) -> CommitPage:
        """Return binds from index `start`; times are of this process's clock (`time.monotonic`)."""
        sent_s = time.monotonic()
        page = await self.call(BINDER, COMMITS, PageRequest(start, count))
        # The binder reads its clock about half-way between request and answer.
        offset_s = (sent_s + time.monotonic()) / 2 - page.now_s
        if abs(offset_s) < SAME_CLOCK_S:
            return page
        times = tuple((n, time_s + offset_s, processor_s) for n, time_s, processor_s in page.times)
        return replace(page, times=times, now_s=page.now_s + offset_s)

    async def pending(self, count: int) -> tuple[tuple[PendingReason, ...], int]:
        """Return why the first `count` pods are pending, and how many are."""
        page = await self.call(QUEUE, PENDING, PageRequest(0, count))
        return page.pending_reasons, page.total

    async def statuses(self) -> Mapping[str, ActorStatus]:
        """Return the status of each actor."""
        return {name: await self.supervisor.statuses.last_of(name) for name in self.supervisor.refs}


def check_accepted(answer: Submitted, plan: RunPlan) -> None:
    """Raise RunFailedError if the queue had no room for all pods."""
    if answer.refused:
        raise RunFailedError(
            f"the queue is full: it refused {len(answer.refused)} pods "
            f"(bounds.queue_max_pods is {plan.settings.bounds.queue_max_pods})"
        )


def is_idle(state: QueueStatus) -> bool:
    """Whether the queue is idle: without an event, no pod will be leased."""
    return not (state.active or state.backoff or state.in_flight)
