import os
import subprocess

import pytest

from roadstead.bench.machine import (
    PROC,
    commit_of,
    own_usage,
    process_usages,
    reset_peak_memory,
    this_machine,
)


def process(proc, pid, parent, kib):
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "status").write_text(f"Name:\tx\nPPid:\t{parent}\nVmHWM:\t  {kib} kB\n")


def test_memory_is_that_of_a_process_and_its_children(tmp_path):
    for pid, parent, kib in ((10, 1, 100), (11, 10, 20), (12, 11, 3), (13, 1, 5000)):
        process(tmp_path, pid, parent, kib)

    peaks = [each.peak_bytes for each in process_usages(tmp_path, 10)]
    assert peaks == [100 * 1024, 20 * 1024, 3 * 1024]


def test_an_ended_process_is_left_out(tmp_path):
    process(tmp_path, 10, 1, 100)
    process(tmp_path, 11, 10, 0)

    (found,) = process_usages(tmp_path, 10)
    assert (found.pid, found.peak_bytes) == (10, 100 * 1024)


def test_without_proc_the_system_returns_the_memory_of_this_process(tmp_path):
    (found,) = process_usages(tmp_path)

    assert found.peak_bytes > 1 << 20


def test_this_process_has_a_peak_memory():
    assert own_usage().peak_bytes > 1 << 20


def test_the_machine_is_described_from_proc(tmp_path):
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: Fast CPU\nmodel name: Other\n")
    (tmp_path / "meminfo").write_text("MemTotal:       1024 kB\n")

    machine = this_machine(tmp_path)

    assert machine.cpu == "Fast CPU"
    assert machine.memory_bytes == 1 << 20
    assert machine.cores >= 1
    assert str(machine).startswith(f"Fast CPU, {machine.cores} cores, ")


def test_without_proc_the_machine_is_still_described(tmp_path):
    machine = this_machine(tmp_path)

    assert machine.cpu
    assert machine.memory_bytes == 0


def test_the_commit_is_that_of_the_checkout_and_marked_if_files_differ(tmp_path):
    def git(*arguments):
        subprocess.run(["git", "-C", tmp_path, *arguments], check=True, capture_output=True)

    assert commit_of(tmp_path / "none") == ""
    git("init", "-q")
    assert commit_of(tmp_path) == ""
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "a")
    clean = commit_of(tmp_path)
    (tmp_path / "a").write_text("2")

    assert len(clean) >= 7
    assert commit_of(tmp_path) == f"{clean}-dirty"


def test_the_peak_is_reset_where_the_system_allows_it(tmp_path):
    reset_peak_memory(tmp_path)
    (tmp_path / "self").mkdir()
    reset_peak_memory(tmp_path)

    assert (tmp_path / "self" / "clear_refs").read_text() == "5"


def test_processor_time_is_that_of_a_process_and_its_children(tmp_path):
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    for pid, parent in ((10, 1), (11, 10), (12, 1)):
        process(tmp_path, pid, parent, 1)
        stat = f"{pid} (a) b) S {parent} 1 1 0 -1 4 5 6 7 8 {100 + pid} {3} 0 0 20"
        (tmp_path / str(pid) / "stat").write_text(stat)

    found = {each.pid: each.processor_s for each in process_usages(tmp_path, 10)}

    assert found == pytest.approx({10: 113 * tick_s, 11: 114 * tick_s})


def test_without_proc_processor_time_is_that_of_this_process(tmp_path):
    assert all(process_usages(each)[0].processor_s > 0 for each in (tmp_path, PROC))
