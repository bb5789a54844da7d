"""BinderCore: the one writer of binds.

States and events, as `scripts/diagrams.py` draws them from `binder.pods.TABLE`:

    UNKNOWN   ── add ──► PENDING   ── load ──► BOUND
    PENDING   ── accept ──► TENTATIVE   ── load ──► BOUND   ── evict, delete ──► DELETED   ↺ update
    TENTATIVE ── flush ──► BOUND   ── evict, delete ──► DELETED   ↺ update
    BOUND     ── evict, delete ──► DELETED   ↺ update
    DELETED   ── add ──► PENDING   ── load ──► BOUND   ↺ evict, delete

`evict` and `delete` in DELETED: the event came twice. A DELETED pod that is added or loaded is as
a new one.

No arrow leads from one node to another or back to PENDING: a pod is bound at most once and never
moves (I3). `unbind` is there to be refused.

A request is looked up by its token (same token, same answer; another request under it is an
error), then: pod known, unbound, not deleted, lease epoch current, node known, and `verify`: all
hard filters of that node on the binder's own tables, whatever version the decision was read at.
An accepted bind counts at once, so that the next request is verified on top of it; it is journaled
at once and acknowledged only after the flush (group commit: I8, I9). When the journal fails the
binder halts: it acknowledges and commits nothing more, and says so.

`Binder` (`roadstead.binder.binder`) is the core together with its filters, claims and journal.
"""

from roadstead.binder.core import BinderCore
from roadstead.binder.pods import (
    TABLE,
    Acknowledge,
    AppendJournal,
    BindConflictError,
    BinderHaltedError,
    BinderSettings,
    BindRequest,
    Bound,
    Decision,
    Effect,
    Halted,
    PodEvent,
    PodState,
    RejectCause,
    Rejected,
    Released,
    Verify,
)
from roadstead.placements import NodeStore, TableStore

__all__ = [
    "TABLE",
    "Acknowledge",
    "AppendJournal",
    "BindConflictError",
    "BindRequest",
    "BinderCore",
    "BinderHaltedError",
    "BinderSettings",
    "Bound",
    "Decision",
    "Effect",
    "Halted",
    "NodeStore",
    "PodEvent",
    "PodState",
    "RejectCause",
    "Rejected",
    "Released",
    "TableStore",
    "Verify",
]
