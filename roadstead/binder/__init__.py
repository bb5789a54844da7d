"""The state machine of bound pods: the only writer of binds.

States and events, as `scripts/diagrams.py` draws them from `binder.pods.TABLE`:

    UNKNOWN   ── add ──► PENDING   ── load ──► BOUND
    PENDING   ── commit ──► TENTATIVE   ── load ──► BOUND   ── evict, delete ──► DELETED   ↺ update
    TENTATIVE ── flush ──► BOUND   ── evict, delete ──► DELETED   ↺ update
    BOUND     ── evict, delete ──► DELETED   ↺ update
    DELETED   ── add ──► PENDING   ── load ──► BOUND   ↺ evict, delete

`load`: a pod that runs already is added with its node. `evict` and `delete` in DELETED are repeated
events. A DELETED pod that is added or loaded is treated as a new one.

No arrow leads from one node to another or back to PENDING: a pod is bound at most once and never
moves (invariant I3; docs/invariants.md lists these). `unbind` exists only to be refused.

A request is looked up by its token: the same token gets the same answer, and a different request
under it is an error. Then the binder checks that the pod is known, unbound and not deleted, that
the scheduler's epoch is current, that the node is known, that the pod's facts are those that were
read, and that `verify` passes: all hard filters of that node on the binder's own tables, whatever
version the decision was based on. With `checks_versions`, the bind is also refused if another
scheduler changed the node since it was read. An accepted bind is counted immediately, so that the
next request is verified on top of it. It is appended to the journal immediately and acknowledged
only after the flush (group commit: I8, I9). When the journal fails, the binder halts: it commits
and acknowledges nothing more, and reports the failure.

`Binder` (`roadstead.binder.binder`) combines the core with its filters, claims and journal.
"""

from roadstead.binder.core import BinderCore
from roadstead.binder.pods import (
    TABLE,
    Acknowledge,
    AppendJournal,
    BindConflictError,
    BinderCommand,
    BinderEvent,
    BinderHaltedError,
    BinderSettings,
    BinderState,
    BindRequest,
    Bound,
    CommitResult,
    Halted,
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
    "BinderCommand",
    "BinderCore",
    "BinderEvent",
    "BinderHaltedError",
    "BinderSettings",
    "BinderState",
    "Bound",
    "CommitResult",
    "Halted",
    "NodeStore",
    "RejectCause",
    "Rejected",
    "Released",
    "TableStore",
    "Verify",
]
