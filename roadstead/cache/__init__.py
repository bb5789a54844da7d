"""CacheCore: what is on which node, and which of it is only assumed.

          ┌──────────────────── add ─────────────────────┐   ┌────┐ update
          │                                              v   v    │
      INITIAL ── assume ──> ASSUMED ── add, update ───> ADDED ────┘
          ^                 ^  │  │                      ^ │
          │ forget          │  │  └──── remove ────────┐ │ │ remove
          ├─────────────────│──┤                       v │ v
          │ forget          │  │ ask: time is over   DELETED ── remove: told twice
          │  finish_binding │  v                       ^ │
          └──────────────── ASKED ── add, update ────────┘ (also: assume, add: back as if new)
                              │  └── remove ───────────┤
                              v expire: not bound      │
                            EXPIRED ── remove ─────────┘
                              └── add, update: ADDED (back after expiry); assume: ASSUMED

Assumed, asked and added pods are counted on their node. A scheduler assumes a pod so that the next
decision sees it; the cluster's word confirms it, wherever the pod then is. An assumption without
confirmation is never dropped by the clock alone: the binder is asked, and its word decides (I6).

A command of a scheduler that lost a race is refused by a Status, pod by pod. An event of the
cluster that contradicts what is known raises IllegalTransitionError and changes nothing.

Follows pkg/scheduler/backend/cache (interface.go, cache.go) with all its repair paths: added
elsewhere than assumed, update or delete while assumed, added again after expiry, node removed with
pods on it. What is new: ASKED, tokens, and versions with deltas instead of snapshots.
"""

from roadstead.cache.core import CacheCore
from roadstead.cache.pods import (
    TABLE,
    AskBinder,
    Assumption,
    BinderWord,
    CacheAnswer,
    CacheCounts,
    CacheSettings,
    Placement,
    PodEvent,
    PodState,
    Refusal,
)
from roadstead.placements import Delta, DeltaKind, NodeStore, Placements, TableStore

__all__ = [
    "TABLE",
    "AskBinder",
    "Assumption",
    "BinderWord",
    "CacheAnswer",
    "CacheCore",
    "CacheCounts",
    "CacheSettings",
    "Delta",
    "DeltaKind",
    "NodeStore",
    "Placement",
    "Placements",
    "PodEvent",
    "PodState",
    "Refusal",
    "TableStore",
]
