"""Each arrow of the queue's table leads where it says; any other pair raises, changing nothing."""

from itertools import product

import pytest

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SUCCESS, Status, unschedulable
from roadstead.queue import (
    LIVING,
    TABLE,
    PodEvent,
    PodState,
    QueueCore,
    Requeue,
    RequeueReason,
)

POD = PodIdentity("uid-a", "default", "a")
OTHER = PodIdentity("uid-b", "default", "b")
GATED = PodFacts(scheduling_gates=("wait",))
OPEN = PodFacts()
ARROWS = [(state, event, target) for state, event, target in TABLE]
ALLOWED = {(state, event) for state, event, _ in ARROWS}
FORBIDDEN = sorted(set(product(PodState, PodEvent)) - ALLOWED)
REPORTS = (PodEvent.FINISH, PodEvent.CONFLICT, PodEvent.REJECT, PodEvent.FAIL)


def gate(facts: PodFacts) -> Status:
    return unschedulable("gated") if facts.scheduling_gates else SUCCESS


def report(core: QueueCore[str], lease_id: int, event: PodEvent) -> None:
    if event is PodEvent.FINISH:
        core.done(lease_id, [POD.uid])
        return
    reasons = {
        PodEvent.CONFLICT: RequeueReason.CONFLICT,
        PodEvent.REJECT: RequeueReason.UNSCHEDULABLE,
        PodEvent.FAIL: RequeueReason.ERROR,
    }
    core.requeue(lease_id, [Requeue(POD.uid, reasons[event], ("NodeResourcesFit",))], 1.0)


def pod_in(state: PodState) -> QueueCore[str]:
    """A queue whose lease 1 is alive and had the pod, which is now in `state`."""
    core: QueueCore[str] = QueueCore(gate=gate)
    core.add([(POD, OPEN), (OTHER, OPEN)], 0.0)
    core.lease("s", 1, 2, 0.0)
    if state is PodState.ACTIVE:
        report(core, 1, PodEvent.CONFLICT)
    elif state is PodState.BACKOFF:
        report(core, 1, PodEvent.FAIL)
    elif state is PodState.UNSCHEDULABLE:
        report(core, 1, PodEvent.REJECT)
    elif state is PodState.GATED:
        core.update(POD, GATED, 0.0)
        report(core, 1, PodEvent.CONFLICT)
    elif state is PodState.DONE:
        report(core, 1, PodEvent.FINISH)
    assert state in (PodState.NEW, PodState.DELETED) or core.state_of(POD.uid) is state
    return core


def rejected_and_backing_off() -> QueueCore[str]:
    core = pod_in(PodState.IN_FLIGHT)
    core.move(["event"], 0.5)
    report(core, 1, PodEvent.REJECT)
    assert core.state_of(POD.uid) is PodState.BACKOFF
    return core


def entry_of(core: QueueCore[str], state: PodState):
    store = core._store
    entry = store.pods.here.get(POD.uid) or store.pods.ended[POD.uid]
    if state in (PodState.NEW, PodState.DELETED):
        entry.state = state
    return entry


def picture(core: QueueCore[str]) -> object:
    pods = {state: core.pods(state) for state in PodState}
    histories = {uid: entry.history for uid, entry in core._store.pods.here.items()}
    closed = {n: dict(lease.closed) for n, lease in core._store.in_flight.leases.items()}
    return pods, histories, closed, core.counts(), core.next_wakeup_s()


def test_no_state_is_left_out_of_the_table():
    assert {state for state, _, _ in ARROWS} == set(PodState) - {PodState.DELETED}
    assert {target for _, _, target in ARROWS} == set(PodState) - {PodState.NEW}


def test_every_event_is_used_by_some_arrow():
    assert {event for _, event, _ in ARROWS} == set(PodEvent)


def test_every_living_pod_can_be_updated_assigned_and_deleted():
    for state in LIVING:
        for event in (PodEvent.UPDATE, PodEvent.ASSIGN, PodEvent.DELETE):
            assert TABLE.allows(state, event)


