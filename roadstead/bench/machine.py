"""The machine of a measurement, and the memory and processor time of a run's processes."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

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


def peak_memory(proc: Path = PROC, pid: int | None = None) -> tuple[int, int]:
    """(bytes, processes): peak memory of a process and its descendants.

    The sum of the peaks of the single processes. Shared memory is counted several times, and the
    peaks need not coincide, so it is an upper bound.
    """
    peaks = [_peak(proc, each) for each in _process_tree(proc, os.getpid() if pid is None else pid)]
    known = [each for each in peaks if each]
    if known:
        return sum(known), len(known)
    return own_peak_bytes(proc), 1


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


def processor_seconds(proc: Path = PROC, pid: int | None = None) -> dict[int, float]:
    """Process → its processor time in seconds, for a process and its descendants.

    Unlike wall time, it is meaningful on a machine that also does other work.
    """
    own = os.getpid() if pid is None else pid
    ticks = {each: _ticks(proc / str(each) / "stat") for each in _process_tree(proc, own)}
    if not any(ticks.values()):
        return {own: time.process_time()}
    return {each: count / os.sysconf("SC_CLK_TCK") for each, count in ticks.items()}


def processor_spent(before: Mapping[int, float], after: Mapping[int, float]) -> dict[int, float]:
    """Process → its processor time between two readings; processes that ended are left out."""
    return {pid: spent - before.get(pid, 0.0) for pid, spent in after.items()}


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
