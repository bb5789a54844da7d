"""Simulated latency on a virtual clock: the decision time of schedulers, and their utilization."""

import asyncio

import pytest

from roadstead.actors.runs import client
from roadstead.actors.runs.client import Client
from roadstead.actors.runs.launch import open_runtime
from roadstead.actors.runtime.virtual_time import run_virtual
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.config.concurrency import DecisionTime, JobTime
from roadstead.config.settings import ActorDeadlines
from roadstead.facts.pod import Owner
from tests.actors.test_runs import TWO_PROFILES
from tests.actors.world import identity, inputs_of, plan_of
from tests.builders import node, pod

SERVICE = {"roadstead.io/kind": "service"}


@pytest.fixture(autouse=True)
def _long_looks(monkeypatch):
    """Poll rarely: virtual time jumps."""
    monkeypatch.setattr(client, "POLL_S", 0.5)


def latency(batch=(0.0, 0.0), service=(0.0, 0.0)):
    kinds = {"batch": batch, "service": service}
    return DecisionTime(**{kind: JobTime(job_s=j, task_s=t) for kind, (j, t) in kinds.items()})


def run(inputs, **how):
    """Return (outcome, virtual duration in seconds)."""

    async def work():
        plan = plan_of(**how)
        runtime = open_runtime(plan)
        supervisor = Supervisor(runtime, plan)
        await supervisor.start()
        began_s = asyncio.get_running_loop().time()
        try:
            outcome = await Client(supervisor, plan, lambda _: None).run(inputs)
            return outcome, asyncio.get_running_loop().time() - began_s
        finally:
            await supervisor.stop()

    return run_virtual(work)


def jobs(count, size, name="j", **facts):
    return [
        (
            identity(f"{name}{number}-{member}"),
            pod(owner=Owner("Job", f"{name}{number}", ""), **facts),
        )
        for number in range(count)
        for member in range(size)
    ]


def test_each_job_has_its_decision_time_and_keeps_the_scheduler_busy():
    inputs = inputs_of([node("n1", cpu=64_000)], jobs(5, 4))

    outcome, took_s = run(inputs, decision_time=latency(batch=(2.0, 0.25)))

    (work,) = outcome.concurrency.schedulers
    assert len(outcome.placements) == 20
    assert took_s == pytest.approx(5 * 3.0, abs=1.5)
    assert work.busyness == pytest.approx(1.0, abs=0.1)
    assert work.transactions == 5


def test_service_jobs_have_a_decision_time_of_their_own():
    services = jobs(2, 1, "web", labels=SERVICE)
    inputs = inputs_of([node("n1", cpu=64_000)], [*services, *jobs(3, 1)])

    _, took_s = run(inputs, decision_time=latency(batch=(0.5, 0.0), service=(10.0, 0.0)))

    assert took_s == pytest.approx(2 * 10.0 + 3 * 0.5, abs=1.5)


def test_two_schedulers_decide_at_the_same_time():
    inputs = inputs_of([node("n1", cpu=64_000)], jobs(8, 1))

    _, took_s = run(inputs, decision_time=latency(batch=(5.0, 0.0)), schedulers=2, batch=1)

    assert took_s == pytest.approx(4 * 5.0, abs=1.5)


def test_a_lease_lasts_during_the_decision_time_of_its_scheduler():
    inputs = inputs_of([node("n1", cpu=64_000)], jobs(6, 1))
    quick = ActorDeadlines(lease_s=3.0)

    outcome, took_s = run(
        inputs, decision_time=latency(batch=(20.0, 0.0)), schedulers=2, deadlines=quick
    )

    assert len(outcome.placements) == 6
    assert sum(each.retries for each in outcome.concurrency.schedulers) == 0
    assert sum(each.decided for each in outcome.concurrency.schedulers) == 6
    assert took_s >= 60.0, "the decision took a minute of virtual time"


def slots(count):
    """Nodes with room for one pod each: a slow scheduler finds them occupied."""
    return [node(f"n{number:03}", cpu=1000, pods=1) for number in range(count)]


def test_a_slow_scheduler_loses_races_that_a_fresh_state_would_have_won():
    slow = jobs(3, 1, "slow", cpu=900, scheduler_name="packs")
    inputs = inputs_of(slots(40), [*slow, *jobs(36, 1, cpu=900)])
    time = latency(batch=(1.0, 0.0), service=(7.3, 0.0))
    how = {
        "config": TWO_PROFILES,
        "schedulers": {"default-scheduler": 1, "packs": 1},
        "batch": 1,
        "workers": 1,
        "tie_break": "first",
        "decision_time": time.model_copy(update={"profiles": {"packs": "service"}}),
    }

    stale, _ = run(inputs, **how)
    fresh, _ = run(inputs, **how, staleness_s=0.0)

    lost = [each.concurrency.schedulers[1].conflicted for each in (stale, fresh)]
    assert len(stale.placements) == len(fresh.placements) == 39
    assert lost[0] >= 3, "the stale scheduler lost several races"
    assert lost[1] == 0


@pytest.mark.parametrize("conflicts", ["fit", "version"])
def test_coarse_detection_refuses_binds_that_fine_detection_accepts(conflicts):
    inputs = inputs_of([node("n1", cpu=64_000)], jobs(12, 1))

    outcome, _ = run(
        inputs,
        schedulers=3,
        batch=1,
        decision_time=latency(batch=(1.0, 0.0)),
        conflicts=conflicts,
    )

    refused = outcome.concurrency.refused
    assert len(outcome.placements) == 12
    assert (refused.get("version", 0) > 0) == (conflicts == "version")
    assert "constraint" not in refused
