"""A shadow of the queue: each life of a queue's core is compared with `queue_model`, call by call.

Compared are the answer, each pod that the call may have changed, and the number of pods in each
state; at times the whole state. A core and its model compute with floats in the same order, so
nothing is rounded. A difference is reported in the run in which it arises: most queue bugs only
delay pods.
"""

from dataclasses import asdict
from operator import attrgetter
from types import SimpleNamespace

from roadstead.facts.pod_groups import group_key
from roadstead.framework.events import ActionType, ClusterEvent, EventResource, ObjectChange
from roadstead.framework.hint_map import OccurredEvent
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.queue import QUEUED, QueueState
from tests.simulation.queue_model import QueueModel
from tests.simulation.queue_moves import ContradictedError, Rules

FOR_OTHERS_THAN_GANGS = OccurredEvent(
    ClusterEvent(EventResource.WILDCARD, ActionType.ALL), ObjectChange(), spares_gangs=True
)
"""Any event, which can only help pods without a gang."""

ALL_EVERY = 40
"""Calls after which everything is compared."""

FIELDS = (
    "state",
    "facts",
    "seq",
    "timestamp_s",
    "initial_attempt_s",
    "attempts",
    "tie_break_number",
    "unschedulable_count",
    "consecutive_errors",
    "backoff_until_s",
    "rejected_by",
    "pending",
    "gating_plugin",
)
_fields = attrgetter(*FIELDS)
_counts = attrgetter(
    "active",
    "backoff",
    "unschedulable",
    "gated",
    "in_flight",
    "leases",
)
_ended = attrgetter("lease_id", "owner", "epoch", "uids")
_reported = attrgetter("applied", "duplicates", "stale")


def _same(answer):
    return answer


def _is_success(status):
    return status.is_success


def _all_ended(leases):
    return tuple(map(_ended, leases))


def _totals(pods):
    """Number of added, finished and deleted pods, by the store of pods."""
    deleted = pods.ended_as(QueueState.DELETED) + pods.ends[QueueState.DONE, QueueState.DELETED]
    return pods.begun, pods.ended_as(QueueState.DONE), deleted


def _by_uid(pods):
    return {pod.identity.uid: (pod.identity, pod.facts) for pod in pods}


ANSWERS = {
    "add": lambda a: (a.accepted, a.duplicates, a.done, a.refused, a.status.is_success),
    "lease": lambda a: (
        *(a.lease_id, a.owner, a.epoch, a.deadline_s),
        *(tuple(map(tuple, a.pods)), a.status.is_success),
    ),
    "renew": _is_success,
    "done": _reported,
    "requeue": _reported,
    "update": _is_success,
    "delete": _same,
    "assigned": _same,
    "move": _same,
    "activate": _same,
    "flush_backoff": _same,
    "flush_unschedulable": _same,
    "expire": _all_ended,
    "revoke": _all_ended,
    "tick": _all_ended,
    "pop_cleared": _by_uid,
    "pop_released": _by_uid,
    "state_of": _same,
    "facts_of": _same,
    "known_uids": _same,
    "rejected_by": _same,
    "leased_to": _same,
    "nominated": _same,
    "nominations": lambda pods: tuple(map(tuple, pods)),
    "gate": _is_success,
    "next_wakeup_s": _same,
}
"""The compared part of an answer, by method."""

ASKS = ("state_of", "facts_of", "known_uids", "rejected_by", "leased_to", "gate")
"""Calls that change nothing; only their answers are compared."""


