"""QueueCore: pods that wait for a node, and the leases under which schedulers try them.

States and events, as `scripts/diagrams.py` draws them from `queue.queue_store.TABLE`:

    NEW           ── add ──► ACTIVE   ── gate ──► GATED
    ACTIVE        ── lease ──► IN_FLIGHT   ── assign ──► DONE   ── delete ──► DELETED   ↺ update
    BACKOFF       ── activate ──► ACTIVE   ── lease ──► IN_FLIGHT   ── assign ──► DONE
                  ── delete ──► DELETED   ↺ update
    UNSCHEDULABLE ── activate ──► ACTIVE   ── back_off ──► BACKOFF   ── gate ──► GATED
                  ── assign ──► DONE   ── delete ──► DELETED   ↺ update
    GATED         ── activate ──► ACTIVE   ── back_off ──► BACKOFF   ── assign ──► DONE
                  ── delete ──► DELETED   ↺ gate, update
    IN_FLIGHT     ── conflict, expire, activate ──► ACTIVE   ── fail, back_off ──► BACKOFF
                  ── reject ──► UNSCHEDULABLE   ── gate ──► GATED   ── finish, assign ──► DONE
                  ── delete ──► DELETED   ↺ update
    DONE          ── delete ──► DELETED
    DELETED       (no event is allowed)

NEW, DONE and DELETED pods are not in the queue; the UIDs of the last DONE pods are stored. `gate`
in GATED: PreEnqueue ran again and still refuses the pod.

Only `QueueStore.apply` and `apply_all` change states, by `queue_store.TABLE`; `QueueCore` chooses
the event. PreEnqueue runs whenever a pod enters ACTIVE or BACKOFF from another state than these
two. A pod that is being deleted is gated without PreEnqueue, at the latest when it is leased. The
nomination of a gated pod is not in effect. `conflict` and `expire` keep timestamp and arrival
number, so the pod returns to the head of activeQ: before every pod that it preceded, never before a
pod of higher priority.

Backoff grows with the number of consecutive errors, or else of rejections; conflicts and expired
leases do not count. It ends at the end of a window (`QueueSettings.backoff_window_s`). While ACTIVE
is empty, pods in BACKOFF are leased if a plugin rejected them; pods whose attempt failed always
wait until their backoff ends. `EventRules` decide which events help which pods (for clusters:
`roadstead.queue.event_rules`), once for each class of pods (`roadstead.queue.requeueing`).

Follows pkg/scheduler/backend/queue (scheduling_queue.go, active_queue.go, backoff_queue.go) of 1.34
with SchedulerQueueingHints and SchedulerPopFromBackoffQ on. Leases and the maximum number of pods
are Roadstead's own. Every call is deterministic; time is the argument `now_s`.

The owner of a lease is the scheduler that holds it. A scheduler loses a race (CONFLICT) if another
one used the node's resources first. A gang is a pod group of Coscheduling, whose pods wait for each
other at Permit. Binds are made by the binder, an actor; another one, the supervisor, replaces
schedulers that stopped.
"""

from roadstead.queue.core import PodPredicate, QueueCore
from roadstead.queue.hints import EventRules, Hint, queue_always
from roadstead.queue.pods import (
    AddResult,
    EndedLease,
    Gate,
    LeaseAnswer,
    LeaseBatch,
    QueueCounts,
    QueuedPod,
    QueueEvent,
    QueueSettings,
    QueueSort,
    QueueState,
    Requeue,
    RequeueReason,
    admit_all,
    priority_sort,
)
from roadstead.queue.queue_store import QUEUED, TABLE

__all__ = [
    "QUEUED",
    "TABLE",
    "AddResult",
    "EndedLease",
    "EventRules",
    "Gate",
    "Hint",
    "LeaseAnswer",
    "LeaseBatch",
    "PodPredicate",
    "QueueCore",
    "QueueCounts",
    "QueueEvent",
    "QueueSettings",
    "QueueSort",
    "QueueState",
    "QueuedPod",
    "Requeue",
    "RequeueReason",
    "admit_all",
    "priority_sort",
    "queue_always",
]
