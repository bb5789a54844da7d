"""The machine that figures were taken on, and what the processes of a run took of it."""

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
    cpu: str
    cores: int
    memory_bytes: int
    system: str
    python: str

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} cores, {self.system}, Python {self.python}"


def this_machine(proc: Path = PROC) -> Machine:
    """What figures of this process are measured on."""
    model = _field(proc / "cpuinfo", "model name") or platform.processor() or platform.machine()
    memory = _field(proc / "meminfo", "MemTotal").removesuffix(" kB")
    bytes_ = int(memory) * _KIB if memory.isdecimal() else 0
    cores = os.cpu_count() or 1
    return Machine(model, cores, bytes_, platform.system(), platform.python_version())


def _field(path: Path, name: str) -> str:
    """The first value of a `name : value` file of /proc, "" where there is none."""
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
    """The commit that is checked out around a folder, marked where files differ; "" for none."""
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def peak_memory(proc: Path = PROC, pid: int | None = None) -> tuple[int, int]:
    """(bytes, processes): the most that a process and those that it started ever held at once.

    The sum of each one's own peak, which counts what they share several times: an upper bound.
    """
    peaks = [_peak(proc, each) for each in _family(proc, os.getpid() if pid is None else pid)]
    known = [each for each in peaks if each]
    if known:
        return sum(known), len(known)
    return own_peak_bytes(proc), 1


def own_peak_bytes(proc: Path = PROC) -> int:
    """The most memory that this process ever held."""
    unit = 1 if sys.platform == "darwin" else _KIB
    return _peak(proc, os.getpid()) or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def processor_seconds(proc: Path = PROC, pid: int | None = None) -> dict[int, float]:
    """Process → processor time it has taken, in seconds: of a process and those that it started.

    Unlike the time on the wall it says something on a machine that does other work, too.
    """
    own = os.getpid() if pid is None else pid
    ticks = {each: _ticks(proc / str(each) / "stat") for each in _family(proc, own)}
    if not any(ticks.values()):
        return {own: time.process_time()}
    return {each: count / os.sysconf("SC_CLK_TCK") for each, count in ticks.items()}


def processor_spent(before: Mapping[int, float], after: Mapping[int, float]) -> dict[int, float]:
    """Process → what it took between two looks; one that ended between them is left out."""
    return {pid: spent - before.get(pid, 0.0) for pid, spent in after.items()}


def _ticks(path: Path) -> int:
    """User and system time of a process, in clock ticks (proc_pid_stat, fields 14 and 15)."""
    for line in _lines(path):
        # The name in parentheses may hold anything.
        fields = line.rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def forget_peak(proc: Path = PROC) -> None:
    """The peak of this process begins anew, where the system lets it."""
    with contextlib.suppress(OSError):
        (proc / "self" / "clear_refs").write_text("5", encoding="ascii")


def _peak(proc: Path, pid: int) -> int:
    text = _field(proc / str(pid) / "status", "VmHWM").removesuffix(" kB")
    return int(text) * _KIB if text.isdecimal() else 0


def _family(proc: Path, root: int) -> list[int]:
    """A process and its descendants, as far as they are there now."""
    children: dict[int, list[int]] = {}
    for folder in proc.glob("[0-9]*"):
        parent = _field(folder / "status", "PPid")
        if parent.isdecimal():
            children.setdefault(int(parent), []).append(int(folder.name))
    family = [root]
    for pid in family:
        family += children.get(pid, [])
    return family
