"""SchedulerCache: all that a cache does, with claims, revisions and what it sends on.

CacheCore, within it: what is on which node, and which of it is only assumed.

States and events, as `scripts/diagrams.py` draws them from `cache.pods.TABLE`:

    INITIAL ── assume ──► ASSUMED   ── add ──► ADDED
    ASSUMED ── forget ──► INITIAL   ── ask ──► ASKED   ── add, update ──► ADDED
            ── remove ──► DELETED   ↺ finish_binding
    ASKED   ── forget ──► INITIAL   ── finish_binding ──► ASSUMED   ── add, update ──► ADDED
            ── expire ──► EXPIRED   ── remove ──► DELETED   ↺ ask
    ADDED   ── remove ──► DELETED   ↺ update
    EXPIRED ── assume ──► ASSUMED   ── add, update ──► ADDED   ── remove ──► DELETED
    DELETED ── assume ──► ASSUMED   ── add ──► ADDED   ↺ remove

`ask`: the time of an assumption is over. `expire`: the binder answered that the pod is not bound.
`remove` in DELETED: the event came twice. A DELETED pod that is assumed or added is as a new one.

Assumed, asked and added pods are counted on their node. A scheduler assumes a pod so that the next
decision sees it; the cluster's word confirms it, wherever the pod then is. An assumption without
confirmation is never dropped by the clock alone: the binder is asked, and its word decides (I6).

A command of a scheduler that lost a race is refused by a Status, pod by pod. An event of the
cluster that contradicts what is known raises IllegalTransitionError and changes nothing.

Follows pkg/scheduler/backend/cache (interface.go, cache.go) with all its repair paths: added
elsewhere than assumed, update or delete while assumed, added again after expiry, node removed with
pods on it. What is new: ASKED, tokens, and versions with deltas instead of snapshots.
"""

from roadstead.cache.changes import Changes
from roadstead.cache.core import CacheCore
from roadstead.cache.pods import (
    TABLE,
    AskBinder,
    Assumption,
    BinderAnswer,
    CacheAnswer,
    CacheCounts,
    CacheSettings,
    Placement,
    PodEvent,
    PodState,
    Refusal,
)
from roadstead.cache.scheduler_cache import AssumeOutcome, ResolveOutcome, SchedulerCache
from roadstead.cache.state import ClusterState
from roadstead.placements import Delta, DeltaKind, NodeStore, Placements, TableStore

__all__ = [
    "TABLE",
    "AskBinder",
    "AssumeOutcome",
    "Assumption",
    "BinderAnswer",
    "CacheAnswer",
    "CacheCore",
    "CacheCounts",
    "CacheSettings",
    "Changes",
    "ClusterState",
    "Delta",
    "DeltaKind",
    "NodeStore",
    "Placement",
    "Placements",
    "PodEvent",
    "PodState",
    "Refusal",
    "ResolveOutcome",
    "SchedulerCache",
    "TableStore",
]
