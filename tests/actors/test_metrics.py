"""The declared metrics are those that actors have, under names in Prometheus' style."""

import re
from collections import Counter

import pytest

from roadstead.actors.messages import ActorStatus
from roadstead.actors.metrics import (
    METRICS,
    actor_type,
    samples,
    values_of,
)
from roadstead.actors.runs.client import Client
from roadstead.actors.runs.launch import open_runtime
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.fleet.generate import generate_fleet
from tests.actors.world import inputs_of, plan_of

UNITS = {"s": "seconds", "bytes": "bytes"}

NOT_PUBLISHED = ("kernel: by reference: ", "kernel: stopped: ")
"""Prefixes of values that are not exported: the number of their names has no bound."""

SOMETIMES = {
    # Only in a process of its own, so not in this test's.
    "roadstead_scheduler_peak_memory_bytes",
    # Only if several schedulers meet on a node.
    "roadstead_scheduler_refused_binds",
    # Only if the kernel decides.
    "roadstead_scheduler_kernel_pods",
}


@pytest.fixture
async def statuses(tmp_path):
    """The status of every actor after a run in which some pods found no node."""
    trace = generate_fleet(4, 300, 1)
    plan = plan_of(workers=2, journal=tmp_path / "journal")
    supervisor = Supervisor(open_runtime(plan), plan)
    await supervisor.start()
    try:
        inputs = inputs_of(trace.nodes(), trace.pods())
        await Client(supervisor, plan, lambda progress: None).run(inputs)
        yield {name: await supervisor.statuses.last_of(name) for name in supervisor.refs}
    finally:
        await supervisor.stop()


def declared(actor, name):
    """Whether a value of an actor is a metric, or declared as none."""
    return name.startswith(NOT_PUBLISHED) or any(
        name.startswith(each.key) if each.label else name == each.key
        for each in METRICS
        if each.actor == actor
    )


def test_names_are_unique_and_in_the_style_of_prometheus():
    names = [each.full_name for each in METRICS]

    assert [name for name, times in Counter(names).items() if times > 1] == []
    assert [name for name in names if not re.fullmatch(r"roadstead(_[a-z]+)+", name)] == []
    assert [name for name in names if re.search("_total$", name)] == [], "Ray appends it"


@pytest.mark.parametrize("unit", UNITS)
def test_names_of_times_and_sizes_end_with_their_unit(unit):
    named = [each.full_name for each in METRICS if each.full_name.endswith(f"_{UNITS[unit]}")]

    assert named == [each.full_name for each in METRICS if each.unit == unit]


def test_every_figure_is_described():
    assert [
        each.full_name for each in METRICS if not each.description or "|" in each.description
    ] == []
    assert [each.full_name for each in METRICS if not each.unit] == []


async def test_every_value_of_a_status_is_declared(statuses):
    missing = [
        (name, each)
        for name, status in statuses.items()
        for each in values_of(status)
        if not declared(actor_type(name), each)
    ]

    assert missing == []


async def test_every_declared_figure_is_in_a_status(statuses):
    found = {
        metric.full_name
        for name, status in statuses.items()
        for metric, _, _ in samples(actor_type(name), status)
    }

    assert {each.full_name for each in METRICS} - found - SOMETIMES == set()


async def test_the_values_are_those_of_the_run(statuses):
    value = {
        (metric.full_name, label): value
        for name, status in statuses.items()
        if not name.startswith("worker")
        for metric, label, value in samples(actor_type(name), status)
    }

    bound = value["roadstead_binder_bound_pods", ""]
    waiting = value["roadstead_queue_unschedulable_pods", ""]
    assert bound + waiting == 300
    assert 0 < bound < 300, "some pods are bound, and some wait"
    assert value["roadstead_scheduler_bound_pods", ""] == bound
    assert value["roadstead_cache_added_pods", ""] == bound
    assert value["roadstead_queue_done_pods", ""] == bound
    assert value["roadstead_scheduler_failed_attempts", "unschedulable"] >= waiting
    assert value["roadstead_binder_journal_syncs", ""] >= 1, "the binder syncs its journal"
    assert value["roadstead_binder_journal_bytes", ""] > 0, "the binder writes its journal"


def test_a_labelled_figure_has_one_sample_for_each_value_of_the_label():
    status = ActorStatus("", metrics=(("refused fit", 2.0), ("refused version", 3.0)))

    sampled = samples("scheduler", status)
    found = {(metric.full_name, label): value for metric, label, value in sampled}

    assert found == {
        ("roadstead_scheduler_refused_binds", "fit"): 2.0,
        ("roadstead_scheduler_refused_binds", "version"): 3.0,
    }
