"""Whole runs in which pods of high priority preempt others."""

import pytest

from roadstead.actors.names import BINDER, CACHE, QUEUE
from roadstead.actors.runs import client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import Settings
from roadstead.facts.pod import PodIdentity
from roadstead.queue import QueueState
from roadstead.queue.reports import PendingReason
from roadstead.queue.scheduling_queue import SchedulingQueue
from roadstead.run import RunPlan
from tests.actors.world import (
    identity,
    inputs_of,
    lines,
    placed,
    plan_of,
    pods_of,
    run_inline,
    tables_of,
)
from tests.builders import node, pod

FULL = pod(cpu=4000)
URGENT = pod(cpu=4000, priority=100)
QUICK_RETRIES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
"""


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "POLL_S", 0.002)


def running(*names, facts=FULL, on="n1"):
    return [(who, each, on) for who, each in pods_of(*names, facts=facts)]


def gone(outcome):
    """Return the preempted pods as (pod, node, preemptor), in order."""
    return [(each.pod, each.node, each.preemptor) for each in outcome.preempted]


def run(inputs, **how):
    outcome, actors = run_inline(inputs, plan_of(config=QUICK_RETRIES, **how))
    assert_all_agree(inputs, outcome, actors)
    return outcome, actors


def assert_all_agree(inputs, outcome, actors):
    """Assert that every pod is in exactly one place, and that all actors agree on it."""
    queue, cache, binder = (actors[name].core for name in (QUEUE, CACHE, BINDER))
    for core in (queue, cache, binder):
        core.validate()
    bound = {each.uid: each.node for each in outcome.placements}
    pending = {each.uid for each in outcome.pending}
    preempted = {each.uid for each in outcome.preempted}
    asked = {who.uid for who, _ in inputs.pending}
    ran = {who.uid for who, _, _ in inputs.running}
    assert bound.keys() | pending | (preempted - ran) == asked
    assert not bound.keys() & pending
    assert not preempted & (bound.keys() | pending)
    assert all(cache.node_of(uid) is binder.pod_status(uid)[1] is None for uid in preempted)
    assert {uid: cache.node_of(uid) for uid in bound} == bound
    assert cache.placements.nominated.keys() <= pending
    truth = lines(binder.placements.store.table)
    assert lines(cache.placements.store.table) == truth
    assert all(lines(table) == truth for table in tables_of(actors))


@pytest.mark.parametrize("how", [{"workers": 1}, {"workers": 2}, {}])
def test_a_pod_of_higher_priority_preempts_a_running_one_and_gets_its_node(how):
    inputs = inputs_of([node("n1")], pods_of("urgent", facts=URGENT), running("r"))

    outcome, actors = run(inputs, **how)

    assert placed(outcome) == {"default/urgent": "n1"}
    assert gone(outcome) == [("default/r", "n1", "default/urgent")]
    assert actors[QUEUE].core.state_of("uid-urgent") is QueueState.DONE


def test_a_pod_that_was_bound_in_the_same_run_is_preempted_and_reported_in_one_place():
    low, urgent = pods_of("low", facts=FULL), pods_of("urgent", facts=URGENT)
    inputs = inputs_of([node("n1")], [*low, *urgent])

    # One pod at a time, the low one first: otherwise the queue sort would put it last.
    outcome, actors = run(inputs_of([node("n1")], low))
    assert placed(outcome) == {"default/low": "n1"}

    outcome, actors = run(inputs, workers=2)

    assert placed(outcome) == {"default/urgent": "n1"}
    assert {each.pod for each in outcome.pending} == {"default/low"}
    assert actors[QUEUE].core.state_of("uid-low") is QueueState.UNSCHEDULABLE


def test_an_evicted_pod_not_yet_reported_to_the_queue_is_not_pending(monkeypatch):
    note = PendingReason("uid-r", "default/r", "no room", (), ())
    pending = SchedulingQueue.pending
    monkeypatch.setattr(
        SchedulingQueue, "pending", lambda self, *page: [*pending(self, *page), note]
    )
    inputs = inputs_of([node("n1")], pods_of("urgent", facts=URGENT), running("r"))

    outcome, _ = run(inputs)

    assert gone(outcome) == [("default/r", "n1", "default/urgent")]
    assert outcome.pending == ()


def test_the_node_with_the_least_loss_is_chosen():
    low, middle = pod(cpu=4000, priority=1), pod(cpu=4000, priority=5)
    there = [*running("a", facts=middle, on="n1"), *running("b", facts=low, on="n2")]
    inputs = inputs_of([node("n1"), node("n2")], pods_of("urgent", facts=URGENT), there)

    outcome, _ = run(inputs, workers=2)

    assert placed(outcome) == {"default/urgent": "n2"}
    assert gone(outcome) == [("default/b", "n2", "default/urgent")]


def test_the_last_started_of_equal_pods_is_preempted():
    half = pod(cpu=2000)
    there = [
        (PodIdentity("uid-new", "default", "new", 200.0), half, "n1"),
        (PodIdentity("uid-old", "default", "old", 100.0), half, "n1"),
    ]
    inputs = inputs_of([node("n1")], pods_of("urgent", facts=pod(cpu=2000, priority=9)), there)

    outcome, _ = run(inputs)

    assert gone(outcome) == [("default/new", "n1", "default/urgent")]


def test_a_pod_whose_preemption_is_forbidden_stays_pending():
    never = pod(cpu=4000, priority=100, preemption_policy="Never")
    inputs = inputs_of([node("n1")], pods_of("meek", facts=never), running("r"))

    outcome, _ = run(inputs)

    assert (placed(outcome), gone(outcome)) == ({}, [])
    assert outcome.pending[0].message.endswith(
        "preemption: not eligible due to preemptionPolicy=Never."
    )


def test_many_urgent_pods_preempt_as_many_as_they_need():
    nodes = [node(f"n{i}") for i in range(6)]
    there = [each for i in range(6) for each in running(f"r{i}", on=f"n{i}")]
    inputs = inputs_of(nodes, pods_of(*(f"u{i}" for i in range(4)), facts=URGENT), there)

    outcome, _ = run(inputs, workers=2, batch=4)

    assert len(placed(outcome)) == 4
    assert sorted(node_name for _, node_name, _ in gone(outcome)) == sorted(
        placed(outcome).values()
    )


def test_two_schedulers_never_preempt_more_than_once_for_a_pod():
    nodes = [node(f"n{i}") for i in range(6)]
    there = [each for i in range(6) for each in running(f"r{i}", on=f"n{i}")]
    inputs = inputs_of(nodes, pods_of(*(f"u{i}" for i in range(4)), facts=URGENT), there)

    outcome, _ = run(inputs, workers=2, schedulers=2, batch=1)

    assert len(placed(outcome)) + len(outcome.pending) == 4
    assert len(gone(outcome)) >= len(placed(outcome))


def test_a_nomination_in_the_input_reserves_resources_from_pods_of_lower_priority():
    nominated = pods_of("nominated", facts=pod(cpu=4000, priority=10, nominated_node_name="n1"))
    first = pods_of("first", facts=pod(cpu=4000, priority=10))
    inputs = inputs_of([node("n1")], [*first, *nominated])

    outcome, _ = run(inputs)

    assert placed(outcome) == {"default/nominated": "n1"}


def test_a_nomination_of_a_gated_pod_reserves_nothing():
    nominated = pod(cpu=4000, priority=10, nominated_node_name="n1", scheduling_gates=("wait",))
    low = pods_of("low", facts=pod(cpu=4000, priority=1))
    inputs = inputs_of([node("n1")], [*pods_of("nominated", facts=nominated), *low])

    outcome, actors = run(inputs)

    assert placed(outcome) == {"default/low": "n1"}
    assert {each.pod for each in outcome.pending} == {"default/nominated"}
    assert actors[CACHE].core.placements.nominated == {}


@pytest.mark.ray
def test_a_pod_of_higher_priority_preempts_on_ray():
    settings = Settings(runtime="ray", workers=2)
    inputs = inputs_of([node("n1")], pods_of("urgent", facts=URGENT), running("r"))

    outcome = ActorLauncher().run(inputs, RunPlan(settings), lambda progress: None)

    assert placed(outcome) == {"default/urgent": "n1"}
    assert gone(outcome) == [("default/r", "n1", "default/urgent")]


def test_identities_name_the_pods_in_the_order_of_their_eviction():
    quarter = pod(cpu=1000)
    there = [(identity(name), quarter, "n1") for name in ("a", "b", "c", "d")]
    inputs = inputs_of([node("n1")], pods_of("urgent", facts=pod(cpu=2000, priority=5)), there)

    outcome, _ = run(inputs)

    assert gone(outcome) == [
        ("default/c", "n1", "default/urgent"),
        ("default/d", "n1", "default/urgent"),
    ]