class ShadowQueue:
    """Follows one life of a queue's core from its start. problems: the first few differences; after
    them nothing is compared any more.
    """

    def __init__(self, core, settings, rules):
        self._core, self._model = core, QueueModel(settings, rules)
        self.problems = []
        self._calls, self._is_inside = 0, False
        self._within = []
        self._plain = {name: getattr(core, name) for name in ANSWERS}
        for name in ANSWERS:
            setattr(core, name, self._followed(name))

    def _followed(self, name):
        original = self._plain[name]

        def call(*what, **how):
            if self._is_inside:
                answer = original(*what, **how)
                self._within.append((name, ANSWERS[name](answer)))
                return answer
            if self.problems:
                return original(*what, **how)
            self._within.clear()
            # Some may be iterators, which can be read once.
            what = [[*each] if hasattr(each, "__next__") else each for each in what]
            refusal = answer = None
            self._is_inside = True
            try:
                answer = original(*what, **how)
            except IllegalTransitionError as error:
                refusal = error
            finally:
                self._is_inside = False
            self._compare(name, what, how, answer, refusal)
            if refusal is not None:
                raise refusal
            return answer

        return call

    def _compare(self, name, what, how, answer, refusal):
        if name == "move":
            how = {**how, "order": answer}
        try:
            should, is_refused = getattr(self._model, name)(*what, **how), False
        except ContradictedError:
            should, is_refused = None, True
        if is_refused != (refusal is not None):
            self._differ(name, "is refused" if refusal else "is answered", refusal or answer)
        elif not is_refused and (actual := ANSWERS[name](answer)) != should:
            self._differ(name, f"answers {actual}", should)
        elif name == "tick" and self._within != self._model.within:
            self._differ(name, f"has in it {self._within}", self._model.within)
        if name in ASKS or self.problems:
            return
        self._calls += 1
        for uid in self._model.touched:
            self._compare_pod(name, uid)
        self._model.touched.clear()
        here = *_counts(self._core.counts()), *_totals(self._core._store.pods)
        should = self._model.counts()
        if here != should:
            self._differ(name, f"counts are {here}", should)
        elif self._core.active_count != here[0]:
            self._differ(name, f"{self._core.active_count} are in activeQ", here[0])
        if self._calls % ALL_EVERY == 0:
            self.look(name)

    def _differ(self, name, what, should):
        if len(self.problems) < 3:
            self.problems.append(f"shadow of the queue: {name}: {what}, not {should}"[:600])

    def _compare_pod(self, name, uid):
        pod, entry = self._model.pods.get(uid), self._core._store.pods.present.get(uid)
        if pod is None or entry is None:
            here, should = self._plain["state_of"](uid), self._model.state_of(uid)
            if here != should:
                self._differ(name, f"{uid} is {here}", should)
            return
        here, should = _fields(entry), _fields(pod)
        if not entry.history or not entry.history[-1].endswith(f"→{pod.state.value}"):
            self._differ(name, f"{uid} is there by {entry.history}", pod.state)
        if here != should:
            wrong = {
                field: (one, other)
                for field, one, other in zip(FIELDS, here, should, strict=True)
                if one != other
            }
            self._differ(name, f"{uid} has", f"as it should {wrong}")
        # From here on the same object is compared by identity.
        pod.facts = entry.facts
        if pod.state is QueueState.IN_FLIGHT:
            here = entry.lease_id, [*entry.own_events]
            if here != (pod.lease_id, pod.own_events):
                self._differ(name, f"{uid} in flight has {here}", (pod.lease_id, pod.own_events))

    def look(self, when="in the end"):
        """Compare the whole state."""
        if self.problems or self._is_inside:
            return
        core, model = self._core, self._model
        for uid in model.pods:
            self._compare_pod(when, uid)
        for state in (*QUEUED, QueueState.DONE):
            here, should = tuple(map(tuple, core.pods(state))), model.in_line(state)
            if here != should:
                names = [[identity.name for identity, *_ in pods] for pods in (here, should)]
                self._differ(when, f"{state.value} are {names[0]}", names[1])
        here = {each.lease_id: _lease(each) for each in core._store.in_flight.leases.values()}
        should = {each.lease_id: _lease(each) for each in model.leases.values()}
        if here != should:
            self._differ(when, f"leases are {here}", should)
        nodes = {pod.facts.nominated_node_name for pod in model.pods.values()}
        for name, *about in (
            ("next_wakeup_s",),
            ("nominations",),
            *(("nominated", n) for n in nodes),
        ):
            here, should = ANSWERS[name](self._plain[name](*about)), getattr(model, name)(*about)
            if here != should:
                self._differ(when, f"{name} {about} is {here}", should)
        if core._store.in_flight.event_count != model.events_kept():
            kept = core._store.in_flight.event_count
            self._differ(when, f"{kept} events are kept", model.events_kept())
        self._compare_turns(when)

    def _compare_turns(self, when):
        """Compare the order of turns in activeQ, and how often each pod was bypassed (I11)."""
        active = self._core._store.active
        for turn, pods in self._model.turns().items():
            entries = {pod.uid: self._core._store.pods.present[pod.uid] for pod in pods}
            order = active.order_of(entries[pods[0].uid])
            longest = order.oldest()
            if longest is None or longest.uid != pods[0].uid:
                self._differ(when, f"{longest and longest.uid} waits longest {turn}", pods[0].uid)
            here = {uid: order.bypasses_of(entry) for uid, entry in entries.items()}
            should = {pod.uid: pod.passed for pod in pods}
            if here != should:
                self._differ(when, f"pods were passed {here}", should)


