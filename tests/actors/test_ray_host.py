"""The process of a run on Ray: its name for the dashboard, and the end of its publication."""

import asyncio
import os
import queue

import pytest

from roadstead.actors.messages import ActorStatus
from roadstead.actors.runtime import ray_host
from roadstead.actors.runtime.ray_host import HostSetup, RayHost
from roadstead.protocol.codec import DecodeLimits
from tests.actors.world import until

LIMITS = DecodeLimits(max_bytes=1000)


class Queue:
    """An actor with a status."""

    def __init__(self, directory):
        pass

    async def status(self, _):
        return ActorStatus("", metrics=(("active", 3.0),))


class Silent:
    """An actor without one."""

    def __init__(self, directory):
        pass


def host_of(build, **setup):
    return RayHost("control", {"queue": build}, None, LIMITS, HostSetup(**setup))


@pytest.fixture
def recorded(monkeypatch):
    """What is recorded at Ray, which does not run here."""
    values = []

    class Metrics:
        def record(self, figure, tags, value):
            values.append((figure.metric, tags["run"], value))

    monkeypatch.setattr("roadstead.actors.runtime.ray_metrics.RayMetrics", Metrics)
    return values


@pytest.mark.parametrize(
    ("run", "name"), [("roadstead-1", "roadstead-1 control"), ("", "roadstead control")]
)
def test_the_dashboard_shows_the_run_and_the_process(run, name):
    assert repr(host_of(Queue, run=run)) == name


async def test_a_process_publishes_the_figures_of_its_actors_once_it_is_ready(recorded):
    host = host_of(Queue, run="roadstead-1", metrics_interval_s=60.0)

    assert await host.ready() == os.getpid()
    await host.ready()
    await until(lambda: recorded)

    assert recorded == [("roadstead_queue_active_pods", "roadstead-1", 3.0)]


async def test_an_actor_without_a_status_has_no_figures(recorded):
    host = host_of(Silent, run="roadstead-1", metrics_interval_s=60.0)

    assert await host.ready() == os.getpid()
    await asyncio.sleep(0)

    assert recorded == []


async def test_nothing_is_published_with_the_interval_0(recorded, monkeypatch):
    monkeypatch.setattr(ray_host, "MetricsPublisher", None)

    assert await host_of(Queue).ready() == os.getpid()
    assert recorded == []


def test_a_process_ends_when_the_drivers_node_is_lost(monkeypatch):
    ended, driver = queue.SimpleQueue(), ("10.0.0.9", 1)
    monkeypatch.setattr(ray_host, "await_loss", lambda address, beats: ended.put(address))
    monkeypatch.setattr(os, "_exit", ended.put)

    host_of(Silent, run="roadstead-1", driver=driver)

    assert (ended.get(timeout=30), ended.get(timeout=30)) == (driver, 1)


async def test_a_process_ends_after_its_reply_without_the_head(monkeypatch):
    ended = queue.SimpleQueue()
    monkeypatch.setattr(os, "_exit", ended.put)

    await host_of(Silent, run="roadstead-1").end()

    assert ended.get(timeout=30) == 0
