"""`--workers auto` has as many workers as make a run faster, and says why."""

import itertools
import json
from dataclasses import replace

import pytest

from roadstead.cli.auto_workers import choose_workers, free_cores
from roadstead.config.settings import Settings
from tests.actors.world import identity, inputs_of, plan_of
from tests.builders import node, pod


def fleet(kinds=3000, nodes=4):
    pods = [(identity(f"p{number}"), pod(cpu=number + 1)) for number in range(kinds)]
    return inputs_of([node(f"n{number}") for number in range(nodes)], pods)


def plan_with(*names, module="tests.peculiar_plugins"):
    enabled = [{"name": name} for name in names]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
    }
    plan = plan_of(config=json.dumps(config))
    settings = plan.settings.model_copy(update={"runtime": "ray"})
    return replace(plan, settings=settings, plugins=tuple(f"{module}:{name}" for name in names))


def ticking(step_s):
    return itertools.count(0.0, step_s).__next__


@pytest.mark.parametrize(
    ("step_s", "cores", "workers", "why"),
    [
        (0.3, 4, 4, "plugins take 100.0 ms for a kind of pod, of which there are 3000"),
        (0.3, 64, 64, "plugins take 100.0 ms"),
        (0.3, 1, 0, "no two cores are free"),
        (0.0003, 4, 0, "workers would take longer to start"),
        (0.0, 4, 0, "plugins take 0.0 ms"),
    ],
)
def test_there_are_as_many_as_pay(step_s, cores, workers, why):
    plan, inputs = plan_with("LikesFewPods"), fleet()

    chosen = choose_workers(plan, inputs, cores=cores, clock_s=ticking(step_s))

    assert chosen.workers == workers
    assert why in chosen.why


def test_for_few_kinds_of_pods_no_process_is_started():
    chosen = choose_workers(
        plan_with("LikesFewPods"), fleet(kinds=5), cores=4, clock_s=ticking(0.3)
    )

    assert (chosen.workers, "longer to start" in chosen.why) == (0, True)


def test_without_plugins_of_the_user_there_is_nothing_to_ask():
    chosen = choose_workers(plan_of(), fleet(), cores=4)

    assert (chosen.workers, chosen.why) == (0, "no plugin of yours looks at one node at a time")


def test_actors_of_one_process_leave_no_core_to_workers():
    assert free_cores(Settings(runtime="inline")) == 0
