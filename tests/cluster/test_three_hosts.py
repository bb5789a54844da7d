"""Runs on a Ray cluster of three hosts, each in namespaces of its own on this machine."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests.cluster.hosts import NO_HOSTS, hosts, may_have_hosts
from tests.cluster.runs import (
    CUT_AFTER,
    ROADSTEAD,
    check_bench,
    checked,
    placements,
    run_with_fault,
    schedule,
    small_bench,
)

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(not may_have_hosts(), reason=NO_HOSTS),
]

by_hand = pytest.mark.skipif(
    os.environ.get("ROADSTEAD_TESTS") != "all",
    reason="takes a minute, and scripts/cluster_faults.py does the same: ROADSTEAD_TESTS=all",
)
"""Tests that `scripts/test` leaves out."""

ROOT = Path(__file__).resolve().parents[2]

ENDED_S = 30.0
"""Deadline for processes to end; 3 to 7 s on a machine with nothing else to do."""


@pytest.fixture(scope="module")
def cluster():
    """Three hosts that share the folders of tests; the second and the third have a label."""
    with hosts(3, cpus=4, labels=("", "place=x", "place=x")) as made:
        yield made


def test_every_node_is_checked_and_one_without_the_package_is_named(cluster, tmp_path):
    head, _, bare = cluster
    assert bare.run("mount", "-t", "tmpfs", "tmpfs", str(ROOT / "roadstead")).returncode == 0
    try:
        command = (ROADSTEAD, "cluster", "check", "--ray-address", "auto", "--format", "json")
        missing = head.run(*command, "--journal", str(head.disk / "typo"))
        head.run("mkdir", str(head.disk / "journal"))
        ended = head.run(*command, "--journal", str(head.disk / "journal"))
    finally:
        bare.run("umount", str(ROOT / "roadstead"))

    assert missing.returncode == 2
    assert "must be an existing folder" in missing.stderr
    assert ended.returncode == 1, ended.stderr
    found = {node["name"]: node for node in json.loads(ended.stdout)["nodes"]}
    assert [found[name]["problem"] for name in ("h1", "h2")] == ["", ""]
    assert "Roadstead cannot be imported there" in found["h3"]["problem"]
    assert [found[name]["sees_journal"] for name in ("h1", "h2")] == [True, False]


def test_the_placements_are_those_of_one_process(cluster, fleet):
    local = subprocess.run(
        schedule(fleet, "--runtime", "inline", "-o", "csv", "--seed", "5"),
        capture_output=True,
        text=True,
        check=True,
    )

    address = f"{cluster[0].address}:6379"
    options = ("--ray-address", address, "--workers", "2", "-o", "csv", "--seed", "5")
    joined = cluster[1].run(*schedule(fleet, *options))

    assert joined.returncode == 0, joined.stderr
    assert placements(joined.stdout) == placements(local.stdout)
    for name in ("control", "scheduler-0", "worker-0", "worker-1"):
        assert name in joined.stderr, "the summary names the node of every process"


def test_the_bench_measures_processes_on_other_hosts(cluster, tmp_path):
    settings = tmp_path / "roadstead.yaml"
    settings.write_text("ray: {labels: {scheduler: {place: x}, worker: {place: x}}}")
    options = ("--ray-address", "auto", "--settings", str(settings))

    ended = cluster[0].run(*small_bench(tmp_path), *options)

    assert ended.returncode == 0, ended.stderr
    check_bench(ended.stdout)


def test_too_few_cpus_are_reported_and_awaited(cluster, fleet, tmp_path):
    settings = tmp_path / "roadstead.yaml"
    settings.write_text("ray: {cpus_per_process: 9}\ndeadlines: {start_s: 3}\n")

    ended = cluster[0].run(*schedule(fleet, "--ray-address", "auto", "--settings", str(settings)))

    assert ended.returncode == 1
    assert "Waiting for the Ray cluster: the control wants 9 CPUs on one node" in ended.stderr
    assert "in all 12 of 12 CPUs are free. Waited 3 s" in ended.stderr


def test_a_binder_away_from_its_journal_is_refused(cluster, fleet, tmp_path):
    settings = tmp_path / "roadstead.yaml"
    settings.write_text("ray: {labels: {control: {place: x}}}\ndeadlines: {start_s: 3}\n")
    journal = cluster[0].disk / "journal-of-h1"

    ended = cluster[0].run(
        *schedule(fleet, "--ray-address", "auto", "--settings", str(settings)),
        *("--journal", str(journal)),
    )

    assert ended.returncode == 1
    rule = "no node with the labels of the control (place=x) has the folder of the journal"
    assert rule in ended.stderr


@pytest.mark.parametrize("role", ["scheduler", "control"])
def test_the_loss_of_a_node_loses_nothing(cluster, fleet, tmp_path, role):
    head, lost, _ = cluster
    settings = tmp_path / "roadstead.yaml"
    settings.write_text(yaml.safe_dump({"ray": {"labels": {role: {"place": "x"}}}}))
    output = tmp_path / "output"
    command = schedule(
        fleet,
        *("--ray-address", "auto", "--settings", str(settings), "--batch", "256"),
        *("--schedulers", "2", "--output", str(output), "--log", str(tmp_path / "logs")),
    )

    messages = run_with_fault(head.begin(*command), lost.cut_power)

    lost.restart(head, 4, "--labels=place=x")
    found = checked(head, output)
    assert (found["violations"], found["binds_checked"]) == ([], 6_000)
    where = [line for line in messages if line.startswith("Ray at ")]
    assert [lost.name in line for line in where] == [True, False]
    notes = [line for line in messages if line.startswith("Not all logs are in ")]
    assert len(notes) == 1
    assert f"on {lost.name} ({lost.address}) (the node is lost)" in notes[0]
    gathered = {path.name for path in (tmp_path / "logs").iterdir()}
    assert not any(lost.name in name for name in gathered)
    assert any(name.startswith((f"{role}.2@", f"{role}-0.2@", f"{role}-1.2@")) for name in gathered)


@by_hand
def test_processes_end_soon_after_the_drivers_node_is_lost(cluster, fleet, tmp_path):
    head, lost, other = cluster
    output = tmp_path / "output"
    options = ("--ray-address", "auto", "--batch", "256", "--schedulers", "2")
    command = schedule(fleet, *options, "--output", str(output))
    running = lost.begin(*command)
    for line in running.stderr:
        if placed_counts([line]):
            lost.cut_power()
            break

    running.wait()
    until_s = time.monotonic() + ENDED_S
    while left := [host.name for host in (head, other) if host.pids("ray::RayHost")]:
        assert time.monotonic() < until_s, f"processes are left on {left}"

    lost.restart(head, 4, "--labels=place=x")
    resumed = head.run(*command, "--resume", "--force")
    assert resumed.returncode == 0, resumed.stderr
    found = checked(head, output)
    assert (found["violations"], found["binds_checked"]) == ([], 6_000)


def test_the_logs_of_all_nodes_are_gathered_also_of_a_killed_process(cluster, fleet, tmp_path):
    head, other, third = cluster
    settings = tmp_path / "roadstead.yaml"
    settings.write_text("ray: {labels: {scheduler: {place: x}}}")
    # On the head's own disk, which no other host sees.
    logs = head.disk / "logs"
    command = schedule(
        fleet,
        *("--ray-address", "auto", "--settings", str(settings), "--batch", "256"),
        *("--schedulers", "2", "--log", str(logs)),
    )

    messages = run_with_fault(head.begin(*command), lambda: other.signal(9, "ray::RayHost"))

    assert not any(line.startswith("Not all logs") for line in messages), messages
    gathered = head.run("ls", str(logs)).stdout.split()
    # The scheduler of the second host is replaced there.
    (killed,) = [name[:11] for name in gathered if name.endswith(f".2@{other.name}.jsonl")]
    (kept,) = {"scheduler-0", "scheduler-1"} - {killed}
    assert sorted(gathered) == sorted(
        [
            f"control@{head.name}.jsonl",
            "driver.jsonl",
            f"{killed}@{other.name}.jsonl",
            f"{killed}.2@{other.name}.jsonl",
            f"{kept}@{third.name}.jsonl",
        ]
    )
    for name in gathered:
        text = head.run("cat", str(logs / name)).stdout
        assert all(json.loads(line)["event"] for line in text.splitlines())


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_gathers_logs_and_ends_in_time(cluster, fleet, tmp_path, signum):
    head = cluster[0]
    logs = head.disk / f"logs-{signum}"
    options = ("--ray-address", "auto", "--batch", "64", "--workers", "2", "--log", str(logs))
    running = head.begin(*schedule(fleet, *options))
    for line in running.stderr:
        if " placed of " in line:
            head.signal(signum, "roadstead schedule")
            break
    rest = running.stderr.read()

    assert running.wait() == 128 + signum, rest
    assert "Interrupted by" in rest
    gathered = head.run("ls", str(logs)).stdout.split()
    assert {name.partition("@")[0] for name in gathered} == {
        *("driver.jsonl", "control", "scheduler-0", "worker-0", "worker-1")
    }


class Copied:
    """A run whose journal is on the second host's disk, with a copy on the third one's."""

    def __init__(self, hosts, fleet, folder, **labels):
        self.head, self.binder, self.other = hosts
        self.journal, self.copy = self.binder.disk / "journal", self.other.disk / "copy"
        settings = folder / "roadstead.yaml"
        settings.write_text(
            yaml.safe_dump({"ray": {"labels": {"control": {"place": "x"}} | labels}})
        )
        self.options = ("--ray-address", "auto", "--settings", str(settings), "--batch", "256")
        self.command = (
            *schedule(fleet, *self.options, "--schedulers", "2", "--output", str(folder / "out")),
            *("--journal", str(self.journal), "--journal-copy", str(self.copy)),
        )


def same_files(one, folder, other, other_folder):
    """The names of the journal's files on one host; they have the same bytes on another one."""
    listed = [
        host.run("sh", "-c", f"cd {where} && sha256sum *.segment outcome").stdout
        for host, where in ((one, folder), (other, other_folder))
    ]
    assert listed[0] == listed[1]
    return [line.split()[1] for line in listed[0].splitlines()]


