"""Any sequence of calls keeps conservation, rank, and determinism."""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SUCCESS, Code, Status
from roadstead.queue import (
    QUEUED,
    EventRules,
    QueueCore,
    QueueSettings,
    QueueState,
    Requeue,
    RequeueReason,
)
from tests.inside import store_of

PLUGINS = ("NodeResourcesFit", "TaintToleration", "SchedulingGates")
FACTS = (
    PodFacts(),
    PodFacts(priority=1),
    PodFacts(priority=1, labels=(("a", "b"),)),
    PodFacts(scheduling_gates=("wait",)),
)
PODS = tuple(PodIdentity(f"u{number}", "default", f"p{number}") for number in range(8))
SETTINGS = QueueSettings(
    max_pods=6,
    lease_s=5.0,
    unschedulable_max_s=20.0,
    max_in_flight_events=3,
    max_done_remembered=2,
)

pods = st.sampled_from(PODS)
facts = st.sampled_from(FACTS)
events = st.sampled_from(PLUGINS)
owners = st.sampled_from(("s", "t"))
uids = st.lists(st.sampled_from([pod.uid for pod in PODS]), max_size=3)
plugins = st.lists(events, max_size=2, unique=True).map(tuple)

Command = Callable[[QueueCore[str]], object]


def new_queue() -> QueueCore[str]:
    def gate(one: PodFacts) -> Status:
        return Status(Code.PENDING, (), "SchedulingGates") if one.scheduling_gates else SUCCESS

    rules = EventRules(
        hint=lambda plugin, event, _: plugin == event,
        registered=lambda plugin, event: plugin == event,
    )
    return QueueCore(gate=gate, rules=rules, settings=SETTINGS)


def picture(core: QueueCore[str]) -> object:
    histories = {uid: entry.history for uid, entry in store_of(core).pods.present.items()}
    return (
        [core.pods(state) for state in QueueState],
        histories,
        core.counts(),
        core.next_wakeup_s(),
    )


def outcome(command: Command, core: QueueCore[str]) -> object:
    try:
        return command(core)
    except IllegalTransitionError as error:
        return str(error)


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.core = new_queue()
        self.log: list[tuple[Command, object]] = []
        self.now_s = 0.0
        self.epoch = 1
        self.leases: list[tuple[int, list[str]]] = []

    def do(self, command: Command) -> object:
        before = picture(self.core)
        result = outcome(command, self.core)
        self.log.append((command, result))
        if isinstance(result, str):
            assert picture(self.core) == before, "an illegal event changes nothing"
        return result

    @rule(batch=st.lists(st.tuples(pods, facts), max_size=4))
    def add(self, batch) -> None:
        now_s = self.now_s
        result = self.do(lambda core: core.add(batch, now_s))
        named = [*result.accepted, *result.duplicates, *result.done, *result.refused]
        assert sorted(named) == sorted(pod.uid for pod, _ in batch)

    @rule(owner=owners, most=st.integers(0, 4))
    def lease(self, owner, most) -> None:
        now_s, epoch = self.now_s, self.epoch
        waiting = self.core.pods(QueueState.ACTIVE)
        result = self.do(lambda core: core.lease(owner, epoch, most, now_s))
        active = result.pods[: len(waiting)]
        ranks = [(-pod.facts.priority, pod.timestamp_s, pod.seq) for pod in active]
        assert ranks == sorted(ranks)
        assert len(result.pods) <= most
        assert len(result.pods) >= min(most, len(waiting))
        self.leases.append((result.lease_id, [pod.identity.uid for pod in result.pods]))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def done(self, data) -> None:
        lease_id, leased = data.draw(st.sampled_from(self.leases))
        chosen = data.draw(st.lists(st.sampled_from(leased), max_size=3)) if leased else []
        self.do(lambda core: core.done(lease_id, chosen))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), reason=st.sampled_from(RequeueReason), by=plugins, pending=plugins)
    def requeue(self, data, reason, by, pending) -> None:
        lease_id, leased = data.draw(st.sampled_from(self.leases))
        chosen = data.draw(st.lists(st.sampled_from(leased), max_size=3)) if leased else []
        now_s, batch = self.now_s, [Requeue(uid, reason, by, pending) for uid in chosen]
        self.do(lambda core: core.requeue(lease_id, batch, now_s))

    @rule(pod=pods, new=facts, events_or_none=st.none() | st.lists(events, max_size=2))
    def update(self, pod, new, events_or_none) -> None:
        now_s = self.now_s
        self.do(lambda core: core.update(pod, new, now_s, events_or_none))

    @rule(chosen=uids)
    def delete(self, chosen) -> None:
        self.do(lambda core: core.delete(chosen))
        assert all(self.core.state_of(uid) is QueueState.NEW for uid in chosen)

    @rule(chosen=uids)
    def assigned(self, chosen) -> None:
        self.do(lambda core: core.assigned(chosen))
        assert not any(self.core.state_of(uid) in QUEUED for uid in chosen)

    @rule(event=events)
    def move(self, event) -> None:
        now_s = self.now_s
        self.do(lambda core: core.move([event], now_s))

    @rule(chosen=uids)
    def activate(self, chosen) -> None:
        now_s = self.now_s
        self.do(lambda core: core.activate(chosen, now_s))

    @rule(step_s=st.sampled_from((0.1, 1.0, 6.0, 30.0)))
    def time_passes(self, step_s) -> None:
        self.now_s += step_s
        now_s = self.now_s
        self.do(lambda core: core.tick(now_s))
        wakeup_s = self.core.next_wakeup_s()
        assert wakeup_s is None or wakeup_s > now_s

    @rule(owner=owners)
    def owner_starts_anew(self, owner) -> None:
        self.epoch += 1
        now_s, epoch = self.now_s, self.epoch
        self.do(lambda core: core.revoke(owner, epoch, now_s))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def renew(self, data) -> None:
        now_s, (lease_id, _) = self.now_s, data.draw(st.sampled_from(self.leases))
        self.do(lambda core: core.renew(lease_id, now_s))

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        self.core.validate()

    def teardown(self) -> None:
        again = new_queue()
        for command, result in self.log:
            assert outcome(command, again) == result
        assert picture(again) == picture(self.core)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestQueueMachine = QueueMachine.TestCase
