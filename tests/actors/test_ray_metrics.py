"""Publication of metrics: what is recorded for each actor, and when it ends."""

import asyncio

import pytest

from roadstead.actors.interface import clock_s
from roadstead.actors.messages import ActorStatus
from roadstead.actors.runtime.ray_metrics import MetricsPublisher
from tests.actors.world import GENEROUS_S, until


class Actors:
    """The statuses of the actors of a process, which a test sets."""

    def __init__(self, **metrics):
        self.metrics = metrics
        self.recorded = []

    def look_at(self, name):
        async def look():
            return ActorStatus("", metrics=tuple(self.metrics[name].items()))

        return look

    def publisher(self):
        looks = {name.replace("_", "-"): self.look_at(name) for name in self.metrics}
        return MetricsPublisher("roadstead-1", looks, self.record)

    def record(self, metric, tags, value):
        self.recorded.append((metric.full_name, dict(tags), value))


async def test_gauges_are_recorded_with_run_role_and_name():
    actors = Actors(queue={"active": 7.0}, scheduler_3={"under_way": 2.0})

    await actors.publisher().publish()

    run = {"run": "roadstead-1"}
    assert actors.recorded == [
        ("roadstead_queue_active_pods", run | {"role": "queue", "name": "queue"}, 7.0),
        (
            "roadstead_scheduler_under_way_pods",
            run | {"role": "scheduler", "name": "scheduler-3"},
            2.0,
        ),
    ]


async def test_a_gauge_is_recorded_each_time_and_a_counter_when_it_grows():
    actors = Actors(scheduler_0={"decided": 5.0, "under_way": 2.0})
    publisher = actors.publisher()

    await publisher.publish()
    await publisher.publish()
    actors.metrics["scheduler_0"]["decided"] = 12.0
    await publisher.publish()

    values = [(name, value) for name, _, value in actors.recorded]
    assert [value for name, value in values if name == "roadstead_scheduler_decided_pods"] == [5, 7]
    gauge = "roadstead_scheduler_under_way_pods"
    assert [value for name, value in values if name == gauge] == [2, 2, 2]


async def test_counters_of_one_label_are_counted_by_their_values():
    actors = Actors(scheduler_0={"refused fit": 1.0})
    publisher = actors.publisher()

    await publisher.publish()
    actors.metrics["scheduler_0"] |= {"refused fit": 2.0, "refused version": 4.0}
    await publisher.publish()

    assert [(tags["cause"], value) for _, tags, value in actors.recorded] == [
        ("fit", 1.0),
        ("fit", 1.0),
        ("version", 4.0),
    ]


async def test_counters_of_two_actors_of_one_process_are_apart():
    actors = Actors(scheduler_0={"decided": 5.0}, scheduler_1={"decided": 8.0})

    await actors.publisher().publish()

    assert [(tags["name"], value) for _, tags, value in actors.recorded] == [
        ("scheduler-0", 5.0),
        ("scheduler-1", 8.0),
    ]


async def test_values_that_are_no_figures_are_not_recorded():
    actors = Actors(scheduler_0={"kernel: stopped: a term": 5.0, "text": 1.0})

    await actors.publisher().publish()

    assert actors.recorded == []


async def test_figures_are_published_at_once_and_then_at_the_interval():
    actors = Actors(queue={"active": 7.0})
    times = []
    actors.record = lambda *_: times.append(clock_s())

    live = asyncio.create_task(actors.publisher().run(0.01))
    await until(lambda: len(times) >= 3)
    live.cancel()

    with pytest.raises(asyncio.CancelledError):
        await live


async def test_a_failure_ends_the_publication_and_nothing_else():
    calls = []

    async def look():
        calls.append(clock_s())
        raise KeyError("gone")

    publisher = MetricsPublisher("roadstead-1", {"queue": look}, lambda *_: None)

    assert await asyncio.wait_for(publisher.run(0.01), GENEROUS_S) is None
    assert len(calls) == 1, "it publishes nothing after the failure"
