"""Commands of runs on a Ray cluster, and what comes of them."""

import csv
import io
import json

import yaml

from tests.cluster.hosts import BIN

ROADSTEAD = str(BIN / "roadstead")

CUT_AFTER = 1_000
"""Pods placed before a fault."""


def schedule(fleet, *options):
    """The command that schedules the fleet."""
    files = ("--cluster", str(fleet / "nodes.yaml"), "--pods", str(fleet / "pods.yaml"))
    return (ROADSTEAD, "schedule", *files, *options)


def small_bench(folder):
    """The command that measures 500 pods on 20 nodes, with a worker."""
    template = [
        {"opcode": "createNodes", "count": 20},
        {"opcode": "createPods", "count": 500, "collectMetrics": True},
    ]
    path = folder / "workloads.yaml"
    path.write_text(
        yaml.safe_dump(
            [{"name": "Small", "workloadTemplate": template, "workloads": [{"name": "500Pods"}]}]
        )
    )
    return (ROADSTEAD, "bench", "--file", str(path), "--json", "--workers", "1", "--kernel", "off")


def check_bench(output):
    """Every process of a run of `small_bench` is measured, on whichever node it is."""
    (found,) = json.loads(output)["results"]
    spent_us = found["process_us_per_pod"]
    assert set(spent_us) == {"driver", "control", "scheduler-0", "worker-0"}
    assert min(spent_us["control"], spent_us["scheduler-0"]) > 0
    assert found["critical_us_per_pod"] == max(spent_us.values())
    assert found["processes"] == 4
    # Each has imported numpy.
    assert found["peak_bytes"] > 4 * (20 << 20)


def placements(output):
    return sorted(csv.reader(io.StringIO(output)))


def run_with_fault(running, fault):
    """Call `fault` once a run has placed some pods. Returns its messages."""
    messages, is_done = [], False
    for line in running.stderr:
        messages.append(line.rstrip())
        if not is_done and " placed of " in line:
            placed = int(line.split()[1].replace(",", ""))
            if placed >= CUT_AFTER:
                is_done = True
                fault()
    output = running.stdout.read()
    assert running.wait() == 0, "\n".join([*messages, output])
    assert is_done, "the run ended before the fault"
    return messages


def checked(host, folder):
    """What `roadstead check` finds in the output of a run."""
    ended = host.run(ROADSTEAD, "check", str(folder), "--format", "json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(ended.stdout)
