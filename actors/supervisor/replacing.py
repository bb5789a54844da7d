"""Replacement of actors: which are replaced together, how often, and how their state is restored.

    lost        replaced                     state restored from
    binder      binder                       its journal
    worker      worker                       the cache
    scheduler   scheduler                    the cache; how its attempts ended: the binder
    queue       queue, schedulers            the binder: pending pods
    cache       cache, workers, schedulers   the binder: nodes, bound pods, bound claims
    copy        copy                         the journal, which the binder sends again

Actors of one process are replaced together. State that only the lost actor had (leases,
assumptions, nominations, the reasons of pending pods) is computed again: pending pods are tried
again.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from roadstead.actors.interface import NOTHING, A, DeadlineError, Method, Q, Ref, RunFailedError
from roadstead.actors.messages import (
    ADD_NODES,
    ADD_RUNNING,
    BOUND,
    NOMINATE,
    REPORT,
    SUBMIT,
    LeaseReport,
    NominateBatch,
    PageRequest,
    RunningPods,
    node_batch,
    pod_list,
)
from roadstead.actors.messages.changes import OBSERVE, ClusterChanges
from roadstead.actors.messages.journal_copy import PAIR_AGAIN
from roadstead.actors.messages.recovery import (
    ASSUMED_BY,
    BOUND_MEMBERS,
    END_OWNER,
    EVICTED_PODS,
    FENCE_OWNER,
    LEASED_TO,
    LOAD_STORAGE,
    MERGE_REVISIONS,
    NODES_PAGE,
    NOMINATED,
    PAGE,
    POD_NODES,
    PODS_PAGE,
    REMOVE_PODS,
    RESTORED,
    RESTREAM,
    REVISIONS,
    STORAGE_LOG,
    EndOwner,
    NodesPage,
    OwnerEpoch,
    PodRemoval,
    PodsPage,
    Restored,
    Restream,
    Uids,
)
from roadstead.actors.names import (
    BINDER,
    CACHE,
    JOURNAL_COPY,
    QUEUE,
    SCHEDULER,
    WORKER,
    follower_names,
    scheduler_name,
)
from roadstead.config.settings import Settings
from roadstead.facts.pod import Pod
from roadstead.facts.pod_groups import group_key

SENDS_TO_NEW = 4
"""How many times a message is sent during a replacement before the replacement is repeated."""


PageT = TypeVar("PageT", NodesPage, PodsPage)
"""A page that names the start of the next one."""


@dataclass(frozen=True, slots=True)
class Restart:
    """One replacement. gone: the lost actors. took_s: how long the run waited."""

    gone: tuple[str, ...]
    took_s: float


def in_gangs(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that belong to a gang."""
    return [(identity, facts) for identity, facts in pods if group_key(facts) is not None]


class Budget:
    """Limit of replacements of each actor: `TIMES` in any `WINDOW_S`.

    _times: when each actor was replaced within the last window.
    """

    TIMES = 5
    WINDOW_S = 60.0

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}

    def acquire(self, name: str, now_s: float) -> bool:
        """Count a replacement and return True, or return False if the limit is reached."""
        times = self._times.setdefault(name, deque())
        while times and times[0] <= now_s - self.WINDOW_S:
            times.popleft()
        if len(times) >= self.TIMES:
            return False
        times.append(now_s)
        return True


def actors_to_replace(
    lost_actors: Iterable[str], actors_of_process: Mapping[str, set[str]]
) -> set[str]:
    """Return all actors to replace if some are lost."""
    everyone = {name for names in actors_of_process.values() for name in names}
    chosen, before = set(lost_actors), set[str]()
    while chosen != before:
        before = set(chosen)
        for colocated in actors_of_process.values():
            chosen |= colocated if colocated & chosen else set()
        dependents_of = ((CACHE, (WORKER, SCHEDULER)), (QUEUE, (SCHEDULER,)))
        for lost, dependents in dependents_of:
            if lost in chosen:
                chosen |= {name for name in everyone if name.startswith(dependents)}
    return chosen


