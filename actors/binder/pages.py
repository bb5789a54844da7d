"""BinderPages: answers to requests that read a binder's state, page by page."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from roadstead.actors.messages import (
    BoundPage,
    ClaimsPage,
    CommitPage,
    PageRequest,
    PodList,
    PreemptedPage,
    pod_list,
)
from roadstead.actors.messages.recovery import LastRevisions, NodesPage, PodsPage
from roadstead.binder.binder import Binder
from roadstead.binder.pods import COUNTED, BinderRecord, KeyedPod
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import identity_of


class BinderPages:
    """Pages of a binder's pods, nodes, commits and claims."""

    def __init__(self, binder: Binder) -> None:
        self._binder = binder

    def revisions(self) -> LastRevisions:
        """Return the last revision (`roadstead/revisions.py`) of each node and pod that changed."""
        nodes, pods = self._binder.node_revisions, self._binder.pod_revisions
        return LastRevisions(nodes.all(), pods.all(), pods.gone())

    def nodes_page(self, request: PageRequest) -> NodesPage:
        """Return nodes in the order in which they were added."""
        nodes = self._binder.core.placements.nodes
        page = [nodes[name] for name in islice(nodes, request.start, request.start + request.count)]
        return NodesPage(NodeList.of(page), len(nodes), self._binder.node_revisions.latest)

    def pods_page(self, request: PageRequest) -> PodsPage:
        """Return pods that exist, in the order in which they were added."""
        pods = self._binder.core.pods.present
        page = list(islice(pods.values(), request.start, request.start + request.count))
        return pods_page_of(page, len(pods), self._binder.pod_revisions.latest)

    def bound_page(self, request: PageRequest) -> BoundPage:
        """Return committed binds in commit order."""
        bound = self._binder.outcomes.bound
        page = list(islice(bound.items(), request.start, request.start + request.count))
        uids, nodes = tuple(uid for uid, _ in page), tuple(node for _, node in page)
        return BoundPage(uids, nodes, len(bound))

    def preempted_page(self, request: PageRequest) -> PreemptedPage:
        """Return evicted pods in the order of their eviction."""
        evicted = self._binder.outcomes.removed
        return PreemptedPage(
            tuple(evicted[request.start : request.start + request.count]), len(evicted)
        )

    def claims_page(self, request: PageRequest) -> ClaimsPage:
        """Return claims of devices, in the order in which they were added."""
        claims = self._binder.volumes.device_claims
        page = islice(claims.values(), request.start, request.start + request.count)
        return ClaimsPage(tuple(page), len(claims))

    def commits_page(self, request: PageRequest) -> CommitPage:
        """Return the times at which binds were acknowledged."""
        commits = self._binder.commits
        uids, times = commits.page(request.start, request.count)
        now_s, processor_s = time.monotonic(), time.process_time()
        return CommitPage(tuple(uids), tuple(times), commits.total, now_s, processor_s)


def pods_page_of(page: Sequence[BinderRecord], total: int, revision: int) -> PodsPage:
    """Return a page of pods with their nodes as a message. total: pods of all pages."""
    pods = pod_list((identity_of(pod.uid, pod.key), pod.facts) for pod in page)
    return PodsPage(
        replace(pods, revision=revision),
        tuple(pod.node_name if pod.state in COUNTED else "" for pod in page),
        total,
        # A pod that is counted on a node without an attempt ran from the start.
        tuple(n for n, pod in enumerate(page) if pod.state in COUNTED and not pod.token),
    )


def keyed_pod_list(pods: Iterable[KeyedPod], revision: int = 0) -> PodList:
    """Return pods as a message, in order."""
    return pod_list(((identity_of(uid, key), facts) for uid, key, facts in pods), revision)
