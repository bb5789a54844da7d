"""Workers that score for a scheduler: decisions are the same, whatever happens to the workers."""

import asyncio
from dataclasses import replace

import pytest

from roadstead.actors.interface import NOTHING
from roadstead.actors.runs import client, launch
from roadstead.actors.runs.launch import ActorLauncher, open_runtime
from roadstead.actors.scheduler import driver, scorers
from roadstead.actors.supervisor import factories, supervisor
from roadstead.actors.worker.actor import WorkerActor
from roadstead.config.settings import Settings
from roadstead.cycle import scheduling_cycle
from roadstead.fleet.generate import generate_fleet
from roadstead.run import RunPlan
from tests.actors.hampered_workers import SEVERAL, SlowToFollow, decided, given, never
from tests.actors.world import inputs_of, placed, run_inline, schedulers_of
from tests.inside import scorers_of
from tests.peculiar_plugins import config_with, peculiar

PLUGINS = "FailsOnSomeNodes", "FailsToScore", "LikesDigits", "LikesFewPods"


@pytest.fixture(autouse=True)
def _always_worth(monkeypatch):
    monkeypatch.setattr(scorers, "MIN_PLUGINS_S", 0.0)


def fleet(nodes=30, pods=300):
    trace = generate_fleet(nodes, pods, 1)
    pending = [
        (identity, replace(facts, labels=(("n", str(number % 90)),)))
        for number, (identity, facts) in enumerate(trace.pods())
    ]
    return inputs_of(trace.nodes(), pending)


def plan_of(workers, plugins=PLUGINS, **settings):
    settings = Settings(runtime="inline", workers=workers, **{"batch": 16, **settings})
    return RunPlan(settings, config_with(*plugins), "mine.yaml", plugins=peculiar(*plugins))


def run(workers, nodes=30, **settings):
    return run_inline(fleet(nodes), plan_of(workers, **settings))


def contents(outcome):
    """Return the nodes of the placed pods and the reasons of the pending ones."""
    return placed(outcome), {each.pod: each.message for each in outcome.pending}


def given_to(actors):
    return sum(scorers_of(each).scored for each in schedulers_of(actors))


@pytest.mark.parametrize("workers", [1, 3])
def test_scoring_workers_change_no_decision(workers):
    alone, _ = run(0)
    outcome, actors = run(workers)

    assert contents(outcome) == contents(alone)
    assert alone.pending
    assert given_to(actors) >= 90, "nearly all decisions used scores of workers"
    rows = [len(actors[f"worker-{number}"].table) for number in range(workers)]
    assert sum(rows) == 30
    assert max(rows) - min(rows) <= 1, "rows are shared equally among workers"


def test_changes_during_a_batch_do_not_apply_to_the_rows_that_it_uses(monkeypatch):
    monkeypatch.setattr(scheduling_cycle, "DECISIONS_PER_PAUSE", 1)
    monkeypatch.setattr(driver, "MAX_UNSCORED", 30)
    monkeypatch.setattr(scorers, "MAX_UNSCORED", 30)
    alone, _ = run(0, nodes=300, batch=300)
    outcome, actors = run(2, nodes=300, batch=300)

    assert contents(outcome) == contents(alone)
    assert given_to(actors) >= 90, "nearly all decisions used scores of workers"


@pytest.mark.parametrize("settings", SEVERAL)
def test_several_schedulers_use_scoring_workers_and_lose_no_pod(settings):
    outcome, actors = run(2, **settings)

    assert decided(outcome) == given(fleet())
    assert given_to(actors), "the schedulers used scores of workers"


def test_an_unresponsive_worker_costs_only_time(monkeypatch):
    alone, _ = run(0)
    monkeypatch.setattr(WorkerActor, "score", never)
    outcome, actors = run(2, deadlines={"evaluate_s": 0.02})

    assert contents(outcome) == contents(alone)
    assert scorers_of(actors["scheduler-0"]).missed
    assert not given_to(actors)


def test_a_worker_that_rejects_changes_costs_only_time(monkeypatch):
    alone, _ = run(0)
    monkeypatch.setattr(WorkerActor, "apply", never)
    outcome, actors = run(2)

    assert contents(outcome) == contents(alone)
    assert not given_to(actors)


def test_answers_of_a_worker_that_lags_count_for_unchanged_rows(monkeypatch):
    alone, _ = run(0)
    monkeypatch.setattr(factories, "WorkerActor", SlowToFollow)
    outcome, actors = run(2)

    assert contents(outcome) == contents(alone)
    assert given_to(actors), "the scheduler used scores of workers"


@pytest.mark.parametrize("names", [("worker-1",), ("worker-0", "cache"), ("scheduler-0",)])
def test_killed_workers_are_replaced_and_answer_again(monkeypatch, names):
    monkeypatch.setattr(client, "POLL_S", 0.002)
    monkeypatch.setattr(supervisor, "WATCH_S", 0.01)
    made, waiting, kills = [], list(names), []

    def opened(plan):
        made.append(open_runtime(plan))
        return made[-1]

    def on_progress(progress):
        if waiting and progress.placed >= 40:
            kills.append(asyncio.ensure_future(made[-1].kill(waiting.pop(0))))

    monkeypatch.setattr(launch, "open_runtime", opened)
    outcome = ActorLauncher().run(fleet(), plan_of(2, batch=4, control="apart"), on_progress)

    assert len(kills) == len(names)
    assert decided(outcome) == given(fleet())
    if names == ("worker-1",):
        assert contents(outcome) == contents(run(0, batch=4)[0])


def test_fast_plugins_are_sent_to_workers_once(monkeypatch):
    monkeypatch.setattr(scorers, "MIN_PLUGINS_S", 3600.0)
    outcome, actors = run(2)

    assert contents(outcome) == contents(run(0)[0])
    assert 0 < given_to(actors) <= 16, "scores of fast plugins are requested once for each class"


def test_without_user_plugins_no_worker_is_asked():
    outcome, actors = run_inline(fleet(), plan_of(2, plugins=()))

    assert placed(outcome) == placed(run_inline(fleet(), plan_of(0, plugins=()))[0])
    assert not given_to(actors)


def test_the_status_of_a_worker_counts_its_scores():
    _, actors = run(1)

    status = asyncio.run(actors["worker-0"].status(NOTHING))
    assert dict(status.counts)["classes scored"] >= 90, "nearly all classes were scored by workers"
