"""TrustedCommits: the binder of a simulated run, which commits every bind.

One scheduler in one thread reads the state that its binds change, so no bind can conflict, and
nothing must survive the process: this binder has no table, no checks and no journal. A live run has
`roadstead.binder.binder.Binder` instead; tests compare the placements of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from roadstead.binder import BindRequest
from roadstead.binder.pods import Bound, CommitResult, KeyedPod
from roadstead.facts.node_list import NodeList
from roadstead.storage.claim_messages import AttemptBindings


class TrustedCommits:
    """Pods that are pending or bound, and the binds and evictions since they were last read.

    evict_other: evicts a pod that is not stored here, and returns it; None if there is none. bound:
    nodes by UID. A `KeyedPod` is (UID, namespace/name, facts).
    """

    def __init__(self, evict_other: Callable[[str], KeyedPod | None]) -> None:
        self._evict_other = evict_other
        self.bound: dict[str, str] = {}
        self._pods: dict[str, KeyedPod] = {}
        # Since the last `pop_bound` and `pop_evicted`: (UID, node), (UID, key of the preemptor).
        self._new_binds: list[tuple[str, str]] = []
        self._evicted: list[tuple[str, str]] = []

    @property
    def outcomes(self) -> TrustedCommits:
        """The object with `bound`: in `Binder` a part of it, here this object."""
        return self

    def add_nodes(self, nodes: NodeList) -> None:
        """Do nothing: only a check of binds needs nodes."""

    def remove_nodes(self, names: Iterable[str]) -> None:
        """Do nothing; see `add_nodes`."""

    def add_running(self, pods: Iterable[KeyedPod], node_names: Iterable[str]) -> None:
        """Add bound pods."""
        for pod, node_name in zip(pods, node_names, strict=True):
            self._pods[pod[0]] = pod
            self.bound[pod[0]] = node_name

    def add_pending(self, pods: Sequence[KeyedPod]) -> None:
        """Add pods that may be bound from now on."""
        self._pods.update((pod[0], pod) for pod in pods)

    def delete_pods(self, uids: Iterable[str]) -> list[KeyedPod]:
        """Remove pods, bound or not; return those that were stored."""
        removed = [pod for uid in uids if (pod := self._pods.pop(uid, None)) is not None]
        for uid, _, _ in removed:
            self.bound.pop(uid, None)
        return removed

    def bind(
        self, requests: Sequence[BindRequest], volumes: Sequence[AttemptBindings] = ()
    ) -> Mapping[str, CommitResult]:
        """Bind pods; return the decisions by token."""
        for each in requests:
            assert each.uid in self._pods, f"{each.key} is bound without being pending"
            self.bound[each.uid] = each.node_name
            self._new_binds.append((each.uid, each.node_name))
        # Without a journal there are no record numbers, and no versions that could conflict.
        return {each.token: Bound(each.uid, each.node_name, lsn=0, version=0) for each in requests}

    def evict(self, uids: Sequence[str], preemptors: Sequence[str]) -> list[KeyedPod]:
        """Remove pods, each for a preemptor; return those that were found."""
        removed: list[KeyedPod] = []
        for uid, preemptor in zip(uids, preemptors, strict=True):
            other = None if uid in self._pods else self._evict_other(uid)
            evicted = [other] if other is not None else self.delete_pods([uid])
            self._evicted += [(uid, preemptor) for _ in evicted]
            removed += evicted
        return removed

    def deallocate(self, claims: Sequence[tuple[str, str]]) -> None:
        """Do nothing: the cache alone has the claims of a simulated run."""

    def pop_bound(self) -> list[tuple[str, str]]:
        """Return the pods bound since the last call, with their nodes, in commit order."""
        new_binds, self._new_binds = self._new_binds, []
        return new_binds

    def pop_evicted(self) -> list[tuple[str, str]]:
        """Return the pods evicted since the last call, with the keys of their preemptors."""
        evicted, self._evicted = self._evicted, []
        return evicted
