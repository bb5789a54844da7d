"""Workers are added while a run continues, when CPUs of its Ray cluster become free."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.actors.interface import ActorLostError, DeadlineError, NoNodeError
from roadstead.actors.runs import client, launch
from roadstead.actors.runs.launch import ActorLauncher, open_runtime
from roadstead.actors.scheduler import scorers
from roadstead.actors.supervisor import supervisor, worker_growth
from roadstead.actors.supervisor.worker_growth import WorkerGrowth, grown_count
from roadstead.invariants.checker import check
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from tests.actors.test_scorers import contents, plan_of
from tests.actors.test_scorers import fleet as whole_fleet
from tests.actors.world import GENEROUS_S, record_actors, turns, until
from tests.inside import scorers_of

PODS_BEFORE = 40
"""Placed pods at which CPUs become free."""

PODS = 150
"""The growth and the losses around it are over long before the last of them is decided."""


def fleet():
    return whole_fleet(pods=PODS)


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(scorers, "MIN_PLUGINS_S", 0.0)
    monkeypatch.setattr(client, "POLL_S", 0.002)
    monkeypatch.setattr(supervisor, "WATCH_S", 0.005)
    monkeypatch.setattr(worker_growth, "POLL_S", 0.0)


class Run:
    """A run on an inline runtime whose CPUs become free, and its actors by name at its end."""

    def __init__(self, monkeypatch, workers, maximum, room, **settings):
        settings = {"batch": 4, "schedulers": 2, **settings}
        self.plan = replace(plan_of(workers, **settings), workers_max=maximum)
        self.room = room
        self.placed = 0
        self.killed = []
        self.actors = {}
        self.refuses = None
        self.room_failure = None
        self.loss = None
        self.is_lost = False
        monkeypatch.setattr(launch, "open_runtime", self.open)

    def open(self, plan):
        runtime = open_runtime(plan)
        self.actors = record_actors(runtime)
        start, kill = runtime.start, runtime.kill

        async def start_unless_refused(groups, **how):
            if self.refuses is not None and self.placed:
                raise self.refuses
            return await start(groups, **how)

        async def kill_and_note(name):
            self.killed.append(name)
            if name in self.actors:
                await kill(name)

        async def room():
            if self.room_failure is not None and self.placed >= PODS_BEFORE:
                raise self.room_failure
            grown_by = len(workers_of(self.actors)) - self.plan.settings.workers
            return self.room - grown_by if self.placed >= PODS_BEFORE else 0

        runtime.room_for_workers = room
        runtime.start, runtime.kill = start_unless_refused, kill_and_note
        self.kill = kill
        return runtime

    def loses(self, name, after_pods):
        """Lose an actor as soon as it exists, so many pods after the CPUs became free."""
        self.loss = name, PODS_BEFORE + after_pods

    def outcome(self):
        def on_progress(progress):
            self.placed = max(self.placed, progress.placed)
            if self.loss is None or self.is_lost:
                return
            name, pods = self.loss
            if self.placed >= pods and name in self.actors:
                self.is_lost = True
                self.kills = asyncio.ensure_future(self.kill(name))

        return ActorLauncher().run(fleet(), self.plan, on_progress)


def workers_of(actors):
    return sorted(name for name in actors if name.startswith("worker"))


@pytest.mark.parametrize(("before", "after"), [(0, 2), (0, 5), (2, 3), (2, 5)])
def test_a_run_continues_with_more_workers(monkeypatch, tmp_path, before, after):
    run = Run(monkeypatch, before, 5, after - before, journal=tmp_path)

    outcome = run.outcome()

    assert workers_of(run.actors) == [f"worker-{index}" for index in range(after)]
    rows = [len(run.actors[name].table) for name in workers_of(run.actors)]
    assert sum(rows) == 30, "each node has one worker"
    assert max(rows) - min(rows) <= 1, "rows are shared equally among workers"
    assert sum(scorers_of(run.actors[f"scheduler-{index}"]).scored for index in (0, 1)) > 0, (
        "the new workers scored"
    )
    prove(outcome, tmp_path)


def prove(outcome, folder):
    """Assert that each pod is decided once, and that the journal keeps every rule."""
    decided = [each.uid for each in (*outcome.placements, *outcome.pending)]
    assert sorted(decided) == sorted(who.uid for who, _ in fleet().pending)
    assert check(list(Reader(RealDisk(folder)).records())).violations == []


def test_more_workers_change_no_decision(monkeypatch):
    alone = Run(monkeypatch, 0, 0, 0, schedulers=1).outcome()
    run = Run(monkeypatch, 2, 5, 3, schedulers=1)

    assert contents(run.outcome()) == contents(alone)
    assert len(workers_of(run.actors)) == 5


@pytest.mark.parametrize(("workers", "maximum"), [(2, 0), (2, 2), (5, 3)])
def test_a_run_whose_number_of_workers_is_given_does_not_grow(monkeypatch, workers, maximum):
    run = Run(monkeypatch, workers, maximum, 50)

    run.outcome()

    assert len(workers_of(run.actors)) == workers
    assert run.killed == []


def test_a_run_continues_if_the_room_for_workers_cannot_be_read(monkeypatch):
    run = Run(monkeypatch, 2, 5, 3)
    run.room_failure = ActorLostError("the journal's folder cannot be written")

    outcome = run.outcome()

    assert len(outcome.placements) + len(outcome.pending) == PODS
    assert len(workers_of(run.actors)) == 2


@pytest.mark.parametrize(
    "refusal", [NoNodeError("no room"), ActorLostError("gone"), DeadlineError("late")]
)
def test_a_run_continues_if_further_workers_do_not_start(monkeypatch, refusal):
    alone = Run(monkeypatch, 2, 0, 0, schedulers=1).outcome()
    run = Run(monkeypatch, 2, 5, 3, schedulers=1)
    run.refuses = refusal

    outcome = run.outcome()

    assert contents(outcome) == contents(alone)
    assert set(run.killed) == {"worker-2", "worker-3", "worker-4"}


@pytest.mark.parametrize("after", [1, 6, 30])
@pytest.mark.parametrize(
    "name", ["cache", "queue", "binder", "scheduler-0", "scheduler-1", "worker-0", "worker-4"]
)
def test_a_loss_around_the_growth_loses_no_pod(monkeypatch, tmp_path, name, after):
    run = Run(monkeypatch, 2, 5, 3, journal=tmp_path, control="apart")
    run.loses(name, after_pods=after)

    outcome = run.outcome()

    assert run.is_lost, "the actor is lost while the run grows"
    assert len(workers_of(run.actors)) == 5
    prove(outcome, tmp_path)


class Waiting:
    """A runtime whose starts do not end until a test lets them."""

    def __init__(self):
        self.begun = self.ended = 0
        self.may_end = asyncio.Event()
        self.killed = []
        self.gone = ""

    async def room_for_workers(self):
        return 2

    def lost(self):
        return self.gone

    async def start(self, groups, *, timeout_s):
        self.begun += 1
        await self.may_end.wait()
        self.ended += 1
        return dict.fromkeys(groups)

    async def kill(self, name):
        self.killed.append(name)


def growth_of(runtime):
    """Return a growth that is due, and a function that makes it look."""
    growth, plan = WorkerGrowth(runtime), replace(plan_of(2), workers_max=8)

    def groups_of(grown):
        return {f"worker-{index}": {} for index in range(grown.settings.workers)}

    return growth, lambda: growth.step(plan, groups_of)


async def test_workers_that_are_starting_are_ended_when_an_actor_is_lost():
    runtime = Waiting()
    growth, look = growth_of(runtime)
    look()
    await until(lambda: runtime.begun)

    await growth.cancel()

    assert runtime.killed == ["worker-2", "worker-3"]


async def test_workers_that_started_but_are_not_taken_over_are_ended():
    runtime = Waiting()
    growth, look = growth_of(runtime)
    look()
    await until(lambda: runtime.begun)
    runtime.may_end.set()
    await until(lambda: runtime.ended)
    await turns()

    await growth.cancel()

    assert runtime.killed == ["worker-2", "worker-3"]


async def test_without_the_head_of_ray_no_process_is_killed_through_it():
    runtime = Waiting()
    growth, look = growth_of(runtime)
    look()
    await until(lambda: runtime.begun)
    runtime.gone = "the head does not answer"

    await asyncio.wait_for(growth.cancel(), GENEROUS_S)

    assert runtime.killed == []


async def test_one_start_at_a_time():
    runtime = Waiting()
    _, look = growth_of(runtime)
    look()
    await until(lambda: runtime.begun)

    assert [look() for _ in range(5)] == [None] * 5
    assert runtime.begun == 1
    runtime.may_end.set()
    started = None
    while started is None:
        await asyncio.sleep(0)
        started = look()
    assert started.plan.settings.workers == 4
    assert list(started.refs) == ["worker-2", "worker-3"]


@pytest.mark.parametrize(
    ("present", "maximum", "room", "count"),
    [
        (0, 64, 1, 0),
        (0, 64, 2, 2),
        (2, 64, 1, 3),
        (4, 64, 1, 4),
        (4, 64, 2, 6),
        (4, 5, 1, 5),
        (40, 64, 100, 64),
    ],
)
def test_at_least_half_as_many_workers_again_are_added(present, maximum, room, count):
    assert grown_count(present, maximum, room) == count


@given(st.integers(2, 64), st.lists(st.integers(0, 10), min_size=200, max_size=200))
def test_a_cluster_that_grows_slowly_pauses_a_run_a_few_times_only(maximum, joined):
    workers, free, steps = 0, 0, 0
    for cpus in joined:
        free += cpus
        grown = grown_count(workers, maximum, free)
        assert workers <= grown <= min(maximum, workers + free)
        steps += grown > workers
        workers, free = grown, free - (grown - workers)
    assert steps <= 11, "each step adds at least half as many workers"
