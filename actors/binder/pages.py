"""BinderPages: answers to requests that read a binder's state, page by page."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
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
        core = self._binder.core
        nodes = core.placements.nodes
        names, next_start = _page_of(nodes, core.nodes_removed, request)
        page = NodeList.of([nodes[name] for name in names])
        return NodesPage(page, next_start, self._binder.node_revisions.latest)

    def pods_page(self, request: PageRequest) -> PodsPage:
        """Return pods that exist, in the order in which they were added."""
        pods = self._binder.core.pods
        # `begun` counts all pods that were ever added.
        removed = pods.begun - len(pods.present)
        uids, next_start = _page_of(pods.present, removed, request)
        page = [pods.present[uid] for uid in uids]
        return pods_page_of(page, self._binder.pod_revisions.latest, next_start)

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


def _page_of(keys: Collection[str], removed: int, request: PageRequest) -> tuple[list[str], int]:
    """Return keys of a page, and the start of the next page; 0 if it is the last one.

    A start is an index plus `removed`, the number of keys that were ever removed. Each removal
    moves later keys forward by at most one, and a start back by exactly one: none is skipped.
    """
    start = max(0, request.start - removed)
    stop = start + request.count
    return list(islice(keys, start, stop)), stop + removed if stop < len(keys) else 0


def pods_page_of(page: Sequence[BinderRecord], revision: int, next_start: int = 0) -> PodsPage:
    """Return a page of pods with their nodes as a message."""
    pods = pod_list((identity_of(pod.uid, pod.key), pod.facts) for pod in page)
    return PodsPage(
        replace(pods, revision=revision),
        tuple(pod.node_name if pod.state in COUNTED else "" for pod in page),
        next_start,
        # A pod that is counted on a node without an attempt ran from the start.
        tuple(n for n, pod in enumerate(page) if pod.state in COUNTED and not pod.token),
    )


def keyed_pod_list(pods: Iterable[KeyedPod], revision: int = 0) -> PodList:
    """Return pods, each as (UID, key, facts), as a message, in order."""
    return pod_list(((identity_of(uid, key), facts) for uid, key, facts in pods), revision)
