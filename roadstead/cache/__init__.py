"""The cluster as schedulers see it: nodes, and pods that are bound or assumed.

SchedulerCache adds claims, revisions and the stream of changes to CacheCore, the state machine of
counted pods. A *delta* is one change of nodes, pods or nominations (`roadstead.placements.Delta`);
a *token* names an attempt, a *key* a pod by namespace/name; an assumption is *unconfirmed* until an
event of the cluster or the binder's answer confirms it.

States and events, as `scripts/diagrams.py` draws them from `cache.pods.TABLE`:

    INITIAL ── assume ──► ASSUMED   ── add ──► ADDED
    ASSUMED ── forget ──► INITIAL   ── ask ──► ASKED   ── add, update ──► ADDED
            ── remove ──► DELETED   ↺ finish_binding
    ASKED   ── forget ──► INITIAL   ── finish_binding ──► ASSUMED   ── add, update ──► ADDED
            ── expire ──► EXPIRED   ── remove ──► DELETED   ↺ ask
    ADDED   ── remove ──► DELETED   ↺ update
    EXPIRED ── assume ──► ASSUMED   ── add, update ──► ADDED   ── remove ──► DELETED
    DELETED ── assume ──► ASSUMED   ── add ──► ADDED   ↺ remove

`finish_binding`: the binder is about to receive the attempt; its new deadline is `bind_s` away.
`ask`: the deadline of an assumption has passed. `expire`: the binder answered that the pod is not
bound. `remove` in DELETED: the event is a duplicate. A DELETED pod may be assumed or added as a new
one.

Assumed, asked and added pods are counted on their node. A scheduler assumes a pod so that the next
decision counts it; an event of the cluster confirms it, on that node or another one. An assumption
is never ended by its deadline alone: the cache asks the binder, whose answer ends it. (I6, and
other such numbers: docs/invariants.md.)

Requests of a scheduler that lost a race are refused with a Status, pod by pod. An event of the
cluster that contradicts the cache's state raises IllegalTransitionError and changes nothing.

Follows pkg/scheduler/backend/cache (interface.go, cache.go) with all its repair paths: added
elsewhere than assumed, update or delete while assumed, added again after expiry, node removed with
pods on it. New are ASKED, tokens, and versions with deltas instead of snapshots.
"""

from roadstead.cache.changes import Changes
from roadstead.cache.core import CacheCore
from roadstead.cache.pods import (
    TABLE,
    AskBinder,
    Assumption,
    BinderAnswer,
    CacheCounts,
    CacheEvent,
    CacheResult,
    CacheSettings,
    CacheState,
    PodOnNode,
    RefusedItem,
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
    "CacheCore",
    "CacheCounts",
    "CacheEvent",
    "CacheResult",
    "CacheSettings",
    "CacheState",
    "Changes",
    "ClusterState",
    "Delta",
    "DeltaKind",
    "NodeStore",
    "Placements",
    "PodOnNode",
    "RefusedItem",
    "ResolveOutcome",
    "SchedulerCache",
    "TableStore",
]
