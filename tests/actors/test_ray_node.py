import ray._private.node
from ray._private import worker
from ray._private.node import Node

from roadstead.actors.runtime.ray_node import LeanNode, end_by_force, lean_node, servers


def test_ray_starts_lean_nodes_only_on_request():
    with lean_node("/"):
        assert ray._private.node.Node is LeanNode

    assert ray._private.node.Node is Node


def test_rays_output_is_not_printed_among_results():
    listen = worker.listen_error_messages

    with lean_node("/"):
        assert worker.listen_error_messages is not listen
        assert worker.listen_error_messages(worker.global_worker, None) is None

    assert worker.listen_error_messages is listen


class Process:
    """Stands for a Ray process and Ray's record of it."""

    def __init__(self, pid):
        self.pid = pid
        self.process = self


class Started:
    """Stands for the local node of a Ray that this process started."""

    def __init__(self, **kinds):
        self.all_processes = {kind: [Process(pid)] for kind, pid in kinds.items()}
        self.ended = []

    def kill_all_processes(self, **how):
        self.ended.append(how)


def test_the_servers_of_ray_are_those_that_it_can_not_run_without(monkeypatch):
    node = Started(gcs_server=1, raylet=2, reaper=3)
    monkeypatch.setattr(worker, "_global_node", node)

    assert {name: each.pid for name, each in servers().items()} == {"gcs_server": 1, "raylet": 2}
    end_by_force()

    assert node.ended == [{"check_alive": False, "allow_graceful": False}]


def test_a_joined_or_absent_ray_has_no_local_servers(monkeypatch):
    monkeypatch.setattr(worker, "_global_node", Started())
    assert servers() == {}

    monkeypatch.setattr(worker, "_global_node", None)
    end_by_force()

    assert servers() == {}


def test_the_omitted_starts_exist_in_this_release_of_ray():
    left_out = {"start_monitor", "start_log_monitor", "start_api_server"}

    assert left_out <= vars(Node).keys()
    assert left_out <= vars(LeanNode).keys()
    assert LeanNode.start_monitor(None) is None
    assert LeanNode.start_log_monitor(None) is None
    assert LeanNode.start_api_server(None, include_dashboard=False) is None
