"""BinderAnswers: what the binder answers to whoever fills new lives of other actors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from roadstead.actors.binder.outcomes import PodOutcomes
from roadstead.actors.messages import PageAsk, PodBatch, pod_batch
from roadstead.actors.messages.recovery import NodesPage, Revised, StandingPage, Words
from roadstead.binder import BinderCore, PodState
from roadstead.binder.pods import COUNTED, PodRecord
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts, PodIdentity, identity_of
from roadstead.revisions import Revisions


class BinderAnswers:
    """Reads of a binder's core, of the revisions that it knows and of the outcomes of pods."""

    def __init__(
        self,
        core: BinderCore,
        nodes_known: Revisions,
        pods_known: Revisions,
        outcomes: PodOutcomes,
    ) -> None:
        self._core, self._outcomes = core, outcomes
        self._nodes_known, self._pods_known = nodes_known, pods_known

    def revisions(self) -> Revised:
        """The last change of each node and pod that changed."""
        return Revised(self._nodes_known.all(), self._pods_known.all())

    def nodes_page(self, ask: PageAsk) -> NodesPage:
        """Nodes in the order in which they came."""
        nodes = self._core.placements.nodes
        page = [nodes[name] for name in islice(nodes, ask.start, ask.start + ask.count)]
        return NodesPage(NodeList.of(page), len(nodes), self._nodes_known.latest)

    def pods_page(self, ask: PageAsk) -> StandingPage:
        """Pods that are here, in the order in which they came."""
        pods = self._core.pods()
        page = pods[ask.start : ask.start + ask.count]
        return page_of(page, len(pods), self._pods_known.latest)

    def nodes_of(self, uids: Iterable[str]) -> Words:
        """The node of each pod: "" where it is pending, None where it is not there."""
        return Words(tuple(self.node_of(uid) for uid in uids))

    def node_of(self, uid: str) -> str | None:
        """The node of a pod: "" where it is pending, None where it is not there."""
        state, node_name = self._core.standing(uid)
        return "" if state is PodState.PENDING else node_name

    def evicted_pods(self) -> PodBatch:
        """All that was evicted.

        Of those that went too long ago, only the name is known; nobody counts them any more.
        """
        pods = [identity_of(note.uid, note.key) for note in self._outcomes.preempted]
        return pod_batch((pod, self._facts_of(pod)) for pod in pods)

    def _facts_of(self, pod: PodIdentity) -> PodFacts:
        if self._core.standing(pod.uid)[0] is PodState.UNKNOWN:
            return PodFacts(pod.namespace)
        return self._core.pod(pod.uid)[1]


def page_of(page: Sequence[PodRecord], total: int, revision: int) -> StandingPage:
    """Pods that are here, as others learn of them."""
    batch = pod_batch((identity_of(pod.uid, pod.key), pod.facts) for pod in page)
    return StandingPage(
        replace(batch, revision=revision),
        tuple(pod.node_name if pod.state in COUNTED else "" for pod in page),
        total,
        tuple(n for n, pod in enumerate(page) if pod.state in COUNTED and not pod.token),
    )
