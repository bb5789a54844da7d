"""Commits: what a run in one process needs of a binder.

A `KeyedPod` is a pod as (UID, key, facts), its key namespace/name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from roadstead.binder import BindRequest
from roadstead.binder.pods import CommitResult, KeyedPod
from roadstead.facts.node_list import NodeList
from roadstead.storage.claim_messages import AttemptBindings


class Outcomes(Protocol):
    """The bound pods: uid → node, in commit order."""

    @property
    def bound(self) -> Mapping[str, str]: ...


class BindWriter(Protocol):
    """The writer of binds; methods as in `roadstead.binder.binder.Binder`.

    volumes (of `bind`): bindings of the claims that the pods use.
    """

    @property
    def outcomes(self) -> Outcomes: ...

    def add_nodes(self, nodes: NodeList) -> None: ...

    def remove_nodes(self, names: Iterable[str]) -> None: ...

    def add_running(self, pods: Iterable[KeyedPod], node_names: Iterable[str]) -> None: ...

    def add_pending(self, pods: Sequence[KeyedPod]) -> None: ...

    def delete_pods(self, uids: Iterable[str]) -> list[KeyedPod]: ...

    def bind(
        self, requests: Sequence[BindRequest], volumes: Sequence[AttemptBindings] = ()
    ) -> Mapping[str, CommitResult]: ...

    def evict(self, uids: Sequence[str], preemptors: Sequence[str]) -> list[KeyedPod]: ...

    def deallocate(self, claims: Sequence[tuple[str, str]]) -> None: ...
