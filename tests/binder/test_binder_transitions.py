"""Each transition of the binder's table leads to its target; any other pair raises without a
change.
"""

from contextlib import suppress
from itertools import product

import pytest

from roadstead.binder import (
    TABLE,
    AppendJournal,
    BinderCore,
    BinderEvent,
    BinderState,
    BindRequest,
    TableStore,
)
from roadstead.binder.pods import BinderRecord
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SUCCESS
from tests.inside import counts_of

FACTS = PodFacts(requests=(("cpu", 100),))
OTHER = PodFacts(requests=(("cpu", 300),))
ARROWS = list(TABLE)
ALLOWED = {(state, event) for state, event, _ in ARROWS}
FORBIDDEN = sorted(set(product(BinderState, BinderEvent)) - ALLOWED)


def request(token: str = "t1", node_name: str = "n1") -> BindRequest:
    return BindRequest(token, "u1", "default/a", node_name, FACTS, "s", 1)


def pod_in(state: BinderState) -> BinderCore:
    core = BinderCore(TableStore(), lambda _: SUCCESS)
    core.add_node(NodeFacts("n1"))
    core.add_node(NodeFacts("n2"))
    if state is BinderState.UNKNOWN:
        return core
    core.add_pods([("u1", "default/a", FACTS)])
    if state in (BinderState.TENTATIVE, BinderState.BOUND):
        core.bind([request()])
    if state is BinderState.BOUND:
        core.flushed(core.last_lsn)
    if state is BinderState.DELETED:
        core.delete(["u1"])
    assert core.pod_status("u1")[0] is state
    return core


def send(core: BinderCore, event: BinderEvent) -> None:
    """Send an event to the core by its public method."""
    if event is BinderEvent.ADD:
        core.add_pods([("u1", "default/a", FACTS)])
    elif event is BinderEvent.LOAD:
        core.load([("u1", "default/a", FACTS, "n1")])
    elif event is BinderEvent.UPDATE:
        core.update_pods([("u1", OTHER)])
    elif event is BinderEvent.COMMIT:
        core.bind([request("t2", "n2")])
    elif event is BinderEvent.FLUSH:
        core.flushed(core.last_lsn)
    elif event is BinderEvent.EVICT:
        core.evict(["u1"])
    elif event is BinderEvent.DELETE:
        core.delete(["u1"])
    elif event is BinderEvent.MOVE:
        core.load([("u1", "default/a", FACTS, "n2")])
    else:
        core.unbind("u1")


def picture(core: BinderCore) -> object:
    record = core.pods.find("u1")
    known = record and (record.state, record.history, record.node_name, record.token, record.facts)
    rows = {name: core.placements.store.table.row_facts(name) for name in ("n1", "n2")}
    return known, rows, core.version, core.last_lsn, counts_of(core).unflushed


@pytest.mark.parametrize(("state", "event", "target"), ARROWS)
def test_each_transition_of_the_table_leads_to_its_target(state, event, target):
    core = pod_in(state)
    send(core, event)
    assert core.pod_status("u1")[0] is target
    core.validate()
    core.placements.store.table.validate()


@pytest.mark.parametrize(("state", "event"), FORBIDDEN)
def test_an_event_outside_the_table_raises_and_changes_nothing(state, event):
    core = pod_in(state)
    record = core.pods.find("u1") or BinderRecord("u1", "default/a", FACTS)
    before = picture(core)
    with pytest.raises(IllegalTransitionError, match=f'"u1": {event.value} is not allowed in'):
        core.pods.apply(record, event)
    assert picture(core) == before


@pytest.mark.parametrize(
    ("state", "event"),
    [
        pair
        for pair in FORBIDDEN
        # An unknown or pending pod that the cluster shows on a node is loaded, not moved; a flush
        # covers pending records, which for these pods is none or the record of their end.
        if pair[1] is not BinderEvent.FLUSH
        and (
            pair[1] is not BinderEvent.MOVE or pair[0] in (BinderState.TENTATIVE, BinderState.BOUND)
        )
    ],
)
def test_a_public_method_outside_the_table_changes_nothing(state, event):
    core = pod_in(state)
    before = picture(core)
    with suppress(IllegalTransitionError):
        send(core, event)
    assert picture(core) == before
    core.validate()


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (BinderState.UNKNOWN, BinderEvent.UPDATE),
        (BinderState.UNKNOWN, BinderEvent.DELETE),
        (BinderState.UNKNOWN, BinderEvent.EVICT),
        (BinderState.DELETED, BinderEvent.UPDATE),
        (BinderState.TENTATIVE, BinderEvent.MOVE),
        (BinderState.BOUND, BinderEvent.MOVE),
        *[(state, BinderEvent.UNBIND) for state in BinderState],
    ],
)
def test_an_event_that_contradicts_the_binder_raises(state, event):
    with pytest.raises(IllegalTransitionError):
        send(pod_in(state), event)


def test_only_deletion_leads_away_from_a_node():
    bound = (BinderState.TENTATIVE, BinderState.BOUND)
    ends = {target for state, _, target in ARROWS if state in bound}
    assert ends == {*bound, BinderState.DELETED}


def test_the_table_has_no_transition_for_unbind_or_move():
    assert {event for _, event, _ in ARROWS} == set(BinderEvent) - {
        BinderEvent.UNBIND,
        BinderEvent.MOVE,
    }


def test_an_error_lists_the_history_of_the_pod():
    core = pod_in(BinderState.BOUND)
    with pytest.raises(IllegalTransitionError) as caught:
        core.unbind("u1")
    assert str(caught.value) == (
        'binder: "u1": unbind is not allowed in state bound (a pod is bound at most once); '
        "before it: add→pending, commit→tentative, flush→bound"
    )


def test_a_flush_of_records_that_were_never_appended_raises():
    core = pod_in(BinderState.TENTATIVE)
    with pytest.raises(IllegalTransitionError, match=r"flushed\(2\) .* the last record is 1"):
        core.flushed(2)
    assert core.pod_status("u1")[0] is BinderState.TENTATIVE


def test_loading_within_one_batch_never_puts_a_pod_on_two_nodes():
    core = pod_in(BinderState.UNKNOWN)
    pod = ("u1", "default/a", FACTS)
    with pytest.raises(IllegalTransitionError, match="it is on n1, not on n2"):
        core.load([(*pod, "n1"), (*pod, "n2")])
    (effect,) = core.load([(*pod, "n1"), (*pod, "n1")])
    assert isinstance(effect, AppendJournal)
    assert len(effect.records) == 1