class Refill:
    """Restore the state of new incarnations. refs, epochs: of all actors, by name."""

    def __init__(
        self, refs: Mapping[str, Ref], epochs: Mapping[str, int], settings: Settings
    ) -> None:
        self._refs = refs
        self._epochs = epochs
        self._settings = settings

    async def fill(self, names: set[str]) -> None:
        """Restore the state of these actors. Schedulers decide nothing before they receive RUN."""
        schedulers = [scheduler_name(index) for index in range(self._settings.scheduler_count)]
        if JOURNAL_COPY in names:
            # First of all: the binder's other answers wait for the copy.
            await self._call(BINDER, PAIR_AGAIN, NOTHING)
        # Fence, so that the binder refuses earlier epochs, before asking how old attempts ended: no
        # attempt may commit after that answer (docs/decisions/0014). If the binder is new, fence
        # all schedulers: it may have no record of a scheduler's epoch, and would accept the first
        # epoch that it receives.
        for name in schedulers if BINDER in names else sorted(names.intersection(schedulers)):
            await self._call(BINDER, FENCE_OWNER, OwnerEpoch(name, self._epochs[name]))
        if CACHE in names:
            await self._fill_cache()
        # Schedulers and workers, which receive the cache's changes.
        for name in sorted(names.intersection(follower_names(self._settings))):
            await self._call(CACHE, RESTREAM, Restream(name, self._epochs[name]))
        if QUEUE in names:
            await self._fill_queue()
        if names.intersection(schedulers):
            await self._send_evictions(names)
        for name in sorted(names.intersection(schedulers)):
            await self._end_owner(name)
        if names.intersection(schedulers):
            await self._reconcile_nominations()

    async def _call(self, name: str, method: Method[Q, A], message: Q) -> A:
        """Send a message, again after a missed deadline (`SENDS_TO_NEW`); return the reply."""
        timeout_s = self._settings.deadlines.call_s
        for _ in range(SENDS_TO_NEW - 1):
            with contextlib.suppress(DeadlineError):
                return await self._refs[name].call(method, message, timeout_s=timeout_s)
        return await self._refs[name].call(method, message, timeout_s=timeout_s)

    async def _fill_cache(self) -> None:
        # The changes of claims and volumes by commits, in order.
        await self._call(CACHE, LOAD_STORAGE, await self._call(BINDER, STORAGE_LOG, NOTHING))
        await self._call(CACHE, MERGE_REVISIONS, await self._call(BINDER, REVISIONS, NOTHING))
        async for page in self._pages(NODES_PAGE):
            # page.revision: the highest one that the binder has recorded for any node.
            await self._call(CACHE, ADD_NODES, node_batch(page.nodes, page.revision))
        async for pod_page in self._pages(PODS_PAGE):
            pods = list(zip(pod_page.pods.pods(), pod_page.nodes, strict=True))
            bound = [(pod, node) for pod, node in pods if node]
            batch = pod_list((pod for pod, _ in bound), pod_page.pods.revision)
            await self._call(CACHE, ADD_RUNNING, RunningPods(batch, tuple(n for _, n in bound)))

    async def _fill_queue(self) -> None:
        async for pod_page in self._pages(PODS_PAGE):
            pods = list(zip(pod_page.pods.pods(), pod_page.nodes, strict=True))
            # By index in the page: these pods have a node but were not bound by the run.
            running_at_start = set(pod_page.ran)
            bound = [
                pod for n, (pod, node) in enumerate(pods) if node and n not in running_at_start
            ]
            # The queue counts the bound members of gangs.
            if members := in_gangs(bound):
                revision = pod_page.pods.revision
                await self._call(QUEUE, BOUND_MEMBERS, pod_list(members, revision))
            waiting = pod_list((pod for pod, node in pods if not node), pod_page.pods.revision)
            answer = await self._call(QUEUE, SUBMIT, waiting)
            if answer.refused:
                raise RunFailedError(
                    f"the queue that took the place of another one is full "
                    f"(bounds.queue_max_pods: {self._settings.bounds.queue_max_pods}): it refused "
                    f"{len(answer.refused)} pods that had been accepted. The run ends here."
                )
        # An empty page, for its total: the queue's status reports bound pods as done.
        empty_page = await self._call(BINDER, BOUND, PageRequest(start=0, count=0))
        await self._call(QUEUE, RESTORED, Restored(done=empty_page.total))

    async def _pages(self, method: Method[PageRequest, PageT]) -> AsyncIterator[PageT]:
        page = await self._call(BINDER, method, PageRequest(0, PAGE))
        yield page
        while page.next_start:
            page = await self._call(BINDER, method, PageRequest(page.next_start, PAGE))
            yield page

    async def _send_evictions(self, names: set[str]) -> None:
        """Send evicted and deleted pods to cache and queue, unless these are new.

        A lost scheduler may have evicted pods without reporting it.
        """
        evicted = await self._call(BINDER, EVICTED_PODS, NOTHING)
        if not evicted.uids:
            return
        if CACHE not in names:
            await self._call(CACHE, REMOVE_PODS, PodRemoval(evicted.uids))
        if QUEUE not in names:
            # A report without a lease: evicted pods need not be leased.
            report = LeaseReport(
                lease_id=0, bound=(), returned=(), pending_reasons=(), evicted=evicted
            )
            await self._call(QUEUE, REPORT, report)

    async def _end_owner(self, name: str) -> None:
        """End a scheduler's earlier incarnations at cache and queue.

        A cache or queue that was replaced too is included: between its start and the fence, it may
        have received a message of an earlier incarnation of the scheduler.
        """
        owner = OwnerEpoch(name, self._epochs[name])
        # The cache first: it frees resources before the queue requeues pods for them.
        for actor, list_owned in ((CACHE, ASSUMED_BY), (QUEUE, LEASED_TO)):
            owned = await self._call(actor, list_owned, owner)
            nodes = await self._nodes_of(owned.uids)
            await self._call(actor, END_OWNER, EndOwner(owner, owned.uids, nodes))

    async def _reconcile_nominations(self) -> None:
        """Make the cache's nominations those of the queue.

        They differ if a scheduler ended after it had reported a nomination to one of them only.
        """
        # The cache returns all of its nominations, whatever is requested. So does the queue, except
        # for leased pods; it also returns which requested pods have no nomination.
        nominated = await self._call(CACHE, NOMINATED, Uids(()))
        node_of = dict(zip(nominated.pods.uids, nominated.nodes, strict=True))
        answer = await self._call(QUEUE, NOMINATED, Uids(nominated.pods.uids))
        changed_nominations = [
            (pod, node)
            for pod, node in zip(answer.pods.pods(), answer.nodes, strict=True)
            if node_of.get(pod[0].uid) != node
        ]
        # answer.none: the requested pods without a nomination at the queue.
        ended = [pod for pod in nominated.pods.pods() if pod[0].uid in answer.none]
        changed = [*changed_nominations, *((pod, "") for pod in ended)]
        if changed:
            pods, nodes = pod_list(pod for pod, _ in changed), tuple(node for _, node in changed)
            # Without victims: the scheduler that preempts sends nominations with victims.
            batch = NominateBatch(pods, nodes, preempts=(False,) * len(changed))
            await self._call(CACHE, NOMINATE, batch)
        if ended:
            # The resources that were reserved for these pods are free.
            await self._call(QUEUE, OBSERVE, ClusterChanges(gone=pod_list(ended)))

    async def _nodes_of(self, uids: Sequence[str]) -> tuple[str | None, ...]:
        """Return the node of each pod at the binder: "" if pending, None if unknown or deleted."""
        nodes: list[str | None] = []
        for start in range(0, len(uids), PAGE):
            uids_of_page = Uids(tuple(uids[start : start + PAGE]))
            nodes += (await self._call(BINDER, POD_NODES, uids_of_page)).nodes
        return tuple(nodes)
