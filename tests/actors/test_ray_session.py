"""A Ray that does not start, or not in time, is an error, and its session is not kept."""

import gc
import threading

import pytest

from roadstead.actors.interface import ActorLostError, DeadlineError
from roadstead.actors.runtime import ray_session
from roadstead.actors.runtime.ray_session import RaySession
from roadstead.actors.runtime.ray_target import RayTarget
from tests.actors.world import GENEROUS_S, ray_left

OWN = RayTarget("local", "by the test")


@pytest.fixture(autouse=True)
def _no_other_session():
    """A session waits for the end of the one before it."""
    ray_left()
    yield
    ray_left()


def test_a_ray_that_does_not_start_in_time_is_an_error(monkeypatch):
    enough = threading.Event()
    monkeypatch.setattr(ray_session.ray, "init", lambda **options: enough.wait(GENEROUS_S))
    monkeypatch.setattr(ray_session.ray, "shutdown", lambda: None)

    with pytest.raises(DeadlineError, match="Ray did not answer its start"):
        RaySession(OWN, 0.01)
    enough.set()


def test_a_ray_that_can_not_start_reports_the_reason_in_one_line(monkeypatch):
    def refuse(**options):
        raise ValueError("no such address\nand much more")

    monkeypatch.setattr(ray_session.ray, "init", refuse)

    with pytest.raises(ActorLostError, match=r"^Ray did not start: no such address$"):
        RaySession(OWN, GENEROUS_S)


def test_failed_sessions_are_not_kept_until_the_process_ends(monkeypatch):
    def refuse(**options):
        raise ValueError("no such address")

    monkeypatch.setattr(ray_session.ray, "init", refuse)

    def kept():
        gc.collect()
        return sum(type(each) is RaySession for each in gc.get_objects())

    before = kept()
    for _ in range(5):
        with pytest.raises(ActorLostError):
            RaySession(OWN, GENEROUS_S)
        ray_left()

    # The frames of the last failure may still be referenced.
    assert kept() <= before + 1