def placed_counts(messages):
    lines = (line for line in messages if " placed of " in line)
    return [int(line.split()[1].replace(",", "")) for line in lines]


def test_the_loss_of_the_binders_node_with_its_disk_loses_nothing(cluster, fleet, tmp_path):
    run = Copied(cluster, fleet, tmp_path)

    messages = run_with_fault(run.head.begin(*run.command), run.binder.cut_power)

    run.binder.restart(run.head, 4, "--labels=place=x")
    found = checked(run.other, run.copy)
    assert (found["violations"], found["binds_checked"]) == ([], 6_000)
    counts = placed_counts(messages)
    assert counts == sorted(counts), "what was acknowledged stays placed"
    # The new copy is on the head, in the folder of the same name.
    assert "outcome" in same_files(run.other, run.copy, run.head, run.copy)
    assert checked(run.head, run.copy)["violations"] == []
    assert not list(run.journal.parent.glob("*")), "the driver has no part of it"


@by_hand
def test_a_run_goes_on_when_its_copy_has_a_new_node(cluster, fleet, tmp_path):
    run = Copied(cluster, fleet, tmp_path)

    messages = run_with_fault(run.head.begin(*run.command), run.other.cut_power)

    run.other.restart(run.head, 4, "--labels=place=x")
    *_, where = (line for line in messages if line.startswith("Ray at "))
    on_head = next(part for part in where.split("; ") if f" on {run.head.name} (" in part)
    assert "journal-copy" in on_head
    assert checked(run.binder, run.journal)["binds_checked"] == 6_000
    same_files(run.binder, run.journal, run.head, run.copy)


@by_hand
def test_a_run_without_room_for_a_new_copy_ends_and_is_resumed_without_one(
    cluster, fleet, tmp_path
):
    run = Copied(cluster, fleet, tmp_path, copy={"place": "x"})
    running = run.head.begin(*run.command)
    messages = []
    for line in running.stderr:
        messages.append(line)
        if max([0, *placed_counts([line])]) >= CUT_AFTER and run.other.is_up:
            run.other.cut_power()

    assert running.wait() == 1
    run.other.restart(run.head, 4, "--labels=place=x")
    reason = messages[-1]
    assert "journal-copy is gone: its Ray node h3" in reason
    assert "No other node can run journal-copy" in reason
    assert f"what the binder acknowledged is in {run.journal} on h2" in reason
    resumed = run.binder.run(
        *schedule(fleet, *run.options, "--output", str(tmp_path / "out"), "--resume", "--force"),
        *("--journal", str(run.journal)),
    )
    assert resumed.returncode == 0, resumed.stderr
    found = checked(run.binder, run.journal)
    assert (found["violations"], found["binds_checked"]) == ([], 6_000)
