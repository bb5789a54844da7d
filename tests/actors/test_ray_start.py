"""A Ray process that fails at its start is restarted, and no caller waits for it forever."""

import os
from functools import partial

import pytest

from roadstead.actors.interface import NOTHING
from roadstead.actors.messages import STATUS
from roadstead.actors.runtime import ray_child, ray_node, ray_runtime, ray_session
from roadstead.actors.runtime.ray_runtime import RayRuntime
from roadstead.protocol.plain_data import DecodeLimits
from tests.actors.test_ray_runtime import Speaker
from tests.actors.world import GENEROUS_S, ray_left

pytestmark = pytest.mark.ray

CHILD = """
import os, runpy, sys, time
if sys.argv[1] != "idle" and not sys.argv[1].endswith(".py"):
    try:
        os.mkdir({mark!r})
    except FileExistsError:
        pass
    else:
        {fault}
sys.argv[0] = {child!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""The command with which Ray starts Python: the first process of an actor fails."""


@pytest.fixture
def _ray_is_left():
    ray_left()
    yield
    ray_left()


@pytest.mark.usefixtures("_ray_is_left")
@pytest.mark.parametrize("fault", ["os._exit(1)", "time.sleep(600)"])
async def test_an_actor_whose_process_fails_at_its_start_gets_another(monkeypatch, tmp_path, fault):
    program, mark = tmp_path / "child.py", tmp_path / "failed"
    child = os.path.abspath(ray_child.__file__)
    program.write_text(CHILD.format(mark=str(mark), child=child, fault=fault))
    monkeypatch.setattr(ray_node, "CHILD", str(program))
    # A shorter timeout shortens the test.
    assert ray_session.SYSTEM_CONFIG["worker_register_timeout_seconds"] * 2 < ray_runtime.START_S
    monkeypatch.setitem(ray_session.SYSTEM_CONFIG, "worker_register_timeout_seconds", 5)
    runtime = RayRuntime(processes=1, limits=DecodeLimits())

    refs = await runtime.start(
        {"one": {"one": partial(Speaker, "one")}}, timeout_s=ray_runtime.START_S
    )

    answer = await refs["one"].call(STATUS, NOTHING, timeout_s=GENEROUS_S)
    await runtime.stop()
    assert mark.is_dir()
    assert answer.text == f"one in {runtime.pids['one']}"
