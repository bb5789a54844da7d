"""Workers that list the best nodes: decisions are the same, whatever happens to the workers."""

import asyncio
from dataclasses import replace
from functools import cache

import pytest

from roadstead.actors.interface import NOTHING
from roadstead.actors.scheduler import scorers
from roadstead.actors.supervisor import factories
from roadstead.actors.worker.actor import WorkerActor
from roadstead.config.settings import Settings
from roadstead.fleet.generate import generate_fleet
from roadstead.kernel.compiled_code import load
from roadstead.run import RunPlan
from tests.actors.hampered_workers import SEVERAL, SlowToFollow, decided, given, never
from tests.actors.world import inputs_of, placed, run_inline, schedulers_of
from tests.inside import scorers_of
from tests.peculiar_plugins import config_with


@pytest.fixture(autouse=True)
def _small_fleets_are_worth_it(monkeypatch):
    load()
    monkeypatch.setattr(scorers, "MIN_NODES_FOR_LISTS", 1)
    monkeypatch.setattr(scorers, "MIN_LISTED", 1)
    monkeypatch.setattr(scorers, "ROWS_PER_LIST", 3)


def fleet(nodes=40, pods=300):
    """Return pods that are almost all different."""
    trace = generate_fleet(nodes, pods, 1)
    pods = [
        (identity, replace(facts, labels=(("n", str(number)),)))
        for number, (identity, facts) in enumerate(trace.pods())
    ]
    return inputs_of(trace.nodes(), pods)


def run(workers, **settings):
    settings = Settings(runtime="inline", workers=workers, **{"batch": 32, **settings})
    return run_inline(fleet(), RunPlan(settings, config_with(), "mine.yaml"))


def listed_to(actors):
    return sum(scorers_of(each).listed for each in schedulers_of(actors))


def contents(outcome):
    return placed(outcome), {each.pod: each.message for each in outcome.pending}


@cache
def contents_without_workers():
    """Return what a run without workers decides."""
    return contents(run(0)[0])


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_ranking_workers_change_no_decision(workers):
    outcome, actors = run(workers)

    assert contents(outcome) == contents_without_workers()
    assert listed_to(actors) >= 200, "nearly all pods are decided by lists of workers"


@pytest.mark.parametrize("settings", SEVERAL)
def test_several_schedulers_use_ranking_workers_and_lose_no_pod(settings):
    outcome, actors = run(2, **settings)

    assert decided(outcome) == given(fleet())
    if settings.get("mode") != "partitioned":
        assert listed_to(actors), "the schedulers used lists of workers"


def test_an_unresponsive_worker_costs_only_time(monkeypatch):
    monkeypatch.setattr(WorkerActor, "rank", never)
    outcome, actors = run(2, deadlines={"evaluate_s": 0.02})

    assert contents(outcome) == contents_without_workers()
    assert scorers_of(actors["scheduler-0"]).missed
    assert not listed_to(actors)


def test_a_worker_that_rejects_changes_costs_only_time(monkeypatch):
    monkeypatch.setattr(WorkerActor, "apply", never)
    outcome, actors = run(2, deadlines={"evaluate_s": 0.02})

    assert contents(outcome) == contents_without_workers()
    assert not listed_to(actors)


def test_a_scheduler_waits_for_a_worker_that_lags_within_the_deadline(monkeypatch):
    monkeypatch.setattr(factories, "WorkerActor", SlowToFollow)
    outcome, actors = run(2)

    assert contents(outcome) == contents_without_workers()
    assert listed_to(actors), "the scheduler used lists of workers"


def test_without_the_kernel_no_worker_is_asked():
    outcome, actors = run(2, kernel=False)

    assert contents(outcome) == contents(run(0, kernel=False)[0])
    assert not listed_to(actors)


def test_for_few_nodes_or_few_classes_no_worker_is_asked(monkeypatch):
    monkeypatch.setattr(scorers, "MIN_NODES_FOR_LISTS", 41)
    assert not listed_to(run(1)[1])

    monkeypatch.setattr(scorers, "MIN_NODES_FOR_LISTS", 1)
    monkeypatch.setattr(scorers, "MIN_LISTED", 33)
    assert not listed_to(run(1)[1])


def test_a_batch_with_lists_is_short(monkeypatch):
    monkeypatch.setattr(scorers, "MAX_LISTED", 8)
    asked = []
    original = WorkerActor.rank

    async def counted(self, ask):
        asked.append(len(ask.classes))
        return await original(self, ask)

    monkeypatch.setattr(WorkerActor, "rank", counted)
    outcome, _ = run(1)

    assert contents(outcome) == contents_without_workers()
    assert max(asked) <= 8, "a request has the classes of a short batch"


def test_the_status_of_a_worker_counts_its_rankings():
    _, actors = run(1)

    status = asyncio.run(actors["worker-0"].status(NOTHING))
    assert dict(status.counts)["classes ranked"] >= 200, "nearly all classes were ranked by workers"
    assert "ranked its nodes for" in status.text
