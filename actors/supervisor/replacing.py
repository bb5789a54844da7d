"""What is replaced together, how often, and how new lives are filled from what is known elsewhere.

    gone        replaced                     filled from
    binder      binder                       its journal
    worker      worker                       the cache
    scheduler   scheduler                    the cache; the binder says how its attempts ended
    queue       queue, schedulers            the binder: pods that wait
    cache       cache, workers, schedulers   the binder: nodes, bound pods, bound claims

Actors of one process are replaced together. What only the lost one knew (leases, assumptions,
nominations, why pods are pending) is found anew: pods that wait are tried again.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from roadstead.actors.messages import (
    ADD_NODES,
    ADD_RUNNING,
    BOUND,
    NOMINATE,
    REPORT,
    SUBMIT,
    LeaseReport,
    Nominations,
    PageAsk,
    RunningPods,
    node_batch,
    pod_batch,
)
from roadstead.actors.messages.changes import OBSERVE, ClusterChanges
from roadstead.actors.messages.recovery import (
    ASSUMED_BY,
    BOUND_MEMBERS,
    EVICTED_PAGE,
    FENCE_OWNER,
    GONE,
    LEASED_TO,
    NODES_PAGE,
    NOMINATED,
    OWNER_ENDS,
    PAGE,
    RESTORED,
    RESTREAM,
    REVISIONS,
    STANDING,
    STANDING_PAGE,
    STORAGE_LOG,
    TAKE_REVISIONS,
    TAKE_STORAGE,
    Owner,
    OwnerEnds,
    PodsGone,
    Restored,
    Restream,
    StandingPage,
    Uids,
)
from roadstead.actors.names import (
    BINDER,
    CACHE,
    QUEUE,
    SCHEDULER,
    WORKER,
    follower_names,
    scheduler_name,
)
from roadstead.actors.seam import NOTHING, A, DeadlineError, Method, Q, Ref, RunFailedError
from roadstead.config.settings import Settings
from roadstead.facts.pod import Pod
from roadstead.facts.pod_groups import group_key

TRIES = 4
"""How often a new life is told what it needs, before it is replaced by another one."""


@dataclass(frozen=True, slots=True)
class Restart:
    """One replacement: who was gone, how long the run waited."""

    gone: tuple[str, ...]
    took_s: float


def in_gangs(pods: Iterable[Pod]) -> list[Pod]:
    """Those of the pods that are members of some gang."""
    return [pod for pod in pods if group_key(pod[1]) is not None]


class Budget:
    """How often an actor may be replaced: `TIMES` in any `WINDOW_S`."""

    TIMES = 5
    WINDOW_S = 60.0

    def __init__(self) -> None:
        self._taken: dict[str, deque[float]] = {}

    def take(self, name: str, now_s: float) -> bool:
        """Whether it may be replaced now, which then counts."""
        taken = self._taken.setdefault(name, deque())
        while taken and taken[0] <= now_s - self.WINDOW_S:
            taken.popleft()
        if len(taken) >= self.TIMES:
            return False
        taken.append(now_s)
        return True


def rests_on(gone: Iterable[str], hosts: Mapping[str, set[str]]) -> set[str]:
    """All that is replaced with actors that are gone. hosts: process → the actors in it."""
    everyone = {name for names in hosts.values() for name in names}
    found, before = set(gone), set[str]()
    while found != before:
        before = set(found)
        for together in hosts.values():
            found |= together if together & found else set()
        kinds = ((CACHE, (WORKER, SCHEDULER)), (QUEUE, (SCHEDULER,)))
        for lost, resting in kinds:
            if lost in found:
                found |= {name for name in everyone if name.startswith(resting)}
    return found


class Refill:
    """Tells new lives what they need to know. refs: to the present lives of all."""

    def __init__(
        self, refs: Mapping[str, Ref], epochs: Mapping[str, int], settings: Settings
    ) -> None:
        self._refs = refs
        self._epochs = epochs
        self._settings = settings

    async def fill(self, names: set[str]) -> None:
        """Everyone of these goes on afterwards, schedulers when they are told to run."""
        everyone = [scheduler_name(index) for index in range(self._settings.scheduler_count)]
        for name in everyone if BINDER in names else sorted(names.intersection(everyone)):
            await self._tell(BINDER, FENCE_OWNER, Owner(name, self._epochs[name]))
        if CACHE in names:
            await self._fill_cache()
        for name in sorted(names.intersection(follower_names(self._settings))):
            await self._tell(CACHE, RESTREAM, Restream(name, self._epochs[name]))
        if QUEUE in names:
            await self._fill_queue()
        if names.intersection(everyone):
            await self._tell_of_evictions(names)
        for name in sorted(names.intersection(everyone)):
            await self._end_owner(name)
        if names.intersection(everyone):
            await self._agree_on_nominations()

    async def _tell(self, name: str, method: Method[Q, A], message: Q) -> A:
        """The reply; told again where none comes in time, since what it waits for may be slow."""
        timeout_s = self._settings.deadlines.call_s
        for _ in range(TRIES - 1):
            with contextlib.suppress(DeadlineError):
                return await self._refs[name].call(method, message, timeout_s=timeout_s)
        return await self._refs[name].call(method, message, timeout_s=timeout_s)

    async def _fill_cache(self) -> None:
        await self._tell(CACHE, TAKE_STORAGE, await self._tell(BINDER, STORAGE_LOG, NOTHING))
        await self._tell(CACHE, TAKE_REVISIONS, await self._tell(BINDER, REVISIONS, NOTHING))
        start, total = 0, 1
        while start < total:
            page = await self._tell(BINDER, NODES_PAGE, PageAsk(start, PAGE))
            await self._tell(CACHE, ADD_NODES, node_batch(page.nodes, page.revision))
            start, total = start + PAGE, page.total
        async for standing in self._standing():
            pods = list(zip(standing.pods.pods(), standing.nodes, strict=True))
            bound = [(pod, node) for pod, node in pods if node]
            batch = pod_batch((pod for pod, _ in bound), standing.pods.revision)
            await self._tell(CACHE, ADD_RUNNING, RunningPods(batch, tuple(n for _, n in bound)))

    async def _fill_queue(self) -> None:
        async for standing in self._standing():
            pods = list(zip(standing.pods.pods(), standing.nodes, strict=True))
            ran = set(standing.ran)
            bound = [pod for n, (pod, node) in enumerate(pods) if node and n not in ran]
            if members := in_gangs(bound):
                revision = standing.pods.revision
                await self._tell(QUEUE, BOUND_MEMBERS, pod_batch(members, revision))
            waiting = pod_batch((pod for pod, node in pods if not node), standing.pods.revision)
            answer = await self._tell(QUEUE, SUBMIT, waiting)
            if answer.refused:
                raise RunFailedError(
                    f"the queue that took the place of another one is full "
                    f"(bounds.queue_max_pods: {self._settings.bounds.queue_max_pods}): it refused "
                    f"{len(answer.refused)} pods that had been accepted. The run ends here."
                )
        done = await self._tell(BINDER, BOUND, PageAsk(0, 0))
        await self._tell(QUEUE, RESTORED, Restored(done.total))

    async def _standing(self) -> AsyncIterator[StandingPage]:
        start, total = 0, 1
        while start < total:
            page = await self._tell(BINDER, STANDING_PAGE, PageAsk(start, PAGE))
            yield page
            start, total = start + PAGE, page.total

    async def _tell_of_evictions(self, names: set[str]) -> None:
        """A scheduler that evicted pods may have ended before it said so."""
        gone = await self._tell(BINDER, EVICTED_PAGE, NOTHING)
        if not gone.uids:
            return
        if CACHE not in names:
            await self._tell(CACHE, GONE, PodsGone(gone.uids))
        if QUEUE not in names:
            await self._tell(QUEUE, REPORT, LeaseReport(0, (), (), (), gone))

    async def _end_owner(self, name: str) -> None:
        """A scheduler's earlier lives are over. A new cache or queue is asked, too: between its
        start and its fence a message of an earlier life may have come to it."""
        owner = Owner(name, self._epochs[name])
        # The cache first: what it frees is there before the queue wakes others for it.
        for keeper, ask in ((CACHE, ASSUMED_BY), (QUEUE, LEASED_TO)):
            held = await self._tell(keeper, ask, owner)
            nodes = await self._words(held.uids)
            await self._tell(keeper, OWNER_ENDS, OwnerEnds(owner, held.uids, nodes))

    async def _agree_on_nominations(self) -> None:
        """The queue says who is nominated; a scheduler may have ended before it told both."""
        held = await self._tell(CACHE, NOMINATED, Uids(()))
        node_of = dict(zip(held.pods.uids, held.nodes, strict=True))
        said = await self._tell(QUEUE, NOMINATED, Uids(held.pods.uids))
        news = [
            (pod, node)
            for pod, node in zip(said.pods.pods(), said.nodes, strict=True)
            if node_of.get(pod[0].uid) != node
        ]
        over = [pod for pod in held.pods.pods() if pod[0].uid in said.none]
        told = [*news, *((pod, "") for pod in over)]
        if told:
            pods, nodes = pod_batch(pod for pod, _ in told), tuple(node for _, node in told)
            await self._tell(CACHE, NOMINATE, Nominations(pods, nodes, (False,) * len(told)))
        if over:
            # What was kept for them is free.
            await self._tell(QUEUE, OBSERVE, ClusterChanges(gone=pod_batch(over)))

    async def _words(self, uids: Sequence[str]) -> tuple[str | None, ...]:
        """What the binder says of pods."""
        nodes: list[str | None] = []
        for start in range(0, len(uids), PAGE):
            asked = Uids(tuple(uids[start : start + PAGE]))
            nodes += (await self._tell(BINDER, STANDING, asked)).nodes
        return tuple(nodes)
