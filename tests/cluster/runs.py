"""Commands of runs on a Ray cluster, and what comes of them."""

import csv
import io
import json

from tests.cluster.hosts import BIN

ROADSTEAD = str(BIN / "roadstead")

CUT_AFTER = 1_000
"""Pods placed before a fault."""


def schedule(fleet, *options):
    """The command that schedules the fleet."""
    files = ("--cluster", str(fleet / "nodes.yaml"), "--pods", str(fleet / "pods.yaml"))
    return (ROADSTEAD, "schedule", *files, *options)


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
