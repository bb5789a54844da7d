"""Runs on three Ray nodes of one machine, in place of three hosts where those are not allowed.

`ray.cluster_utils.Cluster` starts several raylets without privileges. They share network, clock and
disks: nodes can be joined, checked, used and lost, but not cut off from each other, and every node
sees the journal.
"""

import json
import re
import signal
import subprocess
import sys

import pytest
import yaml

from tests.cluster.hosts import ENVIRONMENT, may_have_hosts
from tests.cluster.runs import (
    ROADSTEAD,
    check_bench,
    placements,
    run_with_fault,
    schedule,
    small_bench,
)

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(may_have_hosts(), reason="test_three_hosts.py shows more, on three hosts"),
]

NODES = """
import sys
from ray.cluster_utils import Cluster

size = {"num_cpus": 4, "object_store_memory": 80 << 20}
system = {"_system_config": {"worker_niceness": 0}}
cluster = Cluster(initialize_head=True, head_node_args={**size, **system, "no_monitor": True})
larger = {**size, "num_cpus": 6}
second, third = (cluster.add_node(**each, labels={"place": "x"}) for each in (larger, size))
cluster.wait_for_nodes()
print(cluster.address, flush=True)
for line in sys.stdin:
    if line == "lose\\n":
        cluster.remove_node(second, allow_graceful=False)
    else:
        second = cluster.add_node(**larger, labels={"place": "x"})
        cluster.wait_for_nodes()
        print("restored", flush=True)
cluster.shutdown()
"""
"""Removes or restores the second node at each line of its input, and ends with its input."""


class Nodes:
    """Three Ray nodes of one machine; the second and the third have a label `place`.

    The second has the most CPUs, so that processes which need the label are there first.
    """

    def __init__(self, server, address):
        self.server, self.address = server, address

    def begin(self, *command):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen((*command, "--ray-address", self.address), env=ENVIRONMENT, **pipes)

    def run(self, *command):
        running = self.begin(*command)
        output, messages = running.communicate()
        return running.returncode, output, messages

    def lose_second(self):
        self._send("lose")

    def restore_second(self):
        self._send("restore")
        assert "restored\n" in self.server.stdout

    def _send(self, line):
        self.server.stdin.write(f"{line}\n")
        self.server.stdin.flush()


@pytest.fixture(scope="module")
def nodes():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = (sys.executable, "-c", NODES)
    with subprocess.Popen(command, env=ENVIRONMENT, **pipes) as server:
        found = next(line for line in server.stdout if re.fullmatch(r"[\w.:]+:\d+", line.strip()))
        yield Nodes(server, found.strip())
        server.stdin.close()
        server.wait()


def settings_of(folder, start_s=20, **ray):
    path = folder / "roadstead.yaml"
    path.write_text(yaml.safe_dump({"ray": ray, "deadlines": {"start_s": start_s}}))
    return "--settings", str(path)


def test_every_node_is_checked(nodes):
    status, output, messages = nodes.run(ROADSTEAD, "cluster", "check", "--format", "json")

    assert status == 0, messages
    assert [node["problem"] for node in json.loads(output)["nodes"]] == ["", "", ""]


@pytest.mark.parametrize("workers", ["2", "auto"])
def test_the_placements_are_those_of_one_process(nodes, fleet, workers):
    options = ("-o", "csv", "--seed", "5")
    command = schedule(fleet, "--runtime", "inline", *options)
    local = subprocess.run(command, capture_output=True, text=True, check=True)

    status, output, messages = nodes.run(*schedule(fleet, "--workers", workers, *options))

    assert status == 0, messages
    assert placements(output) == placements(local.stdout)
    chosen = ("worker-0", "worker-1") if workers == "2" else ()
    for name in ("control", "scheduler-0", *chosen):
        assert name in messages


def test_the_bench_measures_processes_of_other_nodes(nodes, tmp_path):
    settings = settings_of(tmp_path, labels={"scheduler": {"place": "x"}, "worker": {"place": "x"}})

    status, output, messages = nodes.run(*small_bench(tmp_path), *settings)

    assert status == 0, messages
    check_bench(output)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"labels": {"scheduler": {"place": "z"}}}, "place=z"),
        ({"cpus_per_process": 9}, "the control wants 9 CPUs on one node"),
    ],
    ids=["labels", "cpus"],
)
def test_nodes_that_do_not_fit_are_reported_and_awaited(nodes, fleet, tmp_path, options, wanted):
    status, _, messages = nodes.run(*schedule(fleet, *settings_of(tmp_path, 3, **options)))

    assert status == 1
    assert "Waiting for the Ray cluster: " in messages
    assert wanted in messages
    assert "Waited 3 s" in messages


@pytest.mark.parametrize("role", ["scheduler", "worker", "control"])
def test_the_loss_of_a_node_loses_nothing(nodes, fleet, tmp_path, role):
    settings = settings_of(tmp_path, labels={role: {"place": "x"}})
    output, logs = tmp_path / "output", tmp_path / "logs"
    options = ("--batch", "256", "--schedulers", "2", "--workers", "2")

    running = nodes.begin(
        *schedule(fleet, *settings, *options, "--output", str(output), "--log", str(logs))
    )
    messages = run_with_fault(running, nodes.lose_second)

    nodes.restore_second()
    where = [line for line in messages if line.startswith("Ray at ")]
    assert len(where) == 2, "a process was replaced on another node"
    assert any(re.match(rf"{role}(-\d)?\.2@", path.name) for path in logs.iterdir())
    found = check_output(output)
    assert (found["violations"], found["binds_checked"]) == ([], 6_000)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_gathers_logs_and_ends(nodes, fleet, tmp_path, signum):
    logs = tmp_path / "logs"
    options = ("--batch", "64", "--workers", "2", "--log", str(logs))
    running = nodes.begin(*schedule(fleet, *options))
    for line in running.stderr:
        if " placed of " in line:
            running.send_signal(signum)
            break
    _, rest = running.communicate()

    assert running.returncode == 128 + signum, rest
    assert "Interrupted by" in rest
    assert {path.name.partition("@")[0] for path in logs.iterdir()} == {
        *("driver.jsonl", "control", "scheduler-0", "worker-0", "worker-1")
    }


def check_output(folder):
    command = (ROADSTEAD, "check", str(folder), "--format", "json")
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
