"""An actor that is killed in the middle of a run is replaced, and the run ends normally."""

import asyncio
import os
import signal
from collections import Counter

import pytest

from roadstead.actors.interface import RunFailedError
from roadstead.actors.runs import client, launch
from roadstead.actors.runs.launch import ActorLauncher, open_runtime
from roadstead.actors.supervisor import supervisor
from roadstead.actors.supervisor.replacing import Budget, actors_to_replace
from roadstead.fleet.generate import generate_fleet
from roadstead.invariants.checker import check
from roadstead.journal import RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from tests.actors.world import inputs_of, plan_of

ACTORS = ("queue", "cache", "binder", "worker-0", "worker-1", "scheduler-0", "scheduler-1")


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "POLL_S", 0.002)
    monkeypatch.setattr(supervisor, "WATCH_S", 0.01)


def fleet(nodes=20, pods=300):
    trace = generate_fleet(nodes, pods, 1)
    return inputs_of(trace.nodes(), trace.pods())


class Run:
    """A run whose actors a test kills when some pods are placed."""

    def __init__(self, monkeypatch, **settings):
        self.plan = plan_of(**{"batch": 4, "workers": 2, "schedulers": 2, **settings})
        self.runtime = None
        self.killed, self.kills = [], []
        monkeypatch.setattr(launch, "open_runtime", self.open)

    def open(self, plan):
        self.runtime = open_runtime(plan)
        return self.runtime

    def kill(self, *names, every=40):
        """Run, and kill one actor after another, one each time `every` more pods are placed."""
        waiting = list(names)

        def on_progress(progress):
            if waiting and progress.placed >= every * (len(self.killed) + 1):
                self.killed.append(waiting[0])
                self.kills.append(asyncio.ensure_future(self.runtime.kill(waiting.pop(0))))

        return ActorLauncher().run(fleet(), self.plan, on_progress)


def prove(outcome, folder):
    """Assert that no pod is lost or doubled, no node overfilled, and that the journal agrees."""
    records = list(Reader(RealDisk(folder)).records())
    assert check(records).violations == []
    binds = [(each.uid, each.node_name) for each in records if each.kind is RecordKind.BIND]
    assert max(Counter(uid for uid, _ in binds).values()) == 1
    assert dict(binds) == {each.uid: each.node for each in outcome.placements}
    decided = [each.uid for each in (*outcome.placements, *outcome.pending)]
    assert sorted(decided) == sorted(identity.uid for identity, _ in fleet().pending)


@pytest.mark.parametrize("name", ACTORS)
def test_a_killed_actor_is_replaced_and_the_run_continues(monkeypatch, tmp_path, name):
    run = Run(monkeypatch, control="apart", journal=tmp_path)

    outcome = run.kill(name)

    assert run.killed == [name]
    prove(outcome, tmp_path)


@pytest.mark.parametrize("name", ACTORS)
def test_an_actor_killed_while_results_are_collected_loses_no_pod(monkeypatch, tmp_path, name):
    run = Run(monkeypatch, control="apart", journal=tmp_path)
    whole = Run(monkeypatch, control="apart", journal=None).kill()
    monkeypatch.setattr(launch, "open_runtime", run.open)

    def on_progress(progress):
        if progress.phase == "collecting results" and not run.kills:
            run.kills.append(asyncio.ensure_future(run.runtime.kill(name)))

    outcome = ActorLauncher().run(fleet(), run.plan, on_progress)

    assert len(run.kills) == 1
    prove(outcome, tmp_path)
    assert whole.pending
    assert not [each for each in outcome.pending if "not been tried" in each.message]


@pytest.mark.parametrize(
    ("nodes_at", "names"),
    [
        ("workers", ("cache", "scheduler-0")),
        ("workers", ("worker-0", "scheduler-0")),
        ("workers", ("queue", "binder")),
        ("scheduler", ("scheduler-0", "cache")),
    ],
)
def test_one_seed_gives_one_placement_when_any_actor_is_killed(
    monkeypatch, tmp_path, nodes_at, names
):
    how = {"schedulers": 1, "nodes_at": nodes_at, "batch": 16, "control": "apart"}
    whole = Run(monkeypatch, **how).kill()
    run = Run(monkeypatch, journal=tmp_path, **how)

    outcome = run.kill(*names)

    assert run.killed == [*names]
    assert set(outcome.placements) == set(whole.placements)
    assert {each.uid for each in outcome.pending} == {each.uid for each in whole.pending}


def test_a_run_survives_the_loss_of_each_actor_once(monkeypatch, tmp_path):
    run = Run(monkeypatch, control="apart", journal=tmp_path)
    kinds = ("scheduler-0", "worker-1", "binder", "queue", "cache")

    outcome = run.kill(*kinds, every=10)

    assert run.killed == [*kinds]
    prove(outcome, tmp_path)


def test_a_process_of_three_actors_is_replaced_with_all_three(monkeypatch, tmp_path):
    run = Run(monkeypatch, journal=tmp_path)

    outcome = run.kill("binder")

    prove(outcome, tmp_path)


def test_an_actor_that_is_killed_repeatedly_ends_the_run_with_its_name(monkeypatch, tmp_path):
    monkeypatch.setattr(Budget, "TIMES", 1)
    run = Run(monkeypatch, control="apart", journal=tmp_path)

    with pytest.raises(RunFailedError, match=r"worker-0 is gone.* replaced 1 times in a minute"):
        run.kill("worker-0", "worker-0")


def test_actors_of_one_process_are_replaced_together():
    hosts = {name: {name} for name in ("queue", "cache", "binder", "worker-0", "scheduler-0")}

    assert actors_to_replace({"binder"}, hosts) == {"binder"}
    assert actors_to_replace({"worker-0"}, hosts) == {"worker-0"}
    assert actors_to_replace({"queue"}, hosts) == {"queue", "scheduler-0"}
    assert actors_to_replace({"cache"}, hosts) == {"cache", "worker-0", "scheduler-0"}
    together = {"control": {"queue", "cache", "binder"}, "worker-0": {"worker-0"}}
    assert actors_to_replace({"binder"}, together) == {"queue", "cache", "binder", "worker-0"}


def test_the_restart_budget_is_full_again_after_a_minute():
    budget = Budget()

    taken = [budget.acquire("queue", now_s) for now_s in (0, 1, 2, 3, 4, 5)]

    assert taken == [True] * 5 + [False]
    assert budget.acquire("cache", 5)
    assert budget.acquire("queue", 60)


def test_a_signal_makes_the_cache_compare_itself_with_a_new_one(monkeypatch, tmp_path, caplog):
    asked = []

    def on_progress(progress):
        if progress.placed > 20 and not asked:
            asked.append(True)
            os.kill(os.getpid(), signal.SIGUSR2)

    with caplog.at_level("INFO", logger="roadstead"):
        ActorLauncher().run(fleet(), plan_of(batch=4), on_progress)

    (record,) = [each for each in caplog.records if each.getMessage() == "cache compared"]
    assert record.fields == {"differences": 0, "first": ""}
