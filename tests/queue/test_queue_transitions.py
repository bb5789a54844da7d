"""Each transition of the queue's table leads to its target; any other pair raises without a
change.
"""

from itertools import product

import pytest

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SUCCESS, Status, unschedulable
from roadstead.queue import (
    QUEUED,
    TABLE,
    QueueCore,
    QueueEvent,
    QueueState,
    Requeue,
    RequeueReason,
)
from tests.inside import store_of

POD = PodIdentity("uid-a", "default", "a")
OTHER = PodIdentity("uid-b", "default", "b")
GATED = PodFacts(scheduling_gates=("wait",))
OPEN = PodFacts()
ARROWS = [(state, event, target) for state, event, target in TABLE]
ALLOWED = {(state, event) for state, event, _ in ARROWS}
FORBIDDEN = sorted(set(product(QueueState, QueueEvent)) - ALLOWED)
REPORTS = (QueueEvent.FINISH, QueueEvent.CONFLICT, QueueEvent.REJECT, QueueEvent.FAIL)


def gate(facts: PodFacts) -> Status:
    return unschedulable("gated") if facts.scheduling_gates else SUCCESS


def report(core: QueueCore[str], lease_id: int, event: QueueEvent) -> None:
    if event is QueueEvent.FINISH:
        core.done(lease_id, [POD.uid])
        return
    reasons = {
        QueueEvent.CONFLICT: RequeueReason.CONFLICT,
        QueueEvent.REJECT: RequeueReason.UNSCHEDULABLE,
        QueueEvent.FAIL: RequeueReason.ERROR,
    }
    core.requeue(lease_id, [Requeue(POD.uid, reasons[event], ("NodeResourcesFit",))], 1.0)


def pod_in(state: QueueState) -> QueueCore[str]:
    """A queue whose lease 1 is open and had the pod, which is now in `state`."""
    core: QueueCore[str] = QueueCore(gate=gate)
    core.add([(POD, OPEN), (OTHER, OPEN)], 0.0)
    core.lease("s", 1, 2, 0.0)
    if state is QueueState.ACTIVE:
        report(core, 1, QueueEvent.CONFLICT)
    elif state is QueueState.BACKOFF:
        report(core, 1, QueueEvent.FAIL)
    elif state is QueueState.UNSCHEDULABLE:
        report(core, 1, QueueEvent.REJECT)
    elif state is QueueState.GATED:
        core.update(POD, GATED, 0.0)
        report(core, 1, QueueEvent.CONFLICT)
    elif state is QueueState.DONE:
        report(core, 1, QueueEvent.FINISH)
    assert state in (QueueState.NEW, QueueState.DELETED) or core.state_of(POD.uid) is state
    return core


def rejected_and_backing_off() -> QueueCore[str]:
    core = pod_in(QueueState.IN_FLIGHT)
    core.move(["event"], 0.5)
    report(core, 1, QueueEvent.REJECT)
    assert core.state_of(POD.uid) is QueueState.BACKOFF
    return core


def entry_of(core: QueueCore[str], state: QueueState):
    store = store_of(core)
    entry = store.pods.present.get(POD.uid) or store.pods.ended[POD.uid]
    if state in (QueueState.NEW, QueueState.DELETED):
        entry.state = state
    return entry


def picture(core: QueueCore[str]) -> object:
    pods = {state: core.pods(state) for state in QueueState}
    histories = {uid: entry.history for uid, entry in store_of(core).pods.present.items()}
    closed = {n: dict(lease.closed) for n, lease in store_of(core).in_flight.leases.items()}
    return pods, histories, closed, core.counts(), core.next_wakeup_s()


def test_no_state_is_missing_in_the_table():
    assert {state for state, _, _ in ARROWS} == set(QueueState) - {QueueState.DELETED}
    assert {target for _, _, target in ARROWS} == set(QueueState) - {QueueState.NEW}


def test_every_event_is_used_by_some_transition():
    assert {event for _, event, _ in ARROWS} == set(QueueEvent)


def test_every_live_pod_can_be_updated_assigned_and_deleted():
    for state in QUEUED:
        for event in (QueueEvent.UPDATE, QueueEvent.ASSIGN, QueueEvent.DELETE):
            assert TABLE.allows(state, event)


