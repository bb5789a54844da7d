"""Access to inner state that only tests need: to compare it, and to break it on purpose."""

import gc
from collections.abc import Collection, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeVar, overload

from roadstead.actors.scheduler.actor import SchedulerActor
from roadstead.actors.scheduler.scheduler_nodes import SchedulerNodes
from roadstead.actors.scheduler.scorers import Scorers
from roadstead.attempts.attempt_store import AttemptStore
from roadstead.attempts.core import AttemptsCore
from roadstead.binder.batch_start import Unflushed
from roadstead.binder.core import BinderCore
from roadstead.binder.pods import BinderState
from roadstead.binder.tokens import TokenMemory
from roadstead.cache.core import CacheCore
from roadstead.cache.deadlines import AssumeDeadlines
from roadstead.cache.pods import CacheEvent, CacheRecord
from roadstead.cycle.batch import Batch
from roadstead.cycle.node_search import NodeSearch
from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey
from roadstead.kernel.arrays import Totals
from roadstead.kernel.kernel import Kernel
from roadstead.placements import Placements
from roadstead.plugins.coscheduling import Coscheduling
from roadstead.queue.core import QueueCore
from roadstead.queue.queue_store import QueueStore
from roadstead.scheduler.scheduler import Scheduler

Kind = TypeVar("Kind")

_OUTSIDE = (type, ModuleType, FunctionType, MethodType)
"""Where `objects_in` ends: code refers to everything."""


class BinderCounts(NamedTuple):
    nodes: int
    pending: int
    tentative: int
    bound: int
    unflushed: int
    tokens: int


def counts_of(core: BinderCore) -> BinderCounts:
    states = [record.state for record in core.pods.present.values()]
    return BinderCounts(
        nodes=len(core.placements.nodes),
        pending=states.count(BinderState.PENDING),
        tentative=states.count(BinderState.TENTATIVE),
        bound=states.count(BinderState.BOUND),
        unflushed=len(unflushed_of(core)),
        tokens=len(tokens_of(core)),
    )


def unflushed_of(core: BinderCore) -> Unflushed:
    return core._unflushed


def tokens_of(core: BinderCore) -> TokenMemory:
    return core._tokens


@overload
def store_of(core: AttemptsCore) -> AttemptStore: ...
@overload
def store_of(core: QueueCore[Any]) -> QueueStore[Any]: ...
def store_of(core: AttemptsCore | QueueCore[Any]) -> AttemptStore | QueueStore[Any]:
    """Return the store of a core: for comparisons of the whole state, and for forced states."""
    return core._store


def deadlines_of(core: CacheCore) -> AssumeDeadlines:
    return core._deadlines


def apply_event(core: CacheCore, record: CacheRecord, event: CacheEvent) -> None:
    """Apply any event to any record, as no public method does."""
    core._apply(record, event)


def objects_in(root: object, kind: type[Kind]) -> list[Kind]:
    """Return the objects of a type that an object refers to, directly or not: what it remembers."""
    seen: dict[int, object] = {id(root): root}
    reached = [root]
    while reached:
        for each in gc.get_referents(reached.pop()):
            if id(each) not in seen and not isinstance(each, _OUTSIDE):
                seen[id(each)] = each
                reached.append(each)
    return [each for each in seen.values() if isinstance(each, kind) and each is not root]


def nodes_of(scheduler: SchedulerActor) -> SchedulerNodes:
    return scheduler._nodes


def scorers_of(scheduler: SchedulerActor) -> Scorers:
    assert scheduler._scorers is not None, "a run without workers"
    return scheduler._scorers


def node_search_of(scheduler: SchedulerActor) -> NodeSearch:
    assert scheduler._node_search is not None, "a run that searches no nodes"
    return scheduler._node_search


def scheduler_of(actor: SchedulerActor) -> Scheduler:
    return actor._scheduler


def kernel_of(batch: Batch) -> Kernel:
    assert batch._kernel is not None, "no pod was decided by the kernel"
    return batch._kernel


def kernel_totals(batch: Batch) -> Totals:
    return kernel_of(batch)._totals


def reserved_in(plugin: Coscheduling) -> Mapping[GroupKey, Collection[str]]:
    """Return the UIDs of the reserved pods of each gang."""
    return plugin._reserved


class Kept(NamedTuple):
    """The pods that placements store; pods_on: node → UIDs."""

    node_of: dict[str, str]
    facts_of: dict[str, PodFacts]
    pods_on: dict[str, dict[str, None]]


def kept_by(placements: Placements) -> Kept:
    pods = placements._pods
    pods_on = pods._pods_on
    assert pods_on is not None, "no call has read the pods of a node"
    return Kept(pods.node_of, placements._facts_of, pods_on)


def next_deadline_s(core: AttemptsCore | CacheCore) -> float | None:
    """Return the time of the next work of `tick` or `expire`; None if nothing waits for a time."""
    waiting = store_of(core).waiting if isinstance(core, AttemptsCore) else deadlines_of(core)
    record = waiting.first()
    return None if record is None else record.deadline_s
