"""Each transition of the cache's table leads to its target; any other pair raises without a
change.
"""

from contextlib import suppress
from itertools import product

import pytest

from roadstead.cache import (
    TABLE,
    Assumption,
    BinderAnswer,
    CacheCore,
    CacheEvent,
    CacheState,
    PodOnNode,
    TableStore,
)
from roadstead.cache.pods import CacheRecord
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.protocol.errors import IllegalTransitionError
from tests.inside import apply_event, next_deadline_s

FACTS = PodFacts(requests=(("cpu", 100),))
OTHER = PodFacts(requests=(("cpu", 300),))
ARROWS = list(TABLE)
ALLOWED = {(state, event) for state, event, _ in ARROWS}
FORBIDDEN = sorted(set(product(CacheState, CacheEvent)) - ALLOWED)


def assumption(facts: PodFacts = FACTS, node_name: str = "n1", token: str = "t1") -> Assumption:
    return Assumption("u1", "default/a", facts, node_name, token)


def pod_in(state: CacheState) -> CacheCore:
    core = CacheCore(TableStore())
    core.add_node(NodeFacts("n1"))
    core.add_node(NodeFacts("n2"))
    if state is CacheState.INITIAL:
        return core
    core.assume([assumption()], 0.0)
    if state in (CacheState.ASKED, CacheState.EXPIRED):
        core.expire(900.0)
    if state is CacheState.EXPIRED:
        core.resolve([BinderAnswer("u1", "t1", None)])
    elif state is CacheState.ADDED:
        core.confirm([PodOnNode("u1", "default/a", FACTS, "n1")])
    elif state is CacheState.DELETED:
        core.remove_pods(["u1"])
    assert core.state_of("u1") is state
    return core


def send(core: CacheCore, event: CacheEvent) -> bool:
    """Send an event to the core by its public method; return False if it was refused."""
    if event is CacheEvent.ASSUME:
        return not core.assume([assumption(OTHER, "n2", "t2")], 1.0).refused
    if event is CacheEvent.FORGET:
        return not core.forget([("u1", "t1")]).refused
    if event is CacheEvent.FINISH_BINDING:
        return not core.finish_binding([("u1", "t1")], 1.0).refused
    if event is CacheEvent.ASK:
        return bool(core.expire(10_000.0))
    if event is CacheEvent.EXPIRE:
        return not core.resolve([BinderAnswer("u1", "t1", None)]).refused
    if event is CacheEvent.ADD:
        core.confirm([PodOnNode("u1", "default/a", OTHER, "n2")])
    elif event is CacheEvent.UPDATE:
        core.update_pod("u1", OTHER, "n1")
    else:
        core.remove_pods(["u1"])
    return True


def picture(core: CacheCore) -> object:
    record = core.pods.find("u1")
    known = record and (record.state, record.history, record.deadline_s, record.token)
    rows = {name: core.placements.store.table.row_facts(name) for name in ("n1", "n2")}
    return known, rows, core.counts(), core.version, next_deadline_s(core)


@pytest.mark.parametrize(("state", "event", "target"), ARROWS)
def test_each_transition_of_the_table_leads_to_its_target(state, event, target):
    core = pod_in(state)
    assert send(core, event)
    assert core.state_of("u1") is target
    core.validate()
    core.placements.store.table.validate()


@pytest.mark.parametrize(("state", "event"), FORBIDDEN)
def test_an_event_outside_the_table_raises_and_changes_nothing(state, event):
    core = pod_in(state)
    record = core.pods.find("u1") or CacheRecord("u1", "default/a", FACTS, "n1")
    before = picture(core)
    with pytest.raises(IllegalTransitionError, match=f'"u1": {event.value} is not allowed in'):
        apply_event(core, record, event)
    assert picture(core) == before


@pytest.mark.parametrize(("state", "event"), FORBIDDEN)
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
        (CacheState.INITIAL, CacheEvent.UPDATE),
        (CacheState.INITIAL, CacheEvent.REMOVE),
        (CacheState.DELETED, CacheEvent.UPDATE),
        (CacheState.ADDED, CacheEvent.ADD),
    ],
)
def test_a_cluster_event_that_contradicts_the_cache_raises(state, event):
    with pytest.raises(IllegalTransitionError):
        send(pod_in(state), event)


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (CacheState.ASSUMED, CacheEvent.ASSUME),
        (CacheState.ASKED, CacheEvent.ASSUME),
        (CacheState.ADDED, CacheEvent.ASSUME),
        (CacheState.ADDED, CacheEvent.FORGET),
        (CacheState.ASSUMED, CacheEvent.EXPIRE),
        (CacheState.ADDED, CacheEvent.EXPIRE),
    ],
)
def test_a_command_that_lost_a_race_is_refused(state, event):
    assert not send(pod_in(state), event)


def test_no_state_is_missing_in_the_table():
    assert {state for state, _, _ in ARROWS} == set(CacheState)
    assert {target for _, _, target in ARROWS} == set(CacheState)
    assert {event for _, event, _ in ARROWS} == set(CacheEvent)
