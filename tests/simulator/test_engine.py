"""The engine plays pods, nodes and commands in the order of virtual time."""

from itertools import pairwise, repeat

import pytest

from roadstead.simulator.component import (
    Component,
    CreatePods,
    DropNode,
    EndPod,
    NewPod,
    Note,
    PutNode,
    WakeAt,
)
from roadstead.simulator.delay import Delay
from roadstead.simulator.simulated_pods import Ending
from tests.builders import node, pod
from tests.simulator.plays import SECOND_US, plan_of, played

BIG = pod(cpu=3000)


class Script(Component):
    """A component that returns listed commands at listed times, and logs what it sees."""

    sees_all_pods = True

    def __init__(self, *steps):
        self._steps = dict(steps)
        self.seen = []

    def attach(self, world):
        self.world = world

    def begin(self):
        return [WakeAt(int(at_s * SECOND_US), (at_s,)) for at_s in self._steps]

    def wake(self, key):
        return self._steps[key[0]]

    def pod_started(self, life):
        self.seen.append(("started", life.identity.name))
        return ()

    def pod_ended(self, life):
        self.seen.append((str(life.ends_as), life.identity.name))
        return ()

    def node_put(self, facts, *, is_new):
        self.seen.append(("new" if is_new else "changed", facts.name))
        return ()

    def node_dropped(self, name):
        self.seen.append(("dropped", name))
        return ()


def test_a_pod_is_bound_runs_and_ends():
    heard, engine = played(plan_of([node("n1")], [(1.0, "a", BIG, 5.0)], start_delay_us=2_000_000))

    assert heard.rows == [(1.0, "bound", "a", "n1"), (8.0, "done", "a")]
    assert not engine.pods


def test_a_pod_waits_until_another_one_ends():
    arrivals = [(1.0, "a", BIG, 5.0), (2.0, "b", BIG, 5.0)]

    heard, _ = played(plan_of([node("n1")], arrivals))

    assert heard.rows == [
        (1.0, "bound", "a", "n1"),
        (2.0, "pending", "b", ""),
        (6.0, "done", "a"),
        (6.0, "bound", "b", "n1"),
        (11.0, "done", "b"),
    ]


def test_pods_that_end_at_a_time_free_resources_for_arrivals_at_that_time():
    arrivals = [(1.0, "a", BIG, 5.0), (6.0, "b", BIG, 5.0)]

    heard, _ = played(plan_of([node("n1")], arrivals))

    assert (6.0, "bound", "b", "n1") in heard.rows


def test_a_preempted_pod_ends_for_its_preemptor():
    high = pod(cpu=3000, priority=10)

    heard, _ = played(plan_of([node("n1")], [(1.0, "a", BIG, 50.0), (2.0, "b", high, 5.0)]))

    assert heard.of("bound", "preempted") == [
        (1.0, "bound", "a", "n1"),
        (2.0, "preempted", "a"),
        (2.0, "bound", "b", "n1"),
    ]


def test_a_pod_that_fits_nowhere_is_tried_again_after_five_minutes():
    heard, _ = played(plan_of([node("n1")], [(1.0, "a", pod(cpu=9000), None)], horizon_s=700.0))

    assert [row[0] for row in heard.of("pending")] == [1.0, 301.0, 601.0]


def test_a_terminating_pod_uses_its_node_until_its_grace_is_over():
    arrivals = [(1.0, "a", BIG, None), (3.0, "b", BIG, None)]
    script = Script((2.0, [EndPod("default/a", Ending.EVICTED)]))

    heard, _ = played(plan_of([node("n1")], arrivals, grace_s=4.0), script)

    assert heard.of("evicted", "bound") == [
        (1.0, "bound", "a", "n1"),
        (6.0, "evicted", "a"),
        (6.0, "bound", "b", "n1"),
    ]


def test_a_pod_that_is_deleted_before_it_is_bound_ends_at_once():
    script = Script((2.0, [EndPod("default/a", Ending.DELETED), EndPod("default/x", Ending.LOST)]))

    heard, engine = played(
        plan_of([node("n1")], [(1.0, "a", pod(cpu=9000), 5.0)], grace_s=4), script
    )

    assert heard.of("deleted") == [(2.0, "deleted", "a")]
    assert not engine.pods
    assert engine.cluster.waiting_count == 0


