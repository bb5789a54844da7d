"""Messages between actors, and the methods that receive them.

The first line of each class says `sender → receiver`. Any message may be received twice; where it
is not plain, the docstring states the effect of the second copy. A client is the driver of a run.

binding.py       to the binder: commits, evictions, reads, the end of a run
changes.py       changes of the cluster during a run
cluster.py       to the cache: nodes, pods, assumptions
common.py        to every actor
journal_copy.py  between the binder and the copy of its journal
process.py       to the process or dispatcher of an actor
queueing.py      to the queue: pods, leases, reports on leased pods
recovery.py      state for replaced actors
scheduling.py    to schedulers
stream.py        the cache's change stream, and requests to workers
"""

from __future__ import annotations

from roadstead.actors.messages.binding import (
    ADD_PENDING,
    BIND,
    BOUND,
    CLAIMS,
    COMMITS,
    END_RUN,
    EVICT,
    PREEMPTED,
    STORE_OUTCOME,
    BindBatch,
    BoundPage,
    ClaimsPage,
    CommitPage,
    Evict,
    Evicted,
    OutcomePart,
    OutcomeSize,
    PreemptedPage,
    RunEnded,
)
from roadstead.actors.messages.cluster import (
    ADD_NODES,
    ADD_RUNNING,
    ASSUME,
    NOMINATE,
    UPDATE_ASSUMPTIONS,
    AssumeBatch,
    NodeBatch,
    NominateBatch,
    RunningPods,
    UpdateAssumptions,
    node_batch,
)
from roadstead.actors.messages.common import (
    RUN,
    STATUS,
    STOP,
    ActorStatus,
    PageRequest,
)
from roadstead.actors.messages.queueing import (
    LEASE,
    PENDING,
    QUEUE_STATE,
    RENEW,
    REPORT,
    SUBMIT,
    Leased,
    LeaseReport,
    LeaseRequest,
    PendingPage,
    QueueStatus,
    Renew,
    Renewed,
    Submitted,
)
from roadstead.actors.messages.stream import (
    APPLY,
    CHANGES_APPLIED,
    RANK,
    SCORE,
    STORAGE,
    VERSION,
    ChangesApplied,
    DeltaBatch,
    PackedChanges,
    nodes_batch,
)
from roadstead.facts.pod_list import (
    NO_PODS,
    ClassColumn,
    PodList,
    pod_list,
    pod_list_of_columns,
)

__all__ = [
    "ADD_NODES",
    "ADD_PENDING",
    "ADD_RUNNING",
    "APPLY",
    "ASSUME",
    "BIND",
    "BOUND",
    "CHANGES_APPLIED",
    "CLAIMS",
    "COMMITS",
    "END_RUN",
    "EVICT",
    "LEASE",
    "NOMINATE",
    "NO_PODS",
    "PENDING",
    "PREEMPTED",
    "QUEUE_STATE",
    "RANK",
    "RENEW",
    "REPORT",
    "RUN",
    "SCORE",
    "STATUS",
    "STOP",
    "STORAGE",
    "STORE_OUTCOME",
    "SUBMIT",
    "UPDATE_ASSUMPTIONS",
    "VERSION",
    "ActorStatus",
    "AssumeBatch",
    "BindBatch",
    "BoundPage",
    "ChangesApplied",
    "ClaimsPage",
    "ClassColumn",
    "CommitPage",
    "DeltaBatch",
    "Evict",
    "Evicted",
    "LeaseReport",
    "LeaseRequest",
    "Leased",
    "NodeBatch",
    "NominateBatch",
    "OutcomePart",
    "OutcomeSize",
    "PackedChanges",
    "PageRequest",
    "PendingPage",
    "PodList",
    "PreemptedPage",
    "QueueStatus",
    "Renew",
    "Renewed",
    "RunEnded",
    "RunningPods",
    "Submitted",
    "UpdateAssumptions",
    "node_batch",
    "nodes_batch",
    "pod_list",
    "pod_list_of_columns",
]
