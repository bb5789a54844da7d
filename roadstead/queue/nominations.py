"""QueueNominations: keeps the nominations at the cache equal to those of the queue.

A scheduler sends a nomination to the cache before it reports it to the queue. If the report is
stale, because the lease had ended, the cache has a nomination that the queue does not have: the
queue sends the correct one. If the pod is leased again at that time, the correction is sent when it
returns, as the scheduler may send another nomination first. Nominations that the cache did not
acknowledge are sent again with these corrections.

A nomination reserves resources on its node. When it ends, the events are those of a pod that left
the node.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.framework.hint_map import OccurredEvent
from roadstead.queue.core import QueueCore
from roadstead.queue.events import PodEvents
from roadstead.queue.pods import QueueState, Requeue
from roadstead.queue.reports import ReturnedPod

T = TypeVar("T")
"""Result of the steps."""


@dataclass(frozen=True, slots=True)
class SendNominations:
    """Command to send nominations of pods to nodes ("" for none) to the cache. Answer: the time."""

    pods: Sequence[Pod]
    nodes: Sequence[str]


QueueSteps: TypeAlias = Generator[SendNominations, object, T]
"""Commands for the cache, in order, and a result; as in `roadstead.cycle.needs`."""


@dataclass(frozen=True, slots=True)
class NominatedPods:
    """Nominated `pods` and their `nodes`, in the same order.

    none: requested UIDs of pods without a nomination.
    """

    pods: tuple[Pod, ...]
    nodes: tuple[str, ...]
    none: tuple[str, ...]


class QueueNominations:
    """The nominations in effect. handle_events: passes events to the core.

    _wrong_at_cache: UID → node of a nomination that the cache has and the queue does not.
    """

    def __init__(
        self,
        core: QueueCore[OccurredEvent],
        events: PodEvents,
        handle_events: Callable[[Sequence[OccurredEvent], float], None],
    ) -> None:
        self._core, self._events, self._handle_events = core, events, handle_events
        self._wrong_at_cache: dict[str, str] = {}

    def superseded_by(self, reports: Sequence[Requeue]) -> dict[str, PodFacts]:
        """Return the pods whose nomination to a node is replaced or cleared by these reports.

        Upstream: hasNominatedNodeNameChanged in pkg/scheduler/eventhandlers.go.
        """
        new_nodes = {
            each.uid: each.nominated_node for each in reports if each.nominated_node is not None
        }
        known = {uid: facts for uid in new_nodes if (facts := self._core.facts_of(uid)) is not None}
        return {
            uid: facts
            for uid, facts in known.items()
            if facts.nominated_node_name not in ("", new_nodes[uid])
        }

    def send_changes(self) -> QueueSteps[None]:
        """Send the nominations that ended or took effect.

        A nomination ends when a pod of higher priority preempts on that node or when the pod is
        gated; it takes effect again when the pod is no longer gated. (The cache also ends
        nominations by preemption, but may receive the nominations in another order.)
        """
        # Repeated, since the events may gate other pods, whose nominations then end as well.
        while cleared := self._core.pop_cleared():
            pods = [(pod.identity, pod.facts) for pod in cleared]
            nodes = [facts.nominated_node_name for _, facts in pods]
            now_s = yield from self._send(pods, [""] * len(pods), at_cache=nodes)
            self._handle_events(self._events.unassigned(facts for _, facts in pods), now_s)
        released = [(pod.identity, pod.facts) for pod in self._core.pop_released()]
        if released:
            nodes = [facts.nominated_node_name for _, facts in released]
            yield from self._send(released, nodes, at_cache=[""] * len(nodes))

    def _send(
        self, pods: Sequence[Pod], nodes: Sequence[str], *, at_cache: Sequence[str]
    ) -> QueueSteps[float]:
        """Send nominations; if that fails, record that the cache still has those of `at_cache`.

        at_cache: for each pod, the node of its nomination at the cache before this call; "" for
        none.
        """
        try:
            return (yield from send_nominations(pods, nodes))
        except Exception:
            self._wrong_at_cache |= {
                pod.uid: node for (pod, _), node in zip(pods, at_cache, strict=True)
            }
            raise

    def note_stale(self, returned: Sequence[ReturnedPod], stale: Sequence[str]) -> None:
        """Record the nominations of stale reports, which the cache has already."""
        at_cache = {
            each.uid: each.nominated_node for each in returned if each.nominated_node is not None
        }
        self._wrong_at_cache |= {uid: at_cache[uid] for uid in stale if uid in at_cache}

    def send_corrections(self) -> QueueSteps[None]:
        """Send the nominations in effect in place of wrong ones.

        The resources that wrong nominations reserved may help other pods.
        """
        # Not of leased pods: their scheduler may send another nomination.
        wrong_nodes = {
            uid: node for uid, node in self._wrong_at_cache.items() if not self._is_leased(uid)
        }
        known = [
            (uid, facts) for uid in wrong_nodes if (facts := self._core.facts_of(uid)) is not None
        ]
        # After a duplicate report the cache has the nomination that is in effect.
        wrong = [
            (uid, facts) for uid, facts in known if self._node_of(uid, facts) != wrong_nodes[uid]
        ]
        if wrong:
            # The cache reads only the UID of the identity, so the UID may replace the name.
            pods = [(PodIdentity(uid, facts.namespace, uid), facts) for uid, facts in wrong]
            nodes = [self._node_of(uid, facts) for uid, facts in wrong]
            now_s = yield from send_nominations(pods, nodes)
            released = [facts for uid, facts in wrong if wrong_nodes[uid]]
            self._handle_events(self._events.unassigned(released), now_s)
        for uid, node_name in wrong_nodes.items():
            # Another stale report may have replaced the entry while the cache was called.
            if self._wrong_at_cache.get(uid) == node_name:
                del self._wrong_at_cache[uid]

    def nominated(self, uids: Sequence[str]) -> NominatedPods:
        """Return the nominated pods, and which of `uids` are not nominated; no leased pods."""
        nominated = [
            pod for pod in self._core.nominations() if not self._is_leased(pod.identity.uid)
        ]
        found = {pod.identity.uid for pod in nominated}
        return NominatedPods(
            tuple((pod.identity, pod.facts) for pod in nominated),
            tuple(pod.facts.nominated_node_name for pod in nominated),
            tuple(uid for uid in uids if uid not in found and not self._is_leased(uid)),
        )

    def _node_of(self, uid: str, facts: PodFacts) -> str:
        """Return the node of the nomination in effect; "" for a gated pod."""
        is_gated = self._core.state_of(uid) is QueueState.GATED
        return "" if is_gated else facts.nominated_node_name

    def _is_leased(self, uid: str) -> bool:
        return self._core.state_of(uid) is QueueState.IN_FLIGHT


def send_nominations(pods: Sequence[Pod], nodes: Sequence[str]) -> QueueSteps[float]:
    """Send nominations to the cache; return the time after its answer."""
    answer = yield SendNominations(pods, nodes)
    assert isinstance(answer, float), f"nominations are answered with {answer!r}"
    return answer
