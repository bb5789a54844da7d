import re
import subprocess
import sys

import ray._private.node
from ray import _raylet
from ray._private import ray_constants, services, worker
from ray._private.node import Node

from roadstead.actors.runtime import ray_child
from roadstead.actors.runtime.ray_node import (
    AGENT_PORTS,
    NO_PORT,
    LeanNode,
    end_by_force,
    lean_node,
    servers,
)


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


def test_the_agents_of_a_local_ray_are_idle_and_other_programs_run():
    kinds = vars(ray_constants)
    agents = [kinds[name] for name in kinds if re.fullmatch(r"PROCESS_TYPE_\w+_AGENT", name)]

    with lean_node("/"):
        build = services._build_python_executable_command_memory_profileable
        starts = [build(agent, "/session") for agent in agents]
        other = build(ray_constants.PROCESS_TYPE_LOG_MONITOR, "/session", unbuffered=False)

    assert len(agents) == 2
    assert all(start[-1] == ray_child.IDLE for start in starts)
    assert other[-1] == ray_child.__file__


def test_a_raylet_finds_a_file_for_each_port_of_its_agents(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(Node, "start_raylet", lambda node, *memory: started.append(memory))
    node = object.__new__(LeanNode)
    node._session_dir, node._node_id = str(tmp_path), "ab" * 28

    node.start_raylet("/dev/shm", "", 1)

    ports = {each for name, each in vars(_raylet).items() if name.endswith("_PORT_NAME")}
    assert set(AGENT_PORTS) == ports - {_raylet.GCS_SERVER_PORT_NAME}
    assert {path.read_text() for path in tmp_path.iterdir()} == {str(NO_PORT)}
    assert len(list(tmp_path.iterdir())) == len(AGENT_PORTS)
    assert started == [("/dev/shm", "", 1)]


def test_a_run_on_its_own_ray_imports_nothing_for_clusters():
    modules = ("ray_cluster", "ray_checks", "ray_placement", "ray_logs", "ray_metrics")
    program = f"""
import sys
import roadstead.actors.runs.launch, roadstead.actors.runtime.ray_runtime
wanted = {{f"roadstead.actors.runtime.{{name}}" for name in {modules}}} | {{"ray.util.metrics"}}
print(sorted(wanted & sys.modules.keys()), [m for m in sys.modules if "roadstead.sweeps" in m])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[] []\n"
