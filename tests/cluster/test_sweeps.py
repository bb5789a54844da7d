"""A sweep over a Ray cluster of three hosts, one of which loses its power meanwhile."""

import json
import subprocess

import pytest

from tests.cluster.hosts import BIN, NO_HOSTS, hosts, may_have_hosts

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(not may_have_hosts(), reason=NO_HOSTS),
]

ROADSTEAD = str(BIN / "roadstead")

RUNS = 32


@pytest.fixture(scope="module")
def cluster():
    """Three hosts with two CPUs each."""
    with hosts(3, cpus=2) as made:
        yield made


def sweep(output, *flags):
    """The command of a sweep of `RUNS` runs."""
    size = ("--vary", "machines=2000", "--vary", "horizon_s=3600", "--schedulers", "1,2,4,8")
    return (ROADSTEAD, "stress", *size, "--seeds", str(RUNS // 4), "--output", str(output), *flags)


def tables(folder):
    return [(folder / name).read_bytes() for name in ("runs.parquet", "points.json")]


def test_a_sweep_loses_a_host_and_no_run(cluster, tmp_path):
    head, lost, _ = cluster
    alone = subprocess.run(
        sweep(tmp_path / "alone", "--jobs", "1"), capture_output=True, text=True, check=True
    )

    running = head.begin(*sweep(tmp_path / "spread", "--ray-address", "auto"))
    messages = []
    for line in running.stderr:
        messages.append(line.rstrip())
        if lost.is_up and ", 6 running" in line:
            lost.cut_power()
    output = running.stdout.read()

    assert running.wait() == 0, "\n".join(messages)
    assert not lost.is_up, "all hosts had tasks, and then one lost its power"
    assert any(" lost" in line for line in messages), messages
    assert output == alone.stdout
    assert tables(tmp_path / "spread") == tables(tmp_path / "alone")
    rows = (tmp_path / "spread" / "results.jsonl").read_text().splitlines()[1:]
    assert sorted(json.loads(row)["task"] for row in rows) == list(range(RUNS))
