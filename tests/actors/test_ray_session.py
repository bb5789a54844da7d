"""A Ray that does not start, or not in time, is an error, and its session is not kept."""

import gc
import threading
from pathlib import Path

import pytest
from ray.exceptions import AuthenticationError

from roadstead.actors.interface import ActorLostError, DeadlineError
from roadstead.actors.runtime import ray_joining, ray_session
from roadstead.actors.runtime.ray_session import RaySession, open_session
from roadstead.actors.runtime.ray_target import RayTarget
from roadstead.config.ray import RayOptions
from roadstead.protocol.errors import InputError
from tests.actors.world import GENEROUS_S, ray_left

OWN = RayTarget("local", "by the test")
JOINED = RayTarget("10.0.0.1:6379", "ray.address")


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


@pytest.fixture
def head_answers(monkeypatch):
    monkeypatch.setattr(ray_session, "connected", lambda addresses, timeout_s: set(addresses))
    monkeypatch.setattr(ray_session, "is_on_a_node", lambda timeout_s: True)


@pytest.mark.usefixtures("head_answers")
def test_other_versions_are_named_with_install_instructions(monkeypatch):
    def refuse(**options):
        raise RuntimeError(
            "Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n"
            "    Python: 3.11.9\nThis process on 10.0.0.2:0 was started with:\n"
            "    Ray: 2.60.0\n    Python: 3.11.7\n"
        )

    monkeypatch.setattr(ray_session.ray, "init", refuse)

    with pytest.raises(ActorLostError) as failure:
        RaySession(JOINED, GENEROUS_S)

    assert "Python: 3.11.9 This process" in str(failure.value)
    assert "Python: 3.11.7; all nodes and the driver need one version" in str(failure.value)


@pytest.mark.usefixtures("head_answers")
def test_a_driver_on_a_machine_that_is_no_node_fails_with_instructions(monkeypatch):
    remedy = r"\(ray.address\) cannot be joined: this machine is no node .*`ray job submit`$"
    monkeypatch.setattr(ray_session, "is_on_a_node", lambda timeout_s: False)
    with pytest.raises(ActorLostError, match=remedy):
        RaySession(JOINED, GENEROUS_S)
    ray_left()

    def refuse(**options):
        # The raylet of another cluster runs here.
        raise RuntimeError("No node info found matching attributes: '' when trying to resolve")

    monkeypatch.setattr(ray_session, "is_on_a_node", lambda timeout_s: True)
    monkeypatch.setattr(ray_session.ray, "init", refuse)
    with pytest.raises(ActorLostError, match=remedy):
        RaySession(JOINED, GENEROUS_S)


@pytest.fixture
def _no_token(monkeypatch, tmp_path):
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def refused_by_the_head(**options):
    try:
        raise RuntimeError("Unauthenticated: RPC error: InvalidAuthToken: missing or incorrect")
    except RuntimeError as cause:
        raise ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379") from cause


@pytest.mark.usefixtures("head_answers", "_no_token")
@pytest.mark.parametrize(
    ("token", "problem"),
    [("", "this process has none: set"), ("bbbb", "its head refused the token of this process")],
)
def test_a_missing_or_wrong_token_is_named_with_the_remedy(monkeypatch, token, problem):
    monkeypatch.setenv("RAY_AUTH_TOKEN", token)
    monkeypatch.setattr(ray_session.ray, "init", refused_by_the_head)

    with pytest.raises(ActorLostError, match=problem) as failure:
        RaySession(JOINED, GENEROUS_S)

    assert "RAY_AUTH_TOKEN_PATH to a file with the token" in str(failure.value)
    assert "bbbb" not in str(failure.value)


@pytest.mark.usefixtures("head_answers")
def test_a_file_without_a_token_is_named(monkeypatch):
    def refuse(**options):
        rule = "RAY_AUTH_TOKEN_PATH is set but file cannot be opened or is empty: /none"
        raise AuthenticationError(f"{rule}. Ensure that")

    monkeypatch.setattr(ray_session.ray, "init", refuse)

    with pytest.raises(ActorLostError, match=r"or is empty: /none: set RAY_AUTH_TOKEN_PATH to"):
        RaySession(JOINED, GENEROUS_S)


def test_a_raylet_that_starts_is_waited_for(monkeypatch):
    found = iter([set(), {"id"}])
    monkeypatch.setattr(ray_joining.time, "sleep", lambda _: None)
    monkeypatch.setattr(ray_joining.services, "find_node_ids", lambda: next(found))

    assert ray_joining.is_on_a_node(GENEROUS_S)
    monkeypatch.setattr(ray_joining.services, "find_node_ids", set)
    assert not ray_joining.is_on_a_node(0.0)


def test_an_initialized_ray_refuses_a_runtime_environment():
    options = RayOptions(runtime_env=Path("env.yaml"))

    with pytest.raises(InputError, match=r"ray.runtime_env.*ray.init\(runtime_env=...\)"):
        open_session(RayTarget("", "initialized by this process"), options, 1.0, "run")
