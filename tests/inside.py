"""Access to the inner state of the cores that only tests need."""

from typing import NamedTuple

from roadstead.attempts.core import AttemptsCore
from roadstead.binder.core import BinderCore
from roadstead.binder.pods import BinderState
from roadstead.cache.core import CacheCore


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
        unflushed=len(core._unflushed),
        tokens=len(core._tokens),
    )


def next_deadline_s(core: AttemptsCore | CacheCore) -> float | None:
    """Return the time of the next work of `tick` or `expire`; None if nothing waits for a time."""
    waiting = core._store.waiting if isinstance(core, AttemptsCore) else core._deadlines
    record = waiting.first()
    return None if record is None else record.deadline_s
