"""A user's plugin is imported in every process of a run, or refused by name."""

import os
import re
import sys
import textwrap

import pytest

from roadstead.actors.interface import Failure
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime.ray_host import HostSetup, RayHost
from roadstead.config.settings import Settings
from roadstead.fleet.generate import generate_fleet
from roadstead.protocol.errors import InputError
from roadstead.protocol.plain_data import DecodeLimits
from roadstead.run import RunPlan
from tests.actors.world import inputs_of, ray_left

MODULE = """
    import os

    from roadstead.framework.per_node import NodePlugin
    from roadstead.protocol.status import SUCCESS, unschedulable


    class OnlyEven(NodePlugin):
        name = "OnlyEven"

        def filter(self, pod, node):
            return SUCCESS if int(node.name[-1]) % 2 == 0 else unschedulable("node(s) were odd")

        def sign(self, pod):
            return ()


    if os.getpid() != {driver}:
        {elsewhere}
"""
CONFIG = """
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles:
    - plugins:
        multiPoint:
          enabled:
          - name: OnlyEven
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Return a maker of plans with a plugin in a folder. elsewhere: its code in other processes."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def make(runtime, module, elsewhere="pass"):
        text = textwrap.dedent(MODULE).format(driver=os.getpid(), elsewhere=elsewhere)
        (tmp_path / f"{module}.py").write_text(text)
        return RunPlan(
            Settings(runtime=runtime, workers=2, batch=16),
            textwrap.dedent(CONFIG),
            "mine.yaml",
            plugins=(f"{module}:OnlyEven",),
            plugin_dir=str(tmp_path),
        )

    return make


def run(plan, on_progress=lambda progress: None):
    trace = generate_fleet(12, 60, 1)
    inputs = inputs_of(trace.nodes(), trace.pods())
    return ActorLauncher().run(inputs, plan, on_progress)


def placements(outcome):
    return sorted((each.pod, each.node) for each in outcome.placements)


@pytest.mark.ray
def test_on_ray_a_plugin_decides_like_inline(plan):
    ray_left()
    on_ray = run(plan("ray", "even_on_ray"))
    ray_left()
    inline = run(plan("inline", "even_inline"))

    assert placements(on_ray) == placements(inline)
    assert {int(node[-1]) % 2 for _, node in placements(on_ray)} == {0}
    assert any("node(s) were odd" in each.message for each in inline.pending)


@pytest.mark.ray
def test_a_plugin_that_a_ray_process_can_not_import_is_reported_with_the_process(plan, tmp_path):
    ray_left()
    with pytest.raises(InputError) as refused:
        run(plan("ray", "even_at_home", 'raise ImportError("No module named only_at_home")'))
    ray_left()

    message = str(refused.value)
    assert re.match(
        r"in the process (control|worker-.|scheduler-0) on Ray: plugin: even_at_", message
    )
    assert re.search(
        r"even_at_home:OnlyEven cannot be loaded \(No module named only_at_home, at "
        r"even_at_home\.py:\d+\)$",
        message,
    )


@pytest.mark.ray
def test_a_warning_of_a_plugin_in_a_ray_process_is_shown_by_the_driver(plan):
    warns = 'import logging; logging.getLogger("mine").warning("worth a look")'
    notes = []

    ray_left()
    run(plan("ray", "even_warns", warns), lambda progress: notes.append(progress.note))
    ray_left()

    assert "Warning: scheduler-0 (mine): worth a look" in notes


async def test_a_process_with_wrong_input_stays_alive_to_report_it():
    def build(directory):
        raise InputError("is wrong", field="x")

    host = RayHost("worker-0", {"worker-0": build}, None, DecodeLimits(max_bytes=1000), HostSetup())

    failure = await host.ready()

    assert isinstance(failure, Failure)
    assert failure.text == "in the process worker-0 on Ray: x: is wrong"
