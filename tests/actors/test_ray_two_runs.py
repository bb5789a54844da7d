"""Two runs at once on one Ray cluster: neither sees anything of the other."""

import re
import subprocess
import sys

import pytest

from tests.actors.test_ray_faults import ROOT

pytestmark = pytest.mark.ray

TIMEOUT_S = 240
TOGETHER = ("--nodes", "40", "--pods", "2000", "-o", "csv")

CLUSTER = """
import sys
from ray.cluster_utils import Cluster

# Otherwise Ray runs the actors at niceness 15, and on a busy machine each takes minutes.
system = {"worker_niceness": 0}
size = {"num_cpus": 4, "object_store_memory": 80 << 20, "_system_config": system}
cluster = Cluster(
    initialize_head=True, head_node_args={**size, "no_monitor": True, "include_log_monitor": False}
)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture
def address():
    """The head of a cluster with room for two runs."""
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as cluster:
        found = next(line for line in cluster.stdout if re.fullmatch(r"[\w.:]+:\d+", line.strip()))
        yield found.strip()
        cluster.stdin.close()
        cluster.wait(TIMEOUT_S)


def begin(*options):
    command = [sys.executable, "-m", "roadstead", "demo", *TOGETHER, *map(str, options)]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def result_of(running):
    """Return the placements and the messages of a run that succeeds."""
    output, messages = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 0, messages
    return output, messages


def test_two_runs_at_once_decide_as_if_each_were_alone(address, tmp_path):
    seeds = (3, 4)
    logs = tmp_path / "logs"

    runs = [begin("--seed", seed, "--ray-address", address, "--log", logs) for seed in seeds]
    ended = [result_of(each) for each in runs]

    alone = [result_of(begin("--seed", seed, "--runtime", "inline"))[0] for seed in seeds]
    assert [output for output, _ in ended] == alone
    assert alone[0] != alone[1]
    names = [re.findall(r"^Ray at \S+, (roadstead-\w+):", text, re.M) for _, text in ended]
    assert [len(each) for each in names] == [1, 1], "no process was replaced"
    assert names[0] != names[1]
    assert not any("Not all logs" in text for _, text in ended)
