"""The queue's record of nominations, which the cache has to agree with.

A scheduler sends a nomination to the cache before it reports it here. Where the report does not
count, since its lease had ended, the cache has a nomination that does not hold, and is sent the one
that does. While another scheduler has the pod that waits until it gives the pod back: it may send
another nomination first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.framework.hint_map import SeenEvent
from roadstead.queue.core import QueueCore
from roadstead.queue.events import PodEvents
from roadstead.queue.pods import PodState, Requeue
from roadstead.queue.reports import GivenBack

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SendNominations:
    """Cache: these pods are nominated to these nodes, "" for none. Answer: the time."""

    pods: Sequence[Pod]
    nodes: Sequence[str]


QueueSteps: TypeAlias = Generator[SendNominations, object, T]
"""What is to be sent to the cache, one after another, and a result; see `roadstead.cycle.needs`."""


@dataclass(frozen=True, slots=True)
class NominatedPods:
    """pods: nominated, each to the node at its place. none: asked about, and not nominated."""

    pods: tuple[Pod, ...]
    nodes: tuple[str, ...]
    none: tuple[str, ...]


class QueueNominations:
    """The nominations that hold. happened: hands events to the core.

    _wrong_at_cache: pod → node that was sent to the cache, and does not hold here.
    """

    def __init__(
        self,
        core: QueueCore[SeenEvent],
        events: PodEvents,
        happened: Callable[[Sequence[SeenEvent], float], None],
    ) -> None:
        self._core, self._events, self._happened = core, events, happened
        self._wrong_at_cache: dict[str, str] = {}

    def losing(self, back: Sequence[Requeue]) -> dict[str, PodFacts]:
        """Pods that are nominated to a node, and are given back nominated to another one or none.

        Upstream: hasNominatedNodeNameChanged in pkg/scheduler/eventhandlers.go.
        """
        sent = {each.uid: each.nominated_node for each in back if each.nominated_node is not None}
        known = {uid: facts for uid in sent if (facts := self._core.facts_of(uid)) is not None}
        return {
            uid: facts
            for uid, facts in known.items()
            if facts.nominated_node_name not in ("", sent[uid])
        }

    def send_changes(self) -> QueueSteps[None]:
        """Send the nominations that ceased or began to hold room.

        They cease where another pod preempts, which the cache may have received in another order,
        and where the pod is gated; they begin when it is gated no more.
        """
        while cleared := self._core.take_cleared():
            pods = [(pod.identity, pod.facts) for pod in cleared]
            now_s = yield from sent(pods, [""] * len(pods))
            self._happened(self._events.gone(facts for _, facts in pods), now_s)
        released = [(pod.identity, pod.facts) for pod in self._core.take_released()]
        if released:
            yield from sent(released, [facts.nominated_node_name for _, facts in released])

    def note_stale(self, back: Sequence[GivenBack], stale: Sequence[str]) -> None:
        """The reports of these pods do not count; the cache has their nominations."""
        at_cache = {e.uid: e.nominated_node for e in back if e.nominated_node is not None}
        self._wrong_at_cache |= {uid: at_cache[uid] for uid in stale if uid in at_cache}

    def send_corrections(self) -> QueueSteps[None]:
        """Send the nominations that hold in place of those that do not.

        The room that these kept until now may help other pods.
        """
        final = {
            uid: node for uid, node in self._wrong_at_cache.items() if not self._is_leased(uid)
        }
        known = [(uid, facts) for uid in final if (facts := self._core.facts_of(uid)) is not None]
        # A report that only came twice is no news.
        wrong = [(uid, facts) for uid, facts in known if facts.nominated_node_name != final[uid]]
        if wrong:
            pods = [(PodIdentity(uid, of.namespace, uid), of) for uid, of in wrong]
            now_s = yield from sent(pods, [facts.nominated_node_name for _, facts in wrong])
            kept = [facts for uid, facts in wrong if final[uid]]
            self._happened(self._events.gone(kept), now_s)
        for uid, node_name in final.items():
            if self._wrong_at_cache.get(uid) == node_name:
                del self._wrong_at_cache[uid]

    def nominated(self, uids: Sequence[str]) -> NominatedPods:
        """Nominated pods, and those of `uids` that are not; leased pods are left out."""
        named = [pod for pod in self._core.nominations() if not self._is_leased(pod.identity.uid)]
        known = {pod.identity.uid for pod in named}
        return NominatedPods(
            tuple((pod.identity, pod.facts) for pod in named),
            tuple(pod.facts.nominated_node_name for pod in named),
            tuple(uid for uid in uids if uid not in known and not self._is_leased(uid)),
        )

    def _is_leased(self, uid: str) -> bool:
        return self._core.state_of(uid) is PodState.IN_FLIGHT


def sent(pods: Sequence[Pod], nodes: Sequence[str]) -> QueueSteps[float]:
    """The time once the cache has received these nominations."""
    answer = yield SendNominations(pods, nodes)
    assert isinstance(answer, float), f"nominations are answered with {answer!r}"
    return answer
