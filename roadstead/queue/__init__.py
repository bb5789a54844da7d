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

NEW and DELETED pods are outside of the queue. `gate` in GATED: PreEnqueue was asked again and still
refuses. A DONE pod is outside as well, and remembered for a while.

One mutator, `QueueStore.go`, takes a pod along an arrow of `queue_store.TABLE`; `QueueCore`
decides which event it is. PreEnqueue is asked whenever a pod enters ACTIVE or BACKOFF, save from
one to the other; a pod that is being deleted is gated without it, at the latest when it is leased.
While a pod is gated its nomination holds no room. `conflict` and `expire` keep timestamp and
arrival
number: the pod is back at the head, that is, before every pod that it was before, and never ahead
of a higher priority.

Backoff grows with rejections, or with consecutive errors where there are any; a conflict or an
expired lease is no fault of the pod and adds none. It ends with the window in which it would end.
A pod that a plugin rejected is leased from BACKOFF while ACTIVE is empty; one whose attempt failed
waits its time. What events mean is told by `EventRules` (for clusters: `roadstead.queue.rules`),
and asked for whole classes of pods (`roadstead.queue.requeueing`).

Follows pkg/scheduler/backend/queue (scheduling_queue.go, active_queue.go, backoff_queue.go) of 1.34
with SchedulerQueueingHints and SchedulerPopFromBackoffQ on; leases and the bound on pods are ours.
Every call is deterministic; time is the argument `now_s`.
"""

from roadstead.queue.core import Among, QueueCore
from roadstead.queue.hints import EventRules, Hint, queue_always
from roadstead.queue.pods import (
    AddResult,
    EndedLease,
    Gate,
    LeaseAnswer,
    LeaseBatch,
    PodEvent,
    PodState,
    QueueCounts,
    QueuedPod,
    QueueSettings,
    QueueSort,
    Requeue,
    RequeueReason,
    admit_all,
    priority_sort,
)
from roadstead.queue.queue_store import LIVING, TABLE

__all__ = [
    "LIVING",
    "TABLE",
    "AddResult",
    "Among",
    "EndedLease",
    "EventRules",
    "Gate",
    "Hint",
    "LeaseAnswer",
    "LeaseBatch",
    "PodEvent",
    "PodState",
    "QueueCore",
    "QueueCounts",
    "QueueSettings",
    "QueueSort",
    "QueuedPod",
    "Requeue",
    "RequeueReason",
    "admit_all",
    "priority_sort",
    "queue_always",
]
