"""Runs on three Ray nodes of one machine, in place of three hosts where those are not allowed.

`ray.cluster_utils.Cluster` starts several raylets without privileges. They share network, clock and
disks: nodes can be joined, checked, used and lost, but not cut off from each other, and every node
sees the journal.
"""

import json
import re
import subprocess
import sys

import pytest
import yaml

from tests.cluster.hosts import ENVIRONMENT, may_have_hosts
from tests.cluster.runs import ROADSTEAD, placements, run_with_fault, schedule

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
second, third = (cluster.add_node(**size, labels={"place": "x"}) for _ in range(2))
print(cluster.address, flush=True)
for line in sys.stdin:
    cluster.remove_node(second, allow_graceful=False)
cluster.shutdown()
"""
"""Removes the second node at the first line of its input, and ends with its input."""


class Nodes:
    """Three Ray nodes of one machine; the second and the third have a label `place`."""

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
        self.server.stdin.write("lose\n")
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


def settings_of(folder, **ray):
    path = folder / "roadstead.yaml"
    path.write_text(yaml.safe_dump({"ray": ray, "deadlines": {"start_s": 20}}))
    return "--settings", str(path)


def test_every_node_is_checked(nodes):
    status, output, messages = nodes.run(ROADSTEAD, "cluster", "check", "--format", "json")

    assert status == 0, messages
    assert [node["problem"] for node in json.loads(output)["nodes"]] == ["", "", ""]


def test_the_placements_are_those_of_one_process(nodes, fleet):
    options = ("-o", "csv", "--seed", "5")
    command = schedule(fleet, "--runtime", "inline", *options)
    local = subprocess.run(command, capture_output=True, text=True, check=True)

    status, output, messages = nodes.run(*schedule(fleet, "--workers", "2", *options))

    assert status == 0, messages
    assert placements(output) == placements(local.stdout)
    for name in ("control", "scheduler-0", "worker-0", "worker-1"):
        assert name in messages


def test_labels_that_no_node_has_are_said(nodes, fleet, tmp_path):
    settings = settings_of(tmp_path, labels={"scheduler": {"place": "z"}})

    status, _, messages = nodes.run(*schedule(fleet, *settings))

    assert status == 1
    assert "place=z" in messages


def test_the_loss_of_a_node_loses_nothing(nodes, fleet, tmp_path):
    settings = settings_of(tmp_path, labels={"scheduler": {"place": "x"}})
    output = tmp_path / "output"
    options = ("--batch", "256", "--schedulers", "2", "--output", str(output))

    running = nodes.begin(*schedule(fleet, *settings, *options))
    messages = run_with_fault(running, nodes.lose_second)

    where = [line for line in messages if line.startswith("Ray at ")]
    assert len(where) == 2, "a scheduler was replaced on the other node"

    checked = subprocess.run(
        (ROADSTEAD, "check", str(output), "--format", "json"), capture_output=True, check=True
    )
    found = json.loads(checked.stdout)
    assert (found["violations"], found["binds_checked"]) == ([], 6_000)