def _lease(lease):
    return lease.owner, lease.epoch, lease.deadline_s, [*lease.open], lease.closed


def shadow_of(actor, limits):
    """The shadow of a new queue actor. limits: reduced settings of the core."""
    plan, config = actor._plan, actor._plan.config()
    known = {
        "max_pods": plan.settings.bounds.queue_max_pods,
        "lease_s": plan.settings.deadlines.lease_s,
        "backoff_initial_s": config.pod_initial_backoff_s,
        "backoff_max_s": config.pod_max_backoff_s,
        "by_profile": plan.settings.scheduler_profiles[0] != "",
        # backoffQOrderingWindowDuration and DefaultPodMaxInUnschedulablePodsDuration.
        "backoff_window_s": 1.0,
        "unschedulable_max_s": 300.0,
        "max_in_flight_events": 10_000,
        "max_done_remembered": 65_536,
        "max_bypasses": 10_000,
    } | limits
    shadow = ShadowQueue(actor.core, SimpleNamespace(**known), rules_for(actor))
    if (settings := asdict(actor.core.settings)) != known:
        shadow.problems.append(f"shadow of the queue: settings are {settings}, not {known}")
    return shadow


def rules_for(actor):
    """The rules that a queue's core calls, with the queue's own part written again."""
    hints, profiles = actor.queue.hints, actor.queue._profiles.values()
    there = {plugin for each in profiles for plugin in each.registered_events()}
    return Rules(
        gate=actor.queue.gate,
        hint=hints.may_help,
        registered=hints.is_registered,
        concerns=lambda *about: concerns(hints.cluster, there, *about),
        sort=next(iter(profiles)).queue_sort.sort_key,
        any_of=lambda events: None if any(map(_wakes_gangs, events)) else FOR_OTHERS_THAN_GANGS,
    )


def _wakes_gangs(event):
    return event is None or not event.spares_gangs


def concerns(cluster, there, seen, facts, rejected_by):
    """getUnschedulablePodsWithCrossTopologyTerm: pods to check when a pod was added to a node, or
    changed there; in addition, pods of its gang that gave up. there: plugins in some profile (a
    report may name others).
    """
    frees = seen.event.action & (ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
    if seen.event.resource is not EventResource.ASSIGNED_POD or frees:
        return True
    if seen.change.thorough and seen.change.old:
        # In addition: pods that it kept away by labels that it no longer has.
        return True
    other, rejected_by = seen.change.new.facts, there.intersection(rejected_by)
    if "PodTopologySpread" in rejected_by and other.namespace == facts.namespace:
        return True
    if "Coscheduling" in rejected_by and group_key(facts) == group_key(other) is not None:
        return True
    namespaces = {name: dict(labels) for name, labels in cluster.namespaces}
    about = other.namespace, dict(other.labels), namespaces.get(other.namespace, {})
    return any(term.matches_labels(*about) for term in facts.pod_affinity)