@pytest.mark.parametrize(("state", "event"), FORBIDDEN)
def test_an_event_outside_the_table_raises_and_changes_nothing(state, event):
    core = pod_in(state)
    entry = entry_of(core, state)
    before = picture(core)
    with pytest.raises(IllegalTransitionError, match=f"{event.value} is not allowed in state"):
        store_of(core).apply(entry, event)
    assert picture(core) == before


@pytest.mark.parametrize(("state", "event", "target"), ARROWS)
def test_each_transition_of_the_table_leads_to_its_target(state, event, target):
    core = pod_in(state)
    if state is QueueState.NEW:
        core.delete([POD.uid])
        core.add([(POD, GATED if event is QueueEvent.GATE else OPEN)], 1.0)
    elif event is QueueEvent.UPDATE:
        gates = GATED.scheduling_gates if state is QueueState.GATED else ()
        core.update(POD, PodFacts(priority=1, scheduling_gates=gates), 1.0, [])
    elif event is QueueEvent.LEASE:
        if state is QueueState.BACKOFF:
            # Only pods that a plugin rejected are leased from there.
            core = rejected_and_backing_off()
        core.lease("t", 1, 1, 1.0)
    else:
        entry = entry_of(core, state)
        entry.rejected_by = ("NodeResourcesFit",)
        store_of(core).apply(entry, event)
    assert core.state_of(POD.uid) is (QueueState.NEW if target is QueueState.DELETED else target)
    core.validate()


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (state, event)
        for state, event in product(QueueState, REPORTS)
        if state not in (QueueState.NEW, QueueState.DELETED, QueueState.IN_FLIGHT)
    ],
)
def test_a_second_report_on_a_pod_is_a_duplicate_or_an_error(state, event):
    core = pod_in(state)
    before = picture(core)
    first = {
        QueueState.ACTIVE: QueueEvent.CONFLICT,
        QueueState.GATED: QueueEvent.CONFLICT,
        QueueState.BACKOFF: QueueEvent.FAIL,
        QueueState.UNSCHEDULABLE: QueueEvent.REJECT,
        QueueState.DONE: QueueEvent.FINISH,
    }[state]
    if event is first:
        report(core, 1, event)
    else:
        with pytest.raises(IllegalTransitionError, match=f"lease 1 reported {first.value} before"):
            report(core, 1, event)
    assert picture(core) == before


@pytest.mark.parametrize("event", REPORTS)
def test_a_report_on_a_pod_outside_the_lease_raises(event):
    core = pod_in(QueueState.IN_FLIGHT)
    core.add([(PodIdentity("uid-c", "default", "c"), OPEN)], 0.0)
    lease = core.lease("t", 1, 1, 0.0)
    before = picture(core)
    with pytest.raises(IllegalTransitionError, match="not in lease 2 of t"):
        report(core, lease.lease_id, event)
    assert picture(core) == before


def test_an_error_lists_the_last_ten_steps_of_the_pod():
    core = pod_in(QueueState.IN_FLIGHT)
    for number in range(12):
        core.update(POD, PodFacts(priority=number), 0.0, [])
    report(core, 1, QueueEvent.REJECT)
    with pytest.raises(IllegalTransitionError) as caught:
        report(core, 1, QueueEvent.FINISH)
    text = str(caught.value)
    assert text.startswith('queue: "uid-a": finish is not allowed in state unschedulable')
    assert text.endswith("update→in_flight, reject→unschedulable")
    assert text.count("→") == 10


def test_an_error_on_an_unknown_pod_reports_an_empty_history():
    core = pod_in(QueueState.IN_FLIGHT)
    with pytest.raises(IllegalTransitionError, match=r"in state new .*before it: nothing$"):
        core.done(1, ["uid-z"])


def test_one_illegal_report_leaves_the_whole_batch_without_effect():
    core = pod_in(QueueState.UNSCHEDULABLE)
    before = picture(core)
    with pytest.raises(IllegalTransitionError):
        core.done(1, [OTHER.uid, POD.uid])
    assert picture(core) == before


def test_stay_refuses_an_event_that_leads_elsewhere():
    core = pod_in(QueueState.BACKOFF)
    with pytest.raises(AssertionError, match="does not lead back"):
        store_of(core).stay(entry_of(core, QueueState.BACKOFF), QueueEvent.ACTIVATE)
