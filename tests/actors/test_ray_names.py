"""Names of the Ray actors of a run: runs in one namespace have no name in common."""

from types import SimpleNamespace

import pytest

from roadstead.actors.interface import ActorLostError
from roadstead.actors.runtime import ray_refs, ray_runtime
from roadstead.actors.runtime.ray_refs import RayDirectory
from roadstead.actors.runtime.ray_runtime import RayRuntime
from roadstead.actors.runtime.ray_target import RayTarget
from roadstead.config.ray import RayOptions
from tests.actors.world import plan_of


@pytest.fixture
def actors(monkeypatch):
    """The Ray actors by (namespace, name)."""
    made = {}

    def get_actor(name, namespace):
        if (namespace, name) not in made:
            raise ValueError(name)
        return made[namespace, name]

    monkeypatch.setattr(ray_refs.ray, "get_actor", get_actor)
    return made


def directory(run, namespace="shared"):
    return RayDirectory(run, namespace, plan_of().limits, {"queue": "control"})


def test_two_runs_in_one_namespace_find_their_own_actors(actors):
    actors["shared", "roadstead-1.control"] = SimpleNamespace(of="1")
    actors["shared", "roadstead-2.control"] = SimpleNamespace(of="2")

    assert directory("roadstead-1").find("queue").handle.of == "1"
    assert directory("roadstead-2").find("queue").handle.of == "2"
    with pytest.raises(ActorLostError):
        directory("roadstead-3").find("queue")


def test_the_namespace_is_that_of_the_settings_else_the_name_of_the_run(monkeypatch):
    opened = []
    monkeypatch.setattr(ray_runtime, "open_session", lambda *given: opened.append(given[3]))
    monkeypatch.setattr(ray_runtime, "target_of", lambda *_, **__: RayTarget("local", ""))
    monkeypatch.setattr(ray_runtime, "initialized_address", lambda: None)

    for options in (RayOptions(namespace="team"), RayOptions(), RayOptions()):
        RayRuntime(processes=1, limits=plan_of().limits, options=options)

    assert opened[0] == "team"
    assert opened[1].startswith("roadstead-")
    assert opened[1] != opened[2]
