"""The machine of a measurement, and the memory and processor time of a run's processes."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from roadstead.bench.process_usage import ProcessUsage

PROC = Path("/proc")
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Machine:
    """A description of a machine. cpu: its model. system: the operating system."""

    cpu: str
    cores: int
    memory_bytes: int
    system: str
    python: str

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} cores, {self.system}, Python {self.python}"


def this_machine(proc: Path = PROC) -> Machine:
    """Describe the machine on which this process runs."""
    model = _field(proc / "cpuinfo", "model name") or platform.processor() or platform.machine()
    memory = _field(proc / "meminfo", "MemTotal").removesuffix(" kB")
    bytes_ = int(memory) * _KIB if memory.isdecimal() else 0
    cores = os.cpu_count() or 1
    return Machine(model, cores, bytes_, platform.system(), platform.python_version())


def _field(path: Path, name: str) -> str:
    """The first value of a `name : value` file of /proc; "" if there is none."""
    for line in _lines(path):
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip()
    return ""


def _lines(path: Path) -> Iterable[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()


def commit_of(folder: Path) -> str:
    """The git commit checked out around a folder, marked if files differ; "" if there is none."""
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        completed = subprocess.run(  # noqa: S603
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return completed.stdout.strip()


def own_peak_bytes(proc: Path = PROC) -> int:
    """The peak memory of this process."""
    unit = 1 if sys.platform == "darwin" else _KIB
    return _peak(proc, os.getpid()) or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def own_memory_bytes(proc: Path = PROC) -> int:
    """The memory that this process has now, or its peak where only that is known."""
    try:
        pages = int((proc / "self" / "statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return own_peak_bytes(proc)
    return pages * os.sysconf("SC_PAGE_SIZE")


def process_usages(proc: Path = PROC, pid: int | None = None) -> tuple[ProcessUsage, ...]:
    """The processor time and peak memory of a process and its descendants.

    Shared memory is counted in each of them.
    """
    own = os.getpid() if pid is None else pid
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    found = [
        ProcessUsage(each, _ticks(proc / str(each) / "stat") * tick_s, _peak(proc, each))
        for each in _process_tree(proc, own)
    ]
    # Both are 0 for a process that has just ended.
    return tuple(each for each in found if each.processor_s or each.peak_bytes) or (
        own_usage(proc),
    )


def own_usage(proc: Path = PROC) -> ProcessUsage:
    """The processor time and peak memory of this process."""
    return ProcessUsage(os.getpid(), time.process_time(), own_peak_bytes(proc))


def _ticks(path: Path) -> int:
    """User and system time of a process, in clock ticks (proc_pid_stat, fields 14 and 15)."""
    for line in _lines(path):
        # The name in parentheses may contain spaces and parentheses.
        fields = line.rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def reset_peak_memory(proc: Path = PROC) -> None:
    """Reset the peak memory of this process, if the system permits it."""
    with contextlib.suppress(OSError):
        (proc / "self" / "clear_refs").write_text("5", encoding="ascii")


def _peak(proc: Path, pid: int) -> int:
    text = _field(proc / str(pid) / "status", "VmHWM").removesuffix(" kB")
    return int(text) * _KIB if text.isdecimal() else 0


def _process_tree(proc: Path, root: int) -> list[int]:
    """A process and its current descendants."""
    children: dict[int, list[int]] = {}
    for folder in proc.glob("[0-9]*"):
        parent = _field(folder / "status", "PPid")
        if parent.isdecimal():
            children.setdefault(int(parent), []).append(int(folder.name))
    tree = [root]
    for pid in tree:
        tree += children.get(pid, [])
    return tree
