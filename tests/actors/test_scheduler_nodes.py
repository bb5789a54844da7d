"""Runs of one scheduler on its own node table."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.actors.drive import drive
from roadstead.actors.messages import ADD_NODES, node_batch
from roadstead.actors.names import CACHE
from roadstead.actors.runs import client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime import kernel_loader
from roadstead.actors.scheduler.driver import Driver
from roadstead.config.settings import Settings
from roadstead.cycle import scheduling_cycle
from roadstead.cycle.needs import YieldToMessages
from roadstead.framework.hint_map import HintMap
from roadstead.kernel.compiled_code import load
from roadstead.run import RunPlan
from tests.actors import fleets
from tests.actors.test_preemption_runs import FULL, URGENT, gone, running
from tests.actors.test_preemption_runs import run as preempting_run
from tests.actors.test_runs import overfull, places_and_reasons, run
from tests.actors.world import (
    counts_of,
    inputs_of,
    placed,
    plainly,
    plan_of,
    pods_of,
    run_inline,
)
from tests.builders import node, pod
from tests.inside import nodes_of, scheduler_of


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "POLL_S", 0.002)


@pytest.fixture
def _nobody_is_woken(monkeypatch):
    """Try every pod once: the outcome of a retry depends on the end of its backoff."""
    monkeypatch.setattr(HintMap, "is_of_interest", lambda *_: False)


@pytest.mark.usefixtures("_nobody_is_woken")
@settings(max_examples=40)
@given(fleets.inputs(), st.sampled_from([1, 7, 64]), st.sampled_from(["random", "first"]))
def test_batches_of_any_size_decide_like_single_pods_in_turn(inputs, batch, tie_break):
    how = {"tie_break": tie_break, "seed": 7}

    nodes, reasons = places_and_reasons(run(inputs, batch=batch, **how))

    assert (nodes, reasons) == plainly(inputs, plan_of(**how))


def test_the_run_has_no_workers():
    _, actors = run_inline(overfull(), plan_of())

    assert sorted(actors) == ["binder", "cache", "queue", "scheduler-0"]
    assert not nodes_of(actors["scheduler-0"]).tentative


@pytest.mark.parametrize("batch", [16, 512])
def test_the_kernel_places_the_same_pods(monkeypatch, batch):
    load()
    monkeypatch.setattr(kernel_loader, "LOAD_AFTER_PODS", 1)
    monkeypatch.setattr(kernel_loader, "load", lambda report: load())
    inputs = overfull()

    outcome, actors = run_inline(inputs, plan_of(kernel=True, batch=batch))

    assert places_and_reasons(outcome) == plainly(inputs, plan_of())
    assert counts_of(actors["scheduler-0"])["kernel: pods"] > 0, "the kernel decided some pods"


def test_preemption_is_tried_on_the_schedulers_own_table():
    inputs = inputs_of([node("n1")], pods_of("urgent", "other", facts=URGENT), running("r"))

    outcome, _ = preempting_run(inputs)

    assert [*placed(outcome).values()] == ["n1"]
    assert [name for name, _, _ in gone(outcome)] == ["default/r"]


def test_preemption_does_not_wait_for_changes_that_follow_its_batch(monkeypatch):
    original, after_failure = Driver.handle, scheduling_cycle.after_failure
    started = []

    async def handle(self, need):
        if need == YieldToMessages():
            small = node_batch([node("small", cpu=100)])
            runtime, actors = started[0]
            await runtime.find(CACHE).call(ADD_NODES, small, timeout_s=1.0)
            updates = scheduler_of(actors["scheduler-0"]).performer.update_attempts()
            await drive(updates, partial(original, self))
        return await original(self, need)

    def after_a_change(*failed):
        yield YieldToMessages()
        return (yield from after_failure(*failed))

    monkeypatch.setattr(Driver, "handle", handle)
    monkeypatch.setattr(scheduling_cycle, "after_failure", after_a_change)
    inputs = inputs_of([node("n1")], pods_of("urgent", facts=URGENT), running("r"))
    quick = {"deadlines": {"call_s": 0.2}}

    outcome, _ = run_inline(inputs, plan_of(**quick), lambda *both: started.append(both))

    assert [*placed(outcome).values()] == ["n1"]


def test_a_pod_is_explained():
    inputs = inputs_of([node("n1"), node("n2", cpu=100)], pods_of("p", facts=FULL))
    (asked,) = pods_of("q")

    explained = ActorLauncher().explain(inputs, plan_of(), asked, lambda _: None)

    assert sorted(explained.names) == ["n1", "n2"]


def test_pods_that_fit_nowhere_wait_although_the_table_is_local():
    inputs = inputs_of([node(f"n{n}") for n in range(3)], pods_of(*"abcdef", facts=pod(cpu=3000)))

    outcome = run(inputs, batch=2)

    assert len(outcome.placements) == 3
    assert len(outcome.pending) == 3


@pytest.mark.ray
def test_on_ray_pods_are_placed_as_in_an_inline_run():
    inputs = overfull()

    outcome = ActorLauncher().run(inputs, RunPlan(Settings(runtime="ray")), lambda _: None)

    assert places_and_reasons(outcome) == plainly(inputs, plan_of())
