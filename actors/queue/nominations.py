"""Nominations as the queue answers for them: it says who is nominated, and the cache must agree.

A scheduler tells the cache of a nomination before it reports it here. Where the report does not
count, since the lease was over, the cache was told in vain and hears what holds. While another
scheduler has the pod that waits until it gives it back: it may tell of another nomination first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roadstead.actors.messages import NOMINATE, Nominations, pod_batch
from roadstead.actors.messages.recovery import Nominated, Uids
from roadstead.actors.queue.events import PodEvents
from roadstead.actors.seam import Ref, clock_s
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework.hint_map import SeenEvent
from roadstead.queue import PodState, QueueCore, Requeue
from roadstead.queue.reports import GivenBack
from roadstead.run import Pod


class NominationSync:
    """Sends the cache the nominations that hold. cache: where it is now; happened: hands events
    to the core.

    _in_vain: pod → node of which the cache was told so.
    """

    def __init__(
        self,
        core: QueueCore[SeenEvent],
        events: PodEvents,
        happened: Callable[[Sequence[SeenEvent], float], None],
        cache: Callable[[], Ref],
        call_s: float,
    ) -> None:
        self._core, self._events, self._happened = core, events, happened
        self._cache, self._call_s = cache, call_s
        self._in_vain: dict[str, str] = {}

    @property
    def is_settled(self) -> bool:
        """Whether nobody is left of whom the cache was told something in vain."""
        return not self._in_vain

    def losing(self, back: Sequence[Requeue]) -> dict[str, PodFacts]:
        """Pods that are nominated to a node, and are given back nominated to another one or none.

        Upstream: hasNominatedNodeNameChanged in pkg/scheduler/eventhandlers.go.
        """
        told = {each.uid: each.nominated_node for each in back if each.nominated_node is not None}
        known = {uid: facts for uid in told if (facts := self._core.facts_of(uid)) is not None}
        return {
            uid: facts
            for uid, facts in known.items()
            if facts.nominated_node_name not in ("", told[uid])
        }

    async def tell(self) -> None:
        """Send the cache the nominations that ceased or began to hold room.

        They cease where another pod preempts, of which the cache may have heard in another order,
        and where the pod is gated; they begin when it is gated no more.
        """
        while cleared := self._core.take_cleared():
            pods = [(pod.identity, pod.facts) for pod in cleared]
            await self._say(pods, [""] * len(pods))
            self._happened(self._events.gone(facts for _, facts in pods), clock_s())
        released = [(pod.identity, pod.facts) for pod in self._core.take_released()]
        await self._say(released, [facts.nominated_node_name for _, facts in released])

    def not_heard(self, back: Sequence[GivenBack], stale: Sequence[str]) -> None:
        """What was reported of these pods does not count; the cache was told of it."""
        told = {each.uid: each.nominated_node for each in back if each.nominated_node is not None}
        self._in_vain |= {uid: told[uid] for uid in stale if uid in told}

    async def say_what_holds(self) -> None:
        """The cache hears who is nominated of those of whom it was told something else.

        What was kept for them until now may help others.
        """
        settled = {uid: node for uid, node in self._in_vain.items() if not self._is_lent(uid)}
        known = [(uid, facts) for uid in settled if (facts := self._core.facts_of(uid)) is not None]
        # A report that only came twice is no news.
        wrong = [(uid, of) for uid, of in known if of.nominated_node_name != settled[uid]]
        pods = [(PodIdentity(uid, of.namespace, uid), of) for uid, of in wrong]
        await self._say(pods, [of.nominated_node_name for _, of in wrong])
        kept = [of for uid, of in wrong if settled[uid]]
        self._happened(self._events.gone(kept), clock_s())
        for uid, node_name in settled.items():
            if self._in_vain.get(uid) == node_name:
                del self._in_vain[uid]

    async def _say(self, pods: Sequence[Pod], nodes: Sequence[str]) -> None:
        """Tells the cache of nominations."""
        if not pods:
            return
        told = Nominations(pod_batch(pods), tuple(nodes), (False,) * len(pods))
        await self._cache().call(NOMINATE, told, timeout_s=self._call_s)

    def nominated(self, ask: Uids) -> Nominated:
        """Who is nominated, and who of those asked about is not; lent pods are left out."""
        named = [pod for pod in self._core.nominations() if not self._is_lent(pod.identity.uid)]
        known = {pod.identity.uid for pod in named}
        none = [uid for uid in ask.uids if uid not in known and not self._is_lent(uid)]
        return Nominated(
            pod_batch((pod.identity, pod.facts) for pod in named),
            tuple(pod.facts.nominated_node_name for pod in named),
            tuple(none),
        )

    def _is_lent(self, uid: str) -> bool:
        return self._core.state_of(uid) is PodState.IN_FLIGHT
