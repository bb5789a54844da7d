"""Bounds of the queue's memory, and the behaviour beyond them."""

import pytest

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.queue import EventRules, QueueCore, QueueSettings, QueueState, Requeue, RequeueReason
from roadstead.queue import nominator as nominator_module
from roadstead.queue.nominator import Nominator
from tests.inside import objects_in

FIT, TAINT = "NodeResourcesFit", "TaintToleration"


def identity(name):
    return PodIdentity(name, "default", name)


def queue_of(*names, **settings):
    """A queue in which an event helps the plugin of its name."""
    rules = EventRules(hint=lambda plugin, event, facts: plugin == event)
    core = QueueCore(rules=rules, settings=QueueSettings(**settings))
    core.add([(identity(name), PodFacts()) for name in names], 0.0)
    return core


def test_default_durations_and_bounds_are_the_documented_ones():
    core = QueueCore()
    core.add([(identity("a"), PodFacts())], 0.0)
    batch = core.lease("s", 1, 1, 0.0)
    assert batch.deadline_s == 30.0
    core.requeue(batch.lease_id, [Requeue("a", RequeueReason.UNSCHEDULABLE, (FIT,))], 0.0)
    assert core.next_wakeup_s() == 300.0

    bounds = core.settings
    assert (bounds.max_pods, bounds.max_done_remembered) == (2_000_000, 65_536)
    assert (bounds.max_in_flight_events, bounds.max_bypasses) == (10_000, 10_000)
    assert not bounds.by_profile


@pytest.mark.parametrize(("count", "state"), [(64, "unschedulable"), (65, "backoff")])
def test_any_event_may_have_helped_after_too_many_for_a_pod_in_flight(count, state):
    core = queue_of("a")
    batch = core.lease("s", 1, 1, 0.0)
    for number in range(count):
        core.update(identity("a"), PodFacts(priority=number), 0.0, [TAINT])

    core.requeue(batch.lease_id, [Requeue("a", RequeueReason.UNSCHEDULABLE, (FIT,))], 0.0)

    assert core.state_of("a") is QueueState(state)


def test_nominated_facts_are_one_object_per_class_and_node():
    nominator, one, other = Nominator({}), PodFacts(), PodFacts(priority=1)

    first = [nominator.facts_for(facts, name) for facts in (one, other) for name in ("n1", "n2")]
    again = [nominator.facts_for(facts, name) for facts in (one, other) for name in ("n1", "n2")]

    assert [(each.priority, each.nominated_node_name) for each in first] == [
        (0, "n1"),
        (0, "n2"),
        (1, "n1"),
        (1, "n2"),
    ]
    assert list(map(id, first)) == list(map(id, again))
    assert nominator.facts_for(first[0], "n1") is first[0]


def test_the_number_of_remembered_nominated_facts_is_bounded(monkeypatch):
    monkeypatch.setattr(nominator_module, "MAX_CACHED_FACTS", 3)
    nominator = Nominator({})

    for number in range(10):
        facts = nominator.facts_for(PodFacts(), f"n{number}")
        assert facts.nominated_node_name == f"n{number}"
        # Each entry has the facts and the same facts with the nomination.
        assert len(objects_in(nominator, PodFacts)) <= 2 * 3


def test_an_update_is_a_step_of_the_pods_history():
    core = queue_of("a", "b")
    core.update(identity("b"), PodFacts(labels=(("a", "b"),)), 0.0)
    batch = core.lease("s", 1, 1, 0.0)

    with pytest.raises(IllegalTransitionError, match="before it: add→active, update→active"):
        core.done(batch.lease_id, ["b"])


def test_nominations_of_deleted_pods_are_forgotten(monkeypatch):
    monkeypatch.setattr(nominator_module, "MAX_GONE", 3)
    nominator = Nominator({})

    for number in range(10):
        nominator.index(f"p{number}", "n1")
        assert len([each for each in objects_in(nominator, str) if each.startswith("p")]) <= 3, (
            "names of at most the last three pods are kept"
        )

    assert nominator.all() == []
