"""Sweeps on Ray: the same results as in this process, also if processes of tasks are killed."""

import os
import signal
import subprocess
import time

import pytest
import ray
import ray.autoscaler.sdk

import roadstead
from roadstead.actors.interface import NoNodeError, RunFailedError
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime.ray_checks import NodeReport
from roadstead.actors.runtime.ray_cluster import alive_nodes
from roadstead.actors.runtime.ray_session import SYSTEM_CONFIG, RaySession
from roadstead.actors.runtime.ray_target import RayTarget
from roadstead.actors.sweeps import node_watch, ray_tasks
from roadstead.actors.sweeps.ray_tasks import RayTasks
from roadstead.cli.stress_product import PARAMETERS
from roadstead.config.settings import load_settings
from roadstead.lab.studies import OMEGA
from roadstead.protocol.codec import Envelope
from roadstead.protocol.errors import InputError
from roadstead.protocol.plain_data import pack
from roadstead.sweeps.carry_out import NoStore, Processes, carry_out
from roadstead.sweeps.core import MAX_ATTEMPTS, TaskLostError
from roadstead.sweeps.drivers import Lost
from roadstead.sweeps.tasks import Start, Work
from tests.actors.world import GENEROUS_S, ray_left
from tests.api.test_sweep import BUSY

pytestmark = pytest.mark.ray

PRODUCT = {"engine": "virtual", "settings": {}, "inputs": None}
DEFAULTS = {each.name: each.default for each in PARAMETERS} | {"workload": "constraint-heavy"}
CONTRADICTION = DEFAULTS | {"mode": "exact", "schedulers": 2}

JOINED = load_settings(overrides={"deadlines.start_s": 60.0})


@pytest.fixture(scope="module", autouse=True)
def _one_ray():
    """A Ray of this process, which the sweeps use like a cluster of one node."""
    session = RaySession(
        RayTarget("local", "by the test"),
        120.0,
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 << 20,
        _node_ip_address="127.0.0.1",
        _system_config=SYSTEM_CONFIG,
    )
    yield
    session.leave()
    ray_left()


def work(runs, machines=300, horizon_s=600.0):
    """Runs of a model, with as many seeds."""
    values = {"machines": machines, "horizon_s": horizon_s}
    tasks = tuple({"values": OMEGA.complete(values), "seed": seed} for seed in range(runs))
    return Work("model", {"study": "omega"}, tasks)


def carried_out(work, report=lambda counts, last: None, settings=JOINED, jobs=None):
    notes = []

    def open_tasks():
        return ActorLauncher().open_tasks(work, settings, jobs, notes.append)

    end = carry_out(work, Processes(open_tasks, jobs, True), NoStore(), report, time.monotonic)
    return end, notes


def alone(work):
    return dict(carry_out(work, None, NoStore(), lambda counts, last: None, time.monotonic).results)


def processes_of_tasks():
    """Ids of this process's descendants that run a task of a sweep at this moment."""
    listed = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    parent_of = {int(pid): int(parent) for pid, parent, *_ in rows}

    def is_own(pid):
        while pid in parent_of and pid != os.getpid():
            pid = parent_of[pid]
        return pid == os.getpid()

    named = [int(pid) for pid, _, *args in rows if "ray::run_remotely" in "".join(args)]
    return [pid for pid in named if is_own(pid)]


class Killer:
    """Kills a process of a task each time that one runs, up to a number of times."""

    def __init__(self, times):
        self.left, self.killed = times, set()

    def __call__(self, counts, last):
        for pid in processes_of_tasks() if self.left else ():
            if pid not in self.killed and self.left:
                os.kill(pid, signal.SIGKILL)
                self.killed.add(pid)
                self.left -= 1


def test_a_sweep_from_python_is_played_by_the_nodes_of_a_cluster():
    address = ray.get_runtime_context().gcs_address

    assert roadstead.sweep(BUSY, ray_address=address).runs == roadstead.sweep(BUSY).runs


def test_results_are_those_of_this_process():
    sweep = work(6)

    end, notes = carried_out(sweep)

    assert end.stopped_by is None
    assert dict(end.results) == alone(sweep)
    assert notes == []


def test_the_task_of_a_killed_process_runs_again_and_its_row_is_there():
    sweep = work(6, machines=2000, horizon_s=3600.0)
    kill, losses = Killer(1), []

    def report(counts, last):
        kill(counts, last)
        losses.append(counts.losses)

    end, _ = carried_out(sweep, report)

    assert kill.left == 0, "a process of a task was killed"
    assert losses[-1] == 1
    assert end.stopped_by is None
    assert dict(end.results) == alone(sweep)


