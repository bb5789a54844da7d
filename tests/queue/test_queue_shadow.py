"""Any sequence of calls gives the same results in the queue and in its plain model.

The model is the one that follows the queue through simulated runs. These calls occur seldom or
never in a run: late reports, pods with nominations that are added again, two profiles, bounds of
one.
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from roadstead.facts.pod import GroupMembership, PodFacts, PodIdentity
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SUCCESS, Code, Status
from roadstead.queue import (
    EventRules,
    QueueCore,
    QueueEvent,
    QueueSettings,
    Requeue,
    RequeueReason,
    priority_sort,
)
from tests.inside import store_of
from tests.simulation.queue_moves import Rules
from tests.simulation.shadow_queue import ShadowQueue

PLUGINS = ("Fit", "Taints", "SchedulingGates")
NODES = ("n1", "n2")
PODS = tuple(PodIdentity(f"u{number}", "default", f"p{number}") for number in range(9))
FACTS = (
    PodFacts(),
    PodFacts(labels=(("a", "b"),)),
    PodFacts(priority=1),
    PodFacts(priority=2, scheduler_name="other"),
    PodFacts(scheduler_name="other"),
    PodFacts(scheduling_gates=("wait",)),
    PodFacts(scheduling_gates=("wait",), nominated_node_name="n1"),
    PodFacts(nominated_node_name="n2"),
    PodFacts(priority=1, is_terminating=True),
    PodFacts(pod_group=GroupMembership("g", 2)),
    PodFacts(priority=1, pod_group=GroupMembership("g", 2)),
)
SETTINGS = QueueSettings(
    max_pods=7,
    lease_s=5.0,
    unschedulable_max_s=20.0,
    max_in_flight_events=3,
    max_done_remembered=2,
    max_bypasses=2,
)


@dataclass(frozen=True, eq=False)
class Event:
    """helps: the plugin that it helps. concerns_all: or only pods without labels."""

    helps: str
    concerns_all: bool = True


EVENTS = tuple(Event(name, is_all) for name in PLUGINS for is_all in (True, False))


def gate(facts):
    return Status(Code.PENDING, (), "SchedulingGates") if facts.scheduling_gates else SUCCESS


def hint(plugin, event, facts):
    return plugin == event.helps


def concerns(event, facts, rejected_by):
    return event.concerns_all or not facts.labels


def shadowed(by_profile):
    how = replace(SETTINGS, by_profile=by_profile)
    rules = EventRules(
        hint=hint, registered=lambda plugin, event: plugin == event.helps, concerns=concerns
    )
    core = QueueCore(gate=gate, rules=rules, settings=how)
    registered = rules.registered
    asked = Rules(gate, hint, registered, concerns, priority_sort, lambda _: None)
    return core, ShadowQueue(core, how, asked)


some_facts = st.sampled_from(FACTS)
some_events = st.lists(st.sampled_from(EVENTS), max_size=2)
owners = st.sampled_from(("s", "t"))
uids = st.lists(st.sampled_from([pod.uid for pod in PODS]), max_size=3)
plugins = st.lists(st.sampled_from(PLUGINS), max_size=2, unique=True).map(tuple)


class ShadowMachine(RuleBasedStateMachine):
    by_profile = False

    def __init__(self):
        super().__init__()
        self.core, self.shadow = shadowed(self.by_profile)
        self.now_s, self.epoch, self.leases = 0.0, 1, []

    def do(self, name, *what):
        try:
            return getattr(self.core, name)(*what)
        except IllegalTransitionError:
            return None
        finally:
            self.shadow.look()
            assert self.shadow.problems == []

    @rule(batch=st.lists(st.tuples(st.sampled_from(PODS), some_facts), max_size=5))
    def add(self, batch):
        self.do("add", batch, self.now_s)

    @rule(
        owner=owners,
        most=st.integers(0, 4),
        profile=st.sampled_from(("", "other")),
        ago=st.integers(0, 1),
    )
    def lease(self, owner, most, profile, ago):
        epoch = max(1, self.epoch - ago)
        batch = self.do("lease", owner, epoch, most, self.now_s, profile if self.by_profile else "")
        if batch is not None and batch.pods:
            self.leases.append((batch.lease_id, [pod.identity.uid for pod in batch.pods]))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def done(self, data):
        lease_id, leased = data.draw(st.sampled_from(self.leases[-3:]))
        self.do("done", lease_id, data.draw(st.lists(st.sampled_from(leased), max_size=3)))

    @precondition(lambda self: self.leases)
    @rule(
        data=st.data(),
        reason=st.sampled_from(RequeueReason),
        by=plugins,
        pending=plugins,
        node=st.sampled_from((None, None, "", *NODES)),
        preempts=st.booleans(),
    )
    def requeue(self, data, reason, by, pending, node, preempts):
        lease_id, leased = data.draw(st.sampled_from(self.leases[-3:]))
        chosen = data.draw(st.lists(st.sampled_from(leased), max_size=3))
        how = reason, by, pending, node, preempts and bool(node)
        self.do("requeue", lease_id, [Requeue(uid, *how) for uid in chosen], self.now_s)

    @rule(pod=st.sampled_from(PODS), facts=some_facts, events=st.none() | some_events)
    def update(self, pod, facts, events):
        self.do("update", pod, facts, self.now_s, events)

    @rule(chosen=uids, name=st.sampled_from(("delete", "assigned")))
    def leave(self, chosen, name):
        self.do(name, chosen)

    @rule(events=some_events, only=st.none() | uids)
    def move(self, events, only):
        among = None if only is None else (lambda who, facts: who.uid in only)
        self.do("move", events, self.now_s, among)

    @rule(chosen=uids)
    def activate(self, chosen):
        self.do("activate", chosen, self.now_s)

    @rule(step_s=st.sampled_from((0.1, 0.25, 1.0, 6.0, 30.0)))
    def time_passes(self, step_s):
        self.now_s += step_s
        self.do("tick", self.now_s)

    @rule(
        name=st.sampled_from(("flush_backoff", "flush_unschedulable", "expire")),
        step_s=st.sampled_from((0.0, 1.0, 20.0)),
    )
    def some_time_passes(self, name, step_s):
        self.now_s += step_s
        self.do(name, self.now_s)

    @rule(owner=owners)
    def owner_starts_anew(self, owner):
        self.epoch += 1
        self.do("leased_to", owner, self.epoch)
        self.do("revoke", owner, self.epoch, self.now_s)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def renew(self, data):
        self.do("renew", data.draw(st.sampled_from(self.leases))[0], self.now_s)

    @rule(name=st.sampled_from(("pop_cleared", "pop_released")))
    def take(self, name):
        self.do(name)

    @rule(chosen=uids)
    def ask(self, chosen):
        self.do("known_uids", chosen)
        for uid in chosen:
            self.do("state_of", uid)
            self.do("facts_of", uid)
            self.do("rejected_by", uid)


class ProfilesMachine(ShadowMachine):
    by_profile = True


FEW = settings(max_examples=50, stateful_step_count=40, deadline=None)
ShadowMachine.TestCase.settings = ProfilesMachine.TestCase.settings = FEW
TestShadowMachine = ShadowMachine.TestCase
TestProfilesMachine = ProfilesMachine.TestCase


def conflict_changes_the_time(core, change):
    store = store_of(core)
    original = store.apply

    def apply(entry, event):
        entry.timestamp_s += event is QueueEvent.CONFLICT
        return original(entry, event)

    change(store, "apply", apply)


def an_attempt_is_not_counted(core, change):
    store = store_of(core)
    original = store.apply_all

    def apply_all(entries, event):
        for entry in entries if event is QueueEvent.LEASE else ():
            entry.attempts -= 1
        original(entries, event)

    change(store, "apply_all", apply_all)


@pytest.mark.parametrize("spoil", [conflict_changes_the_time, an_attempt_is_not_counted])
def test_a_difference_between_core_and_model_is_reported(spoil, monkeypatch):
    core, shadow = shadowed(by_profile=False)
    spoil(core, monkeypatch.setattr)

    core.add([(PODS[0], FACTS[0]), (PODS[1], FACTS[0])], 0.0)
    batch = core.lease("s", 1, 1, 1.0)
    core.requeue(batch.lease_id, [Requeue("u0", RequeueReason.CONFLICT)], 2.0)

    assert len(shadow.problems) > 0, "the planted difference is reported"