def test_pods_on_a_removed_node_are_lost_and_a_new_node_takes_waiting_ones():
    arrivals = [(1.0, "a", BIG, None), (2.0, "b", BIG, None)]
    script = Script((3.0, [DropNode("n1"), Note("lost", "n1")]), (5.0, [PutNode(node("n2"))]))

    heard, _ = played(plan_of([node("n1")], arrivals), script)

    assert heard.of("lost", "bound") == [
        (1.0, "bound", "a", "n1"),
        (3.0, "lost", "a"),
        (3.0, "lost", "n1"),
        (5.0, "bound", "b", "n2"),
    ]
    assert ("dropped", "n1") in script.seen
    assert ("new", "n2") in script.seen


def test_a_name_may_be_used_again():
    new = CreatePods((NewPod("default", "web-0", BIG, 2 * SECOND_US, reuses_name=True),))
    script = Script((1.0, [new]), (4.0, [new]))

    heard, _ = played(plan_of([node("n1")]), script)

    assert heard.of("done") == [(3.0, "done", "web-0"), (6.0, "done", "web-0")]


def test_a_gang_is_placed_together():
    heard, _ = played(plan_of([node("n1"), node("n2")], [(1.0, "a,b", BIG, 5.0)]))

    assert [row[2] for row in heard.of("bound")] == ["a", "b"]


def test_decisions_that_take_time_delay_the_pods_behind_them():
    small = pod(cpu=100)
    arrivals = [(1.0, "a", small, None), (1.0, "b", small, None), (1.5, "c", small, None)]
    delay = Delay(repeat(2 * SECOND_US))

    heard, _ = played(plan_of([node("n1")], arrivals, settings={"batch": 1}), delay=delay)

    assert [(row[0], row[2]) for row in heard.of("bound")] == [(3.0, "a"), (5.0, "b"), (7.0, "c")]


def test_pods_whose_backoff_ends_wait_until_the_scheduler_is_free():
    # The others fail, back off, and fit when the first pod ends.
    small = pod(cpu=700)
    arrivals = [(0.0, "first", BIG, 2.8), *((0.1, f"p{k}", small, None) for k in range(5))]
    delay = Delay(repeat(2 * SECOND_US // 5))

    nodes = [node("n1", cpu=3600)]
    heard, _ = played(plan_of(nodes, arrivals, settings={"batch": 1}), delay=delay)

    times = [row[0] for row in heard.of("bound")]
    assert len(times) == 6
    assert all(after - before > 0.39 for before, after in pairwise(times)), times


def test_all_pods_of_a_batch_are_bound_before_the_next_one_begins():
    low, high = pod(cpu=3000, priority=1), pod(cpu=3000, priority=9)
    arrivals = [(1.0, "low", low, None), (1.1, "high", high, None)]
    delay = Delay(repeat(SECOND_US // 2))

    heard, _ = played(plan_of([node("n1")], arrivals, settings={"batch": 1}), delay=delay)

    # `low` is bound when its decision is over, and only then is preempted.
    assert heard.of("bound")[0] == (1.5, "bound", "low", "n1")
    assert (1.5, "preempted", "low") in heard.rows


@pytest.mark.parametrize("classes", [7, 200])
def test_pods_are_placed_alike_with_and_without_the_kernel(classes):
    # 200 classes: each takes the place of another one in the kernel of single pods.
    pods = [pod(cpu=100 + k % classes, memory=(1 + k % classes) << 20) for k in range(200)]
    arrivals = [(float(k), f"p{k}", facts, 40.0 + k) for k, facts in enumerate(pods)]
    nodes = [node(f"n{k}", cpu=1000) for k in range(5)]

    heard, _ = played(plan_of(nodes, arrivals, horizon_s=300.0), has_kernel=False)
    other, _ = played(plan_of(nodes, arrivals, horizon_s=300.0))

    assert heard.rows == other.rows
    assert len(heard.of("bound")) > 100


def test_samples_are_taken_at_their_interval_and_at_the_end():
    heard, _ = played(plan_of([node("n1")], [(1.0, "a", BIG, 5.0)], horizon_s=95.0))

    assert heard.samples == 11
