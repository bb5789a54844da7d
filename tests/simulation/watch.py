"""A watch over the cores of a run: events that may not happen without faults.

Most bugs in queue, cache, binder and cycle heal: a lost pod returns when its lease ends, a wrong
view of a node is refused by the binder. So a run without faults must need none of these repairs,
and each of its decisions must equal a naive judge's.
"""

from functools import partial

from roadstead.actors.names import BINDER, CACHE, QUEUE
from roadstead.binder import Acknowledge
from roadstead.binder.pods import RejectCause, Rejected
from roadstead.queue import QueueState
from tests.simulation.judge import Judge

FULL = "status.reservedFor: Too many"
TOO_FEW = "too few pods of its group can be bound with it"
LEANS = (
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod topology spread constraints",
    "full",
)
"""Refusals without a fault: the pod depends on an assumed pod that waits for Permit, which the
binder does not have. Or the pod waited for Permit itself, and other pods of its size, decided
later, were bound first (the reason of `SeesCrowds`).
"""

LATE_S = 1.0
"""How late a queue may be with a timer: it checks four times a second."""

CORE_CALLS = (
    "lease",
    "assumed",
    "allow",
    "reject",
    "tick",
    "bind_answered",
    "timed_out",
    "deleted",
)
"""Methods of AttemptsCore that return effects, besides `decided`."""


class Watch:
    """Follows every life of every actor that it is given. problems: events that needed a repair."""

    def __init__(self, plan):
        self._plan = plan
        self.judge = None
        self._repairs = []
        self._early = []

    @property
    def problems(self):
        judged = [] if self.judge is None else self.judge.problems
        return [*judged, *(f"a repair without a fault: {each}" for each in self._repairs)]

    def show(self, name, actor):
        """Add a new life of an actor."""
        core = getattr(actor, "core", None)
        if name.startswith("scheduler"):
            self._watch_cycle(actor)
        elif name == QUEUE:
            self._expect_nothing(core, "expire", lambda ended: ended and f"leases ended: {ended}")
            self._watch_timers(core)
        elif name == CACHE:
            self._expect_nothing(core, "expire", lambda asks: asks and f"assumptions: {asks}")
        elif name == BINDER:
            # Pods that wait, or fail, in a user's plugins leave other pods at the binder.
            no_faults = (TOO_FEW, *LEANS) if self._plan.plugins else ()
            evicted = self._evicted_of(core)
            refused = partial(_refused, no_faults=no_faults, evicted=evicted)
            self._expect_nothing(core, "bind", refused)

    def world(self, what, *about):
        """Apply a cluster event: `node_comes`, `node_removed` or `pod_goes`."""
        if self.judge is None:
            self._early.append((what, about))
        else:
            getattr(self.judge, what)(*about)

    def _expect_nothing(self, core, method, complaint):
        original = getattr(core, method)

        def watched(*what, **how):
            result = original(*what, **how)
            if text := complaint(result):
                self._repairs.append(f"{type(core).__name__}.{method}: {text}")
            return result

        setattr(core, method, watched)

    def _evicted_of(self, core):
        """UIDs of pods that a binder evicts, or deletes where their bind is still in transit."""
        evicted = set()

        def noted(original):
            def release(uids, *more, **how):
                uids = tuple(uids)
                evicted.update(uids)
                return original(uids, *more, **how)

            return release

        core.evict, core.delete = noted(core.evict), noted(core.delete)
        return evicted

    def _watch_timers(self, core):
        """No pod stays in backoff long after its time, while schedulers request pods.

        Pods of gangs, which are woken together, may wait for each other.
        """
        original = core.lease

        def lease(owner, epoch, max_pods, now_s, profile=""):
            late = [
                f"{entry.uid} since {entry.backoff_until_s:g}"
                for entry in core._store.entries(QueueState.BACKOFF)
                if entry.backoff_until_s < now_s - LATE_S and entry.facts.pod_group is None
            ]
            if late:
                self._repairs.append(f"at {now_s:g} these still back off: {late}")
            return original(owner, epoch, max_pods, now_s, profile)

        core.lease = lease

    def _watch_cycle(self, actor):
        core = actor.core
        if self.judge is not None:
            self._repairs.append("a scheduler was replaced")
            return
        judge = self.judge = Judge(self._plan, actor.members)
        for what, about in self._early:
            getattr(judge, what)(*about)
        original = core.decided

        def decided(decisions, *more):
            effects = original(decisions, *more)
            judge.decided(decisions, effects)
            return effects

        core.decided = decided
        tentative = actor._nodes.tentative
        remove_from_table = tentative.remove_from_table

        def begins(pods):
            judge.begins(pods, actor._nodes.table.residents._class_of)
            remove_from_table(pods)

        tentative.remove_from_table = begins
        for name in CORE_CALLS:
            setattr(core, name, _heeded(getattr(core, name), judge))


def _heeded(method, judge):
    def heeded(*what, **how):
        effects = method(*what, **how)
        judge.heed(effects)
        return effects

    return heeded


def _refused(effects, *, no_faults, evicted):
    refused = [
        each.result
        for each in effects
        if isinstance(each, Acknowledge)
        and isinstance(each.result, Rejected)
        # Reaching a bound is no fault.
        and each.result.cause is not RejectCause.BUSY
        and not (each.result.cause is RejectCause.DELETED and each.result.uid in evicted)
        and not set(each.result.status.reasons).intersection(no_faults)
        # Upstream, too, finds out at PreBind that a claim has all the consumers it may have.
        and not any(FULL in reason for reason in each.result.status.reasons)
    ]
    return refused and f"refused: {refused}"
