"""Room on a joined cluster: nodes whose check was late, and requests to the autoscaler."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
import ray.autoscaler.sdk

from roadstead.actors.interface import ActorLostError, NoNodeError
from roadstead.actors.runtime import ray_checks, ray_cluster
from roadstead.actors.runtime.ray_checks import MAX_CHECKS, NodeReport
from roadstead.actors.runtime.ray_cluster import RayCluster
from roadstead.actors.runtime.ray_placement import RayNode
from roadstead.config.ray import RayOptions
from tests.actors.world import GENEROUS_S, until


def node(name, cpus=4.0):
    return RayNode(f"id-{name}", name, f"10.0.0.{name[-1]}", 7000, cpus, cpus)


class Nodes:
    """The nodes of a cluster. late: names of those whose checks are late, once for each entry."""

    def __init__(self, *nodes):
        self.alive = list(nodes)
        self.late = []
        self.loads = {}
        self.checked = []
        self.requests = []
        self.notes = []

    async def check(self, nodes, journal, deadlines_s):
        self.checked += [each.name for each in nodes]
        return [self.report(each) for each in nodes]

    def report(self, each):
        if each.name not in self.late:
            return NodeReport(each, {"load": self.loads.get(each.name, "")})
        self.late.remove(each.name)
        return NodeReport(each, {}, "did not answer its check within 60 s", is_late=True)

    def request(self, bundles):
        self.requests.append(bundles)

    def place(self, cluster, *processes, without=(), timeout_s=GENEROUS_S):
        return cluster.place(processes, without, timeout_s, self.notes.append)


@pytest.fixture
def nodes(monkeypatch):
    made = Nodes(node("h1"), node("h2"))
    context = SimpleNamespace(gcs_address="10.0.0.1:6379", get_node_id=lambda: "id-h1")
    monkeypatch.setattr(ray_cluster.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(ray_cluster, "alive_nodes", lambda: list(made.alive))
    monkeypatch.setattr(ray_cluster, "check_nodes", made.check)
    monkeypatch.setattr(ray_cluster, "POLL_S", 0.001)
    monkeypatch.setattr(ray_checks, "RECHECK_PAUSE_S", 0.0)
    monkeypatch.setattr(ray.autoscaler.sdk, "request_resources", made.request)
    return made


@pytest.fixture
def cluster(nodes):
    return RayCluster("roadstead-1", RayOptions(), None)


async def test_a_late_node_is_left_out_while_others_have_room(nodes, cluster):
    nodes.late = ["h1"]

    placed = await nodes.place(cluster, "control", "scheduler-0")

    assert {each.name for each in placed.values()} == {"h2"}
    assert nodes.checked == ["h1", "h2"] or nodes.checked == ["h2", "h1"]


async def test_a_late_node_is_checked_again_when_the_run_needs_its_room(nodes, cluster):
    nodes.late = ["h1"]
    await nodes.place(cluster, "control", "scheduler-0")

    placed = await nodes.place(cluster, "scheduler-0", without={"id-h2"})

    assert placed["scheduler-0"].name == "h1"
    assert nodes.checked.count("h1") == 2


async def test_a_node_that_is_late_again_and_again_ends_the_wait(nodes, cluster):
    nodes.alive = [node("h1")]
    nodes.late = ["h1"] * 99

    with pytest.raises(NoNodeError, match=r"left out: h1 \(10.0.0.1\): did not answer its check"):
        await nodes.place(cluster, "control", timeout_s=0.1)

    assert nodes.checked == ["h1"] * MAX_CHECKS


async def test_a_node_that_is_late_at_the_end_of_the_wait_is_not_checked_again(nodes, cluster):
    nodes.alive = [node("h1")]
    nodes.late = ["h1"]

    with pytest.raises(NoNodeError):
        await nodes.place(cluster, "control", timeout_s=0.0)

    assert nodes.checked == ["h1"]


async def test_a_run_that_finds_room_leaves_the_requests_of_others_alone(nodes, cluster):
    await nodes.place(cluster, "control", "scheduler-0")

    assert nodes.requests == []


async def test_a_waiting_run_repeats_its_request_and_withdraws_it(nodes, cluster):
    room = nodes.alive
    nodes.alive = [replace(node("h1"), free_cpus=0.0), node("h2", cpus=0.0)]

    waiting = asyncio.create_task(nodes.place(cluster, "control", "scheduler-0"))
    await until(lambda: len(nodes.requests) >= 3)
    nodes.alive = room
    await waiting

    wanted = [{"CPU": 1.0}, {"CPU": 1.0}, {"CPU": 4.0}]
    assert nodes.requests[-1] == []
    assert all(each == wanted for each in nodes.requests[:-1]), "besides the CPUs in use"
    assert len(nodes.notes) == 1, "the wait is reported once"


async def test_a_run_that_ends_without_room_withdraws_its_request(nodes, cluster):
    nodes.alive = [node("h1", cpus=0.0)]

    with pytest.raises(NoNodeError):
        await nodes.place(cluster, "control", timeout_s=0.05)

    assert nodes.requests[-1] == []


async def test_a_process_that_waits_for_room_has_no_node(nodes, cluster):
    # A process that is being killed may still answer, with warnings that name its node.
    await nodes.place(cluster, "scheduler-0")
    before = cluster.node_of_process("scheduler-0")
    nodes.alive = [node("h1", cpus=0.0)]

    with pytest.raises(NoNodeError):
        await nodes.place(cluster, "scheduler-0", timeout_s=0.05)

    assert before is not None
    assert cluster.node_of_process("scheduler-0") is None


async def test_the_summary_names_the_run_and_the_node_of_each_process(nodes, cluster):
    nodes.alive = [node("h1")]
    await nodes.place(cluster, "control", "scheduler-0")

    assert cluster.summary() == (
        "Ray at 10.0.0.1:6379, roadstead-1: control, scheduler-0 on h1 (10.0.0.1, 4 of 4 CPUs "
        "free before)"
    )


async def test_a_journal_whose_node_left_the_cluster_is_lost_before_its_heartbeats_stop(nodes):
    cluster = RayCluster("roadstead-1", RayOptions(), None, has_copy=True)
    await nodes.place(cluster, "control", "journal-copy")
    assert cluster.journal_loss(()) == ""
    nodes.alive = [node("h2"), node("h3")]

    with pytest.raises(ActorLostError, match=r"its Ray node h1 \(10.0.0.1\) does not answer"):
        await nodes.place(cluster, "control")

    assert "h1" in cluster.journal_loss(()), "the loss names the node"
    cluster.move_journal()
    assert cluster.journal_loss(()) == ""
    placed = await nodes.place(cluster, "control", "journal-copy")
    assert placed["control"].name == "h2"
    assert placed["journal-copy"].name == "h3"


async def test_room_for_workers_is_counted_on_nodes_that_passed_their_check(nodes, cluster):
    nodes.late = ["h2"]
    others = ["control", "scheduler-0"]

    assert await cluster.room_for("worker", others, without=()) == 2
    assert await cluster.room_for("worker", others, without={"id-h1"}) == 0
    assert sorted(nodes.checked) == ["h1", "h2"]


async def test_the_nodes_are_listed_with_their_processes_and_loads(nodes, cluster):
    nodes.loads = {"h1": "2.25"}
    await nodes.place(cluster, "control", "scheduler-0")

    first, second = sorted(cluster.node_uses(), key=lambda each: each.name)

    assert (first.name, first.processes, first.load) == ("h1", ("control",), 2.25)
    assert (second.name, second.processes, second.load) == ("h2", ("scheduler-0",), None)
    assert "control on h1 (10.0.0.1, 4 of 4 CPUs free before, load 2.2); " in cluster.summary()
    assert "scheduler-0 on h2 (10.0.0.2, 4 of 4 CPUs free before)" in cluster.summary()