@pytest.mark.parametrize(("state", "event"), FORBIDDEN)
def test_event_outside_the_table_raises_and_changes_nothing(state, event):
    core = pod_in(state)
    entry = entry_of(core, state)
    before = picture(core)
    with pytest.raises(IllegalTransitionError, match=f"{event.value} is not allowed in state"):
        core._store.go(entry, event)
    assert picture(core) == before


@pytest.mark.parametrize(("state", "event", "target"), ARROWS)
def test_arrow_of_the_table_leads_to_its_target(state, event, target):
    core = pod_in(state)
    if state is PodState.NEW:
        core.delete([POD.uid])
        core.add([(POD, GATED if event is PodEvent.GATE else OPEN)], 1.0)
    elif event is PodEvent.UPDATE:
        gates = GATED.scheduling_gates if state is PodState.GATED else ()
        core.update(POD, PodFacts(priority=1, scheduling_gates=gates), 1.0, [])
    elif event is PodEvent.LEASE:
        if state is PodState.BACKOFF:
            # Only pods that a plugin rejected are leased from there.
            core = rejected_and_backing_off()
        core.lease("t", 1, 1, 1.0)
    else:
        entry = entry_of(core, state)
        entry.rejected_by = ("NodeResourcesFit",)
        core._store.go(entry, event)
    assert core.state_of(POD.uid) is (PodState.NEW if target is PodState.DELETED else target)
    core.validate()


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (state, event)
        for state, event in product(PodState, REPORTS)
        if state not in (PodState.NEW, PodState.DELETED, PodState.IN_FLIGHT)
    ],
)
def test_second_report_on_a_pod_is_a_duplicate_or_an_error(state, event):
    core = pod_in(state)
    before = picture(core)
    first = {
        PodState.ACTIVE: PodEvent.CONFLICT,
        PodState.GATED: PodEvent.CONFLICT,
        PodState.BACKOFF: PodEvent.FAIL,
        PodState.UNSCHEDULABLE: PodEvent.REJECT,
        PodState.DONE: PodEvent.FINISH,
    }[state]
    if event is first:
        report(core, 1, event)
    else:
        with pytest.raises(IllegalTransitionError, match=f"lease 1 reported {first.value} before"):
            report(core, 1, event)
    assert picture(core) == before


@pytest.mark.parametrize("event", REPORTS)
def test_report_on_a_pod_that_is_not_in_the_lease_raises(event):
    core = pod_in(PodState.IN_FLIGHT)
    core.add([(PodIdentity("uid-c", "default", "c"), OPEN)], 0.0)
    lease = core.lease("t", 1, 1, 0.0)
    before = picture(core)
    with pytest.raises(IllegalTransitionError, match="not in lease 2 of t"):
        report(core, lease.lease_id, event)
    assert picture(core) == before


def test_error_tells_the_last_ten_steps_of_the_pod():
    core = pod_in(PodState.IN_FLIGHT)
    for number in range(12):
        core.update(POD, PodFacts(priority=number), 0.0, [])
    report(core, 1, PodEvent.REJECT)
    with pytest.raises(IllegalTransitionError) as caught:
        report(core, 1, PodEvent.FINISH)
    text = str(caught.value)
    assert text.startswith('queue: "uid-a": finish is not allowed in state unschedulable')
    assert text.endswith("update→in_flight, reject→unschedulable")
    assert text.count("→") == 10


def test_error_on_an_unknown_pod_says_that_nothing_happened_to_it():
    core = pod_in(PodState.IN_FLIGHT)
    with pytest.raises(IllegalTransitionError, match=r"in state new .*before it: nothing$"):
        core.done(1, ["uid-z"])


def test_batch_with_one_illegal_report_changes_nothing_at_all():
    core = pod_in(PodState.UNSCHEDULABLE)
    before = picture(core)
    with pytest.raises(IllegalTransitionError):
        core.done(1, [OTHER.uid, POD.uid])
    assert picture(core) == before


def test_stay_refuses_an_event_that_leads_elsewhere():
    core = pod_in(PodState.BACKOFF)
    with pytest.raises(AssertionError, match="does not lead back"):
        core._store.stay(entry_of(core, PodState.BACKOFF), PodEvent.ACTIVATE)
