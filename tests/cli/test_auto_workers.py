"""`--workers auto` chooses the number of workers that makes a run faster, and states the reason."""

import itertools
import json
from dataclasses import replace
from functools import partial

import pytest

from roadstead.cli import auto_workers
from roadstead.cli.auto_workers import FreeCores, choose_workers, free_cores
from roadstead.cli.concurrency_options import AUTO, ConcurrencyOptions
from roadstead.cli.plan import with_workers
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


class Many:
    """A number of nodes without contents."""

    def __init__(self, count):
        self._count = count

    def __len__(self):
        return self._count


def free(workers, may_grow=False):
    return lambda: FreeCores(workers, may_grow)


def ticking(step_s):
    return itertools.count(0.0, step_s).__next__


@pytest.mark.parametrize(
    ("step_s", "cores", "workers", "why"),
    [
        (0.3, 4, 4, "plugins take 100.0 ms for each pod shape; number of shapes: 3000"),
        (0.3, 64, 64, "plugins take 100.0 ms"),
        (0.3, 1, 0, "fewer than two cores are free"),
        (0.0003, 4, 0, "starting workers would take longer"),
        (0.0, 4, 0, "plugins take 0.0 ms"),
    ],
)
def test_the_number_of_workers_is_the_one_that_pays(step_s, cores, workers, why):
    plan, inputs = plan_with("LikesFewPods"), fleet()

    chosen = choose_workers(plan, inputs, free(cores), clock_s=ticking(step_s))

    assert chosen.workers == workers
    assert why in chosen.why


@pytest.mark.parametrize(
    ("step_s", "cores", "workers", "maximum", "why"),
    [
        (0.03, 4, 4, 10, "number of shapes: 3000"),
        (0.03, 64, 10, 10, "number of shapes: 3000"),
        (0.03, 1, 0, 10, "too few cores are free"),
        (0.03, 0, 0, 10, "too few cores are free"),
        (3.0, 4, 4, 64, "number of shapes: 3000"),
        (0.0003, 0, 0, 0, "starting workers would take longer"),
    ],
)
def test_on_a_cluster_more_workers_may_be_added_up_to_the_number_that_pays(
    step_s, cores, workers, maximum, why
):
    plan, inputs = plan_with("LikesFewPods"), fleet()

    chosen = choose_workers(plan, inputs, free(cores, may_grow=True), clock_s=ticking(step_s))

    assert (chosen.workers, chosen.maximum) == (workers, maximum)
    assert chosen.why.endswith(why)


def test_more_workers_than_a_cluster_may_have_can_pay_on_one_machine(monkeypatch):
    monkeypatch.setattr(auto_workers, "WORKER_START_S", 0.987)
    monkeypatch.setattr(auto_workers, "MIN_PLUGINS_S", 0.0001)

    chosen = choose_workers(
        plan_with("LikesFewPods"), fleet(kinds=1), free(100), clock_s=ticking(1.0)
    )

    assert (chosen.workers, chosen.why.split("; ")[1:]) == (100, ["number of shapes: 1"])


@pytest.mark.parametrize(
    ("room", "workers_max", "note"),
    [
        (6, 64, "; up to 64 if CPUs of the Ray cluster become free"),
        (1000, 0, "number of shapes: 3000"),
        (None, 0, "number of shapes: 3000"),
    ],
)
def test_a_run_on_a_cluster_knows_how_many_workers_it_may_have(
    monkeypatch, capsys, room, workers_max, note
):
    chosen = partial(choose_workers, clock_s=ticking(3.0))
    monkeypatch.setattr(auto_workers, "choose_workers", chosen)
    monkeypatch.setattr(auto_workers, "usable_cores", lambda: 9)
    plan = plan_with("LikesFewPods")

    grown = with_workers(plan, ConcurrencyOptions(workers=AUTO), fleet(), lambda _: room)

    assert grown.workers_max == workers_max
    assert capsys.readouterr().err.rstrip().endswith(note)


def test_for_few_classes_of_pods_no_worker_is_started():
    chosen = choose_workers(
        plan_with("LikesFewPods"), fleet(kinds=5), free(4), clock_s=ticking(0.3)
    )

    assert (chosen.workers, "would take longer" in chosen.why) == (0, True)


def test_without_user_plugins_no_worker_is_started():
    chosen = choose_workers(plan_of(), fleet(), free(4))

    assert (chosen.workers, "no plugin of yours" in chosen.why) == (0, True)


@pytest.mark.parametrize(
    ("changes", "cores", "workers", "why"),
    [
        ({}, 3, 3, "evaluating 40,000 nodes takes about 0.3 ms for each pod shape"),
        ({}, 64, 3, "number of shapes: 30000"),
        ({}, 1, 0, "fewer than two cores are free"),
        ({"kernel": False}, 3, 0, "this run uses no lists of best nodes"),
        ({"tie_break": "first"}, 3, 0, "this run uses no lists of best nodes"),
        ({"mode": "partitioned", "schedulers": 2}, 3, 0, "this run uses no lists of best nodes"),
    ],
)
def test_workers_list_the_best_nodes_of_large_fleets(changes, cores, workers, why):
    plan, inputs = plan_of(), fleet(kinds=30_000)
    given = {"runtime": "ray", "kernel": True, "tie_break": "random", **changes}
    plan = replace(plan, settings=plan.settings.model_copy(update=given))

    chosen = choose_workers(plan, replace(inputs, nodes=Many(40_000)), free(cores))

    assert (chosen.workers, why in chosen.why) == (workers, True)


def test_for_few_classes_on_a_large_fleet_no_worker_is_started():
    plan, inputs = plan_of(), fleet(kinds=100)
    given = {"runtime": "ray", "kernel": True, "tie_break": "random"}
    plan = replace(plan, settings=plan.settings.model_copy(update=given))

    chosen = choose_workers(plan, replace(inputs, nodes=Many(40_000)), free(8))

    assert (chosen.workers, "would take longer" in chosen.why) == (0, True)


def test_room_on_a_cluster_is_counted_only_if_workers_could_pay():
    def count():
        raise AssertionError("the check of nodes takes time")

    assert choose_workers(plan_of(), fleet(), count).workers == 0


def test_actors_of_one_process_leave_no_core_to_workers():
    assert free_cores(Settings(runtime="inline")) == FreeCores(0)


@pytest.mark.parametrize(("room", "workers"), [(0, 0), (10, 10), (10_000, 64)])
def test_on_a_cluster_the_room_on_its_nodes_counts(room, workers):
    assert free_cores(Settings(runtime="ray"), room) == FreeCores(workers, may_grow=True)
