"""A worker that misses its deadline is left out of one batch, and of no other."""

import asyncio

import pytest

from roadstead.actors.runs.client import Client
from roadstead.actors.runs.launch import open_runtime
from roadstead.actors.scheduler.slow_workers import SlowWorkers
from roadstead.actors.seam import ActorLostError, DeadlineError, PatientRef
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.actors.worker.actor import WorkerActor
from roadstead.config.settings import Deadlines
from roadstead.cycle.batch import Decision
from roadstead.cycle.messages import EvaluateRequest
from tests.actors.world import GENEROUS_S, Fake, inputs_of, placed, plan_of, pods_of
from tests.builders import node, pod

REQUEST = EvaluateRequest(0, 1, 0, ())


def slow_of(evaluate_s=0.05, call_s=1.0):
    return SlowWorkers("scheduler-0", evaluate_s, call_s)


def worker_that(answer):
    return PatientRef(Fake("worker-0", evaluate=answer))


async def test_an_answer_in_time_is_the_answer():
    slow = slow_of()
    slow.begin()

    assert await slow.ask(worker_that("answer"), REQUEST) == "answer"
    assert (slow.late, slow.story) == (set(), "")


async def test_a_late_worker_is_left_out_of_all_rounds_of_a_batch_and_asked_in_the_next():
    slow, fake = slow_of(), Fake("worker-0", evaluate=DeadlineError("late"))
    slow.begin()
    assert await slow.ask(PatientRef(fake), REQUEST) is None
    asked = len(fake.calls)
    assert await slow.ask(PatientRef(fake), REQUEST) is None
    assert len(fake.calls) == asked

    slow.begin()
    fake.answers["evaluate"] = "answer"

    assert await slow.ask(PatientRef(fake), REQUEST) == "answer"
    assert slow.story == "; worker-0 was late 1 times"


async def test_a_worker_whose_answer_was_lost_is_asked_again():
    answers = iter([DeadlineError("late"), "answer"])
    slow = slow_of()

    assert await slow.ask(worker_that(lambda _: next(answers)), REQUEST) == "answer"


async def test_a_worker_that_is_gone_for_good_is_an_error():
    with pytest.raises(ActorLostError):
        await slow_of(evaluate_s=60.0).ask(worker_that(ActorLostError("gone")), REQUEST)


class InCycle:
    uid, key = "uid-a", "default/a"


async def test_pods_without_a_node_say_that_nodes_were_left_out():
    slow = slow_of()
    slow.late = {"worker-1"}
    fits, fails = Decision(InCycle, "n1"), Decision(InCycle, None, error="it broke")
    no = Decision(InCycle, None)

    judged = slow.judge([fits, fails, no])

    assert judged[:2] == [fits, fails]
    assert judged[2].error == "worker-1 did not answer in time: its nodes were left out"
    assert [slow.take_left_out("uid-a"), slow.take_left_out("uid-a")] == [True, False]


async def test_where_nobody_is_late_decisions_stay_as_they_are():
    decision = Decision(InCycle, None)

    assert slow_of().judge([decision]) == [decision]


class Pausing:
    """Makes the evaluations of one worker wait until a test lets them go."""

    def __init__(self, monkeypatch, name):
        self.enough = asyncio.Event()
        evaluate = WorkerActor.evaluate

        async def paused(actor, request):
            if actor._name == name:
                await self.enough.wait()
            return await evaluate(actor, request)

        monkeypatch.setattr(WorkerActor, "evaluate", paused)


async def test_decisions_for_others_go_on_while_a_worker_is_slow_and_its_nodes_come_back(
    monkeypatch,
):
    zones = [{"topology.kubernetes.io/zone": zone} for zone in ("a", "b")]
    nodes = [node(f"n{i}", cpu=1000, labels=labels) for i, labels in enumerate(zones)]
    pods = [*pods_of("here", facts=pod(cpu=100, node_selector=zones[0]))]
    pods += pods_of("there", facts=pod(cpu=100, node_selector=zones[1]))
    plan = plan_of(shards=2, deadlines=Deadlines(evaluate_s=0.05))
    runtime = open_runtime(plan)
    supervisor = Supervisor(runtime, plan)
    seen = []

    def progress(told):
        seen.append(told.placed)

    await supervisor.start()
    try:
        client = Client(supervisor, plan, progress)
        pausing = Pausing(monkeypatch, "worker-1")
        running = asyncio.create_task(client.run(inputs_of(nodes, pods)))
        while 1 not in seen:
            await asyncio.sleep(0.01)
        assert not running.done()
        pausing.enough.set()
        outcome = await asyncio.wait_for(running, GENEROUS_S)
    finally:
        await supervisor.stop()

    assert placed(outcome) == {"default/here": "n0", "default/there": "n1"}
    assert supervisor.restarts == []
