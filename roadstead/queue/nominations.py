"""Nominations as the queue answers for them: it says who is nominated, and the cache must agree.

A scheduler tells the cache of a nomination before it reports it here. Where the report does not
count, since the lease was over, the cache was told in vain and hears what holds. While another
scheduler has the pod that waits until it gives it back: it may tell of another nomination first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework.hint_map import SeenEvent
from roadstead.queue.core import QueueCore
from roadstead.queue.events import PodEvents
from roadstead.queue.pods import PodState, Requeue
from roadstead.queue.reports import GivenBack

T = TypeVar("T")
Pod = tuple[PodIdentity, PodFacts]


@dataclass(frozen=True, slots=True)
class TellCache:
    """The cache is to hear to which nodes pods are nominated, "" for none any more."""

    pods: Sequence[Pod]
    nodes: Sequence[str]


Telling: TypeAlias = Generator[TellCache, float, T]
"""What the cache is to hear, one after another; each is answered, once it has, with the time."""


@dataclass(frozen=True, slots=True)
class NominatedPods:
    """pods: nominated, each to the node at its place. none: asked about, and not nominated."""

    pods: tuple[Pod, ...]
    nodes: tuple[str, ...]
    none: tuple[str, ...]


class Nominations:
    """The nominations that hold. happened: hands events to the core.

    _in_vain: pod → node of which the cache was told so.
    """

    def __init__(
        self,
        core: QueueCore[SeenEvent],
        events: PodEvents,
        happened: Callable[[Sequence[SeenEvent], float], None],
    ) -> None:
        self._core, self._events, self._happened = core, events, happened
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

    def tell(self) -> Telling[None]:
        """The nominations that ceased or began to hold room.

        They cease where another pod preempts, of which the cache may have heard in another order,
        and where the pod is gated; they begin when it is gated no more.
        """
        while cleared := self._core.take_cleared():
            pods = [(pod.identity, pod.facts) for pod in cleared]
            now_s = yield TellCache(pods, [""] * len(pods))
            self._happened(self._events.gone(facts for _, facts in pods), now_s)
        released = [(pod.identity, pod.facts) for pod in self._core.take_released()]
        if released:
            yield TellCache(released, [facts.nominated_node_name for _, facts in released])

    def not_heard(self, back: Sequence[GivenBack], stale: Sequence[str]) -> None:
        """What was reported of these pods does not count; the cache was told of it."""
        told = {each.uid: each.nominated_node for each in back if each.nominated_node is not None}
        self._in_vain |= {uid: told[uid] for uid in stale if uid in told}

    def say_what_holds(self) -> Telling[None]:
        """Who is nominated of those of whom the cache was told something else.

        What was kept for them until now may help others.
        """
        settled = {uid: node for uid, node in self._in_vain.items() if not self._is_lent(uid)}
        known = [(uid, facts) for uid in settled if (facts := self._core.facts_of(uid)) is not None]
        # A report that only came twice is no news.
        wrong = [(uid, of) for uid, of in known if of.nominated_node_name != settled[uid]]
        if wrong:
            pods = [(PodIdentity(uid, of.namespace, uid), of) for uid, of in wrong]
            now_s = yield TellCache(pods, [of.nominated_node_name for _, of in wrong])
            kept = [of for uid, of in wrong if settled[uid]]
            self._happened(self._events.gone(kept), now_s)
        for uid, node_name in settled.items():
            if self._in_vain.get(uid) == node_name:
                del self._in_vain[uid]

    def nominated(self, uids: Sequence[str]) -> NominatedPods:
        """Who is nominated, and who of those asked about is not; lent pods are left out."""
        named = [pod for pod in self._core.nominations() if not self._is_lent(pod.identity.uid)]
        known = {pod.identity.uid for pod in named}
        return NominatedPods(
            tuple((pod.identity, pod.facts) for pod in named),
            tuple(pod.facts.nominated_node_name for pod in named),
            tuple(uid for uid in uids if uid not in known and not self._is_lent(uid)),
        )

    def _is_lent(self, uid: str) -> bool:
        return self._core.state_of(uid) is PodState.IN_FLIGHT
