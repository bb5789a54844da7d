"""The process of a run on Ray: its name for the dashboard, and the end of its publication."""

import asyncio
import os
import queue
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.actors.interface import NOTHING, ActorLostError, Stamp, decode_reply
from roadstead.actors.messages import STATUS, ActorStatus
from roadstead.actors.runtime import ray_host, ray_metrics
from roadstead.actors.runtime.ray_host import HostSetup, RayHost
from roadstead.actors.runtime.ray_refs import parts_of
from roadstead.protocol.errors import InputError
from roadstead.protocol.plain_data import DecodeLimits
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
    """Values recorded at Ray, which does not run here."""
    values = []

    class Metrics:
        def record(self, figure, tags, value):
            values.append((figure.full_name, tags["run"], value))

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
    monkeypatch.setattr(ray_metrics, "MetricsPublisher", None)

    assert await host_of(Queue).ready() == os.getpid()
    assert recorded == []


async def test_a_process_publishes_the_figures_of_rebuilt_actors(recorded):
    host = host_of(Silent, run="roadstead-1", metrics_interval_s=0.001)
    await host.ready()

    await host.rebuild({"queue": Queue}, None)
    await until(lambda: recorded)

    assert recorded[0] == ("roadstead_queue_active_pods", "roadstead-1", 3.0)


async def test_a_long_message_comes_in_parts():
    envelope = Stamp().envelope(STATUS.name, NOTHING)

    reply = await host_of(Queue).receive("queue", *parts_of(envelope, 3))

    assert decode_reply("queue", STATUS, reply, LIMITS).metrics == (("active", 3.0),)


@given(data=st.binary(max_size=40), part_bytes=st.integers(0, 12))
def test_the_parts_of_a_message_are_short_and_nothing_else(data, part_bytes):
    parts = parts_of(data, part_bytes)

    assert b"".join(parts) == data
    assert all(len(part) <= part_bytes for part in parts) or len(parts) == 1


async def test_a_retired_process_answers_that_its_actors_are_gone():
    host = host_of(Queue)
    await host.retire()

    reply = await host.receive("queue", Stamp().envelope(STATUS.name, NOTHING))

    with pytest.raises(ActorLostError, match="queue is gone"):
        decode_reply("queue", STATUS, reply, LIMITS)


async def test_bad_input_of_a_rebuilt_actor_names_the_process():
    def refused(directory):
        raise InputError("must be known", obj="plugin", value="P")

    failure = await host_of(Queue).rebuild({"queue": refused}, None)

    assert "in the process control on Ray" in failure.text


async def test_a_build_after_a_failed_one_succeeds():
    def refused(directory):
        raise InputError("differs")

    host = host_of(Queue)
    await host.rebuild({"queue": refused}, None)

    assert await host.rebuild({"queue": Queue}, None) == os.getpid()


@pytest.mark.parametrize("source", ["", "/few_pods.py"])
async def test_bad_input_on_a_joined_cluster_names_the_process_and_its_machine(source):
    def refused(directory):
        raise InputError("differs", source=source)

    failure = await host_of(Queue, run="roadstead-1").rebuild({"queue": refused}, None)

    where = f"in the process control on {socket.gethostname()}"
    assert failure.text == ": ".join(filter(None, (source, where, "differs")))


@pytest.mark.parametrize("whose", ["driver", "own"])
def test_a_process_ends_when_the_drivers_raylet_or_its_own_is_lost(monkeypatch, whose):
    ended, raylet = queue.SimpleQueue(), ("10.0.0.9", 1)
    monkeypatch.setattr(ray_host, "await_loss", lambda address, beats: ended.put(address))
    monkeypatch.setattr(os, "_exit", ended.put)

    host_of(Silent, run="roadstead-1", **{whose: raylet})

    assert (ended.get(timeout=30), ended.get(timeout=30)) == (raylet, 1)


@pytest.mark.parametrize(("raylet", "calls"), [(("10.0.0.9", 1), 1), (None, 0)])
def test_a_process_on_a_joined_cluster_ends_without_freeing_its_objects(monkeypatch, raylet, calls):
    called, ended = [], queue.SimpleQueue()
    monkeypatch.setattr(ray_host, "await_loss", lambda address, beats: None)
    monkeypatch.setattr(os, "_exit", ended.put)
    monkeypatch.setattr(ray_host.atexit, "register", lambda *call: called.append(call))

    host_of(Silent, own=raylet)

    assert called == [(ended.put, 0)] * calls


async def test_a_process_ends_after_its_reply_without_the_head(monkeypatch):
    ended = queue.SimpleQueue()
    monkeypatch.setattr(os, "_exit", ended.put)

    await host_of(Silent, run="roadstead-1").end()

    assert ended.get(timeout=30) == 0