def test_a_task_whose_process_ends_each_time_ends_the_sweep_with_an_error():
    end, _ = carried_out(work(1, machines=5000, horizon_s=200_000.0), Killer(MAX_ATTEMPTS))

    assert isinstance(end.stopped_by, TaskLostError)
    assert str(end.stopped_by).startswith("run 1 was lost 3 times, last: ")


def test_jobs_bound_the_tasks_that_run_at_a_time():
    most = []

    end, _ = carried_out(work(4), lambda counts, last: most.append(counts.running), jobs=1)

    assert len(end.results) == 4
    assert max(most) == 1


def test_an_error_of_a_task_has_its_fields_and_ends_the_sweep():
    wrong = Work("product", PRODUCT, ({"values": CONTRADICTION, "seed": 0, "journal": ""},))

    end, _ = carried_out(wrong)

    assert isinstance(end.stopped_by, InputError)
    assert "schedulers: " in str(end.stopped_by)
    assert dict(end.results) == {}


def test_runs_of_the_product_on_virtual_time_are_those_of_this_process():
    values = DEFAULTS | {"nodes": 8, "pods": 40, "batch": 8}
    sweep = Work(
        "product",
        PRODUCT,
        tuple({"values": values, "seed": seed, "journal": ""} for seed in range(3)),
    )

    end, _ = carried_out(sweep)

    assert end.stopped_by is None
    assert dict(end.results) == alone(sweep)


def requests_of(requests):
    """Return a function that records the requests to the autoscaler."""

    def record(bundles):
        requests.append(bundles)

    return record


def test_a_node_that_fails_its_check_is_left_out_and_named(monkeypatch):
    async def unfit(nodes, journal, deadlines_s):
        return [NodeReport(node, {}, "has no Roadstead") for node in nodes]

    requests = []
    monkeypatch.setattr(node_watch, "check_nodes", unfit)
    monkeypatch.setattr(node_watch, "LIST_EVERY_S", 0.1)
    monkeypatch.setattr(ray.autoscaler.sdk, "request_resources", requests_of(requests))
    hasty = load_settings(overrides={"deadlines.start_s": 3.0})

    end, notes = carried_out(work(1), settings=hasty)

    assert isinstance(end.stopped_by, NoNodeError)
    assert "no node that passed its check has a free CPU; left out: " in str(end.stopped_by)
    assert "has no Roadstead. Waited 3 s" in str(end.stopped_by)
    assert [note for note in notes if note.startswith("Left out: ")] != []
    assert f"Waiting for the Ray cluster: {ray_tasks.NO_FREE_CPU}." in notes
    assert len(requests) > 2, "the request is repeated while the sweep waits"
    assert requests[-1] == [], "and withdrawn at the end"


class Heartbeats:
    """Heartbeats whose losses a test decides."""

    lost = frozenset()
    is_head_lost = False

    def __init__(self, head):
        pass

    def start(self):
        pass

    def watch(self, addresses):
        pass

    def stop(self):
        pass


def test_the_tasks_of_a_node_that_does_not_answer_are_lost_at_once(monkeypatch):
    monkeypatch.setattr(ray_tasks, "Heartbeats", Heartbeats)
    driver = RayTasks(work(2, machines=5000, horizon_s=200_000.0), JOINED, None, print)
    try:
        until_s = time.monotonic() + GENEROUS_S
        while not driver.max_running() and time.monotonic() < until_s:
            driver.wait()
        driver.start(Start(0, 1))
        (node,) = alive_nodes()
        monkeypatch.setattr(Heartbeats, "lost", frozenset({node.id}))

        assert driver.wait() == [Lost(Start(0, 1), "its Ray node does not answer")]
        assert driver.max_running() == 0
        monkeypatch.setattr(Heartbeats, "is_head_lost", True)
        with pytest.raises(RunFailedError, match="head does not answer"):
            driver.wait()
    finally:
        driver.stop()
        driver.stop()


def test_the_function_on_ray_packs_results_and_errors():
    task = pack({"values": {"machines": 50, "horizon_s": 200.0}, "seed": 1})
    shared = pack({"study": "extra-slots"})

    failed = Envelope.decode(ray_tasks.run_remotely("none", shared, task))
    broken = Envelope.decode(ray_tasks.run_remotely("model", pack({"study": "chess"}), task))

    assert (failed.kind, broken.kind) == ("error", "error")
    assert "is none of model, product" in str(failed.body)
    assert "KeyError" in str(broken.body)
