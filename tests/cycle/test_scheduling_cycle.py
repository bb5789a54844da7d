"""A scheduling cycle without actors: the needs that it yields, their order, and its use of the
answers."""

import pytest

from roadstead.config.concurrency import DecisionTime, JobTime
from roadstead.config.settings import Settings
from roadstead.cycle import scheduling_cycle
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.jobs import SimulatedLatency
from roadstead.cycle.needs import (
    CallExtenders,
    CatchUp,
    Phase,
    Prepare,
    ReadClock,
    ScoreClasses,
    WaitUntil,
    YieldToMessages,
)
from roadstead.cycle.partitions import Partition
from roadstead.cycle.scheduling_cycle import CycleParts, SchedulingCycle
from tests.builders import ROW_PLUGINS, node, pod, profile_of, table_of
from tests.cycle.noted_nodes import NotedNodes

STALE = {"schedulers": 2, "staleness_s": 5.0}


class World:
    """A cycle over n1 and n2. happens: need → what happens before it is answered."""

    def __init__(self, *, own=None, limit_batch=None, latency=None, node_search=None, **settings):
        self.nodes, self.now_s, self.happens = (
            NotedNodes(table_of(*(node(name, cpu=1000) for name in ("n1", "n2")))),
            10.0,
            {},
        )
        classes = self.nodes.table.classes
        self.profiles = {"default-scheduler": profile_of(ROW_PLUGINS, classes=classes)}
        settings = Settings(**settings)
        self.partition = own and Partition(settings, 0, own)
        parts = CycleParts(
            self.nodes, settings, self.profiles, node_search, self.partition, limit_batch
        )
        self.cycle = SchedulingCycle(parts, SimulatedLatency(latency or DecisionTime()))
        self.needs, self.decisions, self.compiled_kernel = [], [], None

    def pods(self, count, cpu=400, **facts):
        pod_class = self.nodes.table.classes.pod_class(pod(cpu=cpu, **facts))
        signature = self.profiles["default-scheduler"].signature_of(pod_class, "u")
        return [PodInCycle(f"u{n}", f"d/p{n}", pod_class, signature) for n in range(count)]

    def decide(self, pods):
        """Return (nodes of the decisions, number of pods that are finished)."""
        self.needs.clear()
        undecided = pods
        scope, pods = self.cycle.next(undecided)
        coming = self.cycle.pods_of_chain(scope, pods, undecided)
        steps, answer = self.cycle.decide(scope, pods, self.now_s, coming), None
        while True:
            try:
                need = steps.send(answer)
            except StopIteration as end:
                self.decisions, done_count = end.value
                return [each.node_name for each in self.decisions], done_count
            self.needs.append(need)
            self.happens.get(type(need), lambda: None)()
            self.now_s = getattr(need, "at_s", self.now_s)
            answer = self.answer(need)

    def answer(self, need):
        match need:
            case CallExtenders(_, work):
                return work()
            case Prepare():
                return self.compiled_kernel
            case Phase():
                return None
        return self.now_s

    def kinds(self):
        return [type(need).__name__ for need in self.needs if not isinstance(need, Phase)]


def test_a_batch_catches_up_prepares_decides_and_applies_waiting_changes():
    world = World()

    nodes, done_count = world.decide(world.pods(2))

    assert (sorted(nodes), done_count) == (["n1", "n2"], 2)
    assert world.kinds() == ["CatchUp", "Prepare", "ApplyWaiting"]
    assert [need.name for need in world.needs if isinstance(need, Phase)] == [
        "evaluate",
        "decide",
        "",
    ]
    assert not world.nodes.is_held


def test_a_fresh_enough_state_is_used_for_the_next_batch_too():
    world = World(**STALE)
    world.decide(world.pods(1))

    world.now_s += 4.0
    world.decide(world.pods(2)[1:])

    assert world.kinds() == ["Prepare", "ApplyWaiting"]


def test_a_pod_that_fits_nowhere_on_a_stale_state_is_decided_on_a_fresh_one():
    world = World(**STALE)
    world.decide(world.pods(4))
    world.happens[CatchUp] = lambda: world.nodes.table.add_node(node("n3", cpu=1000))

    found = world.decide(world.pods(5)[4:])

    assert found == (["n3"], 1)
    assert world.kinds() == [
        *("Prepare", "ApplyWaiting"),
        *("ReadClock", "CatchUp", "Prepare", "ApplyWaiting"),
    ]
    assert ReadClock() in world.needs


def test_a_single_scheduler_thinks_before_it_reads():
    latency = DecisionTime(batch=JobTime(job_s=2.0, task_s=0.5))
    world = World(decision_time=latency, latency=latency)

    world.decide(world.pods(3))

    assert world.needs[:2] == [WaitUntil(12.5), CatchUp()]
    assert world.kinds()[2:] == ["Prepare", "ApplyWaiting"]


def test_a_state_that_became_too_old_while_thinking_is_read_again():
    latency = DecisionTime(batch=JobTime(job_s=6.0, task_s=0.0))
    world = World(decision_time=latency, latency=latency, **STALE)

    world.decide(world.pods(1))

    assert world.needs[:3] == [CatchUp(), WaitUntil(16.0), CatchUp()]


def test_workers_are_asked_before_a_batch_which_then_catches_up_again():
    world = World(limit_batch=lambda cycle, pods: pods[:1])

    found = world.decide(world.pods(3))

    assert found[1] == 1
    assert world.kinds() == ["CatchUp", "Prepare", "ScoreClasses", "CatchUp", "ApplyWaiting"]
    assert [need for need in world.needs if isinstance(need, CatchUp)] == [
        CatchUp(),
        CatchUp(is_again=True),
    ]
    (scored,) = [need for need in world.needs if isinstance(need, ScoreClasses)]
    assert [each.uid for each in scored.pods] == ["u0"]


def test_messages_are_handled_between_numbers_of_decisions(monkeypatch):
    monkeypatch.setattr(scheduling_cycle, "DECISIONS_PER_PAUSE", 2)
    world = World()

    world.decide(world.pods(4, cpu=100))

    assert world.needs.count(YieldToMessages()) == 2


def test_a_pod_that_fits_on_no_own_node_is_decided_on_all_nodes():
    own = {"n1": 0, "n2": 1}
    world = World(own=own, mode="partitioned", schedulers=2, partitions=2)
    own_lane = world.cycle.scopes[1]
    pods = world.pods(3)
    world.decide(pods[:2])

    assert world.cycle.next(pods[2:])[0] is own_lane
    assert world.decide(pods[2:]) == ([], 1)
    assert world.cycle.passed_on == 1
    assert world.cycle.next(pods[2:])[0] is world.cycle.scopes[0]
    assert world.decide(pods[2:]) == (["n2"], 1)


def test_a_driver_that_raises_leaves_the_table_unlocked():
    world = World()
    steps = world.cycle.decide(*world.cycle.next(world.pods(1)), 0.0)
    need = next(steps)
    while not world.nodes.is_held:
        need = steps.send(None if isinstance(need, Prepare | Phase) else 0.0)

    with pytest.raises(TimeoutError):
        steps.throw(TimeoutError)

    assert not world.nodes.is_held
