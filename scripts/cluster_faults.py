"""Breaks the nodes of a Ray cluster during a run, and shows what came of it.

    python scripts/cluster_faults.py                       every fault once
    python scripts/cluster_faults.py --faults control-power,scheduler-cut --times 10

Three hosts in namespaces of this machine (root on Linux), a run of 12,000 pods for each fault, the
driver on the head. A line of JSON per run: the fault; the outcome (exit status, last message); the
standstill (longest time without a byte in the journal after the fault); violations that `roadstead
check` found; processes of the run that were left on the cluster 10 s after it. Exit status 1 if a
run violated a rule, or ended without a reason.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.cluster.hosts import BIN, Host, hosts

ROADSTEAD = str(BIN / "roadstead")
NODES, PODS, BATCH = 120, 12_000, 128
FAULT_AFTER = 2_000
"""Placed pods after which the fault happens."""

CUT_S = 10.0
"""Duration of a network partition and of a pause."""

LOOK_S = 0.02
LEFT_S = 10.0
RUN_S = 300.0
"""Deadline of one run; a longer one counts as hanging."""


@dataclass(frozen=True, slots=True)
class Fault:
    """labels: `ray.labels` of the run; the second and the third host have `place: x`."""

    happens: Callable[[list[Host]], None]
    labels: dict[str, dict[str, str]] = field(default_factory=dict)


def cut_power(*which: int) -> Callable[[list[Host]], None]:
    def happen(made: list[Host]) -> None:
        for index in which:
            made[index].cut_power()

    return happen


def for_a_while(begin: Callable[[Host], None], end: Callable[[Host], None], which: int):
    def happen(made: list[Host]) -> None:
        begin(made[which])
        threading.Timer(CUT_S, end, (made[which],)).start()

    return happen


def send(number: int, part: str) -> Callable[[Host], None]:
    return lambda host: host.signal(number, part)


PARTED = for_a_while(Host.cut_network, lambda host: host.cut_network(False), 1)
PAUSED = for_a_while(
    send(signal.SIGSTOP, "raylet/raylet"), send(signal.SIGCONT, "raylet/raylet"), 1
)
AT = {"place": "x"}

FAULTS: dict[str, Fault] = {
    "scheduler-power": Fault(cut_power(1), {"scheduler": AT}),
    "worker-power": Fault(cut_power(1), {"worker": AT}),
    "control-power": Fault(cut_power(1), {"control": AT}),
    "two-power": Fault(cut_power(1, 2)),
    "scheduler-cut": Fault(PARTED, {"scheduler": AT}),
    "control-cut": Fault(PARTED, {"control": AT}),
    "raylet-paused": Fault(PAUSED, {"control": AT}),
    "raylet-killed": Fault(
        lambda made: made[1].signal(signal.SIGKILL, "raylet/raylet"), {"control": AT}
    ),
    "head-killed": Fault(lambda made: made[0].signal(signal.SIGKILL, "gcs_server")),
}


def write_fleet(folder: Path) -> tuple[str, ...]:
    """Write manifests and return the options that name them."""
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{index}"},
            "status": {"allocatable": allocatable},
        }
        for index in range(NODES)
    ]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    }
    (folder / "nodes.yaml").write_text(yaml.safe_dump_all(nodes))
    (folder / "pods.yaml").write_text(yaml.safe_dump(workload))
    return "--cluster", str(folder / "nodes.yaml"), "--pods", str(folder / "pods.yaml")


class Standstill(threading.Thread):
    """Watches the size of a journal; `longest_s` since the fault."""

    def __init__(self, journal: Path) -> None:
        super().__init__(daemon=True)
        self._journal = journal
        self.is_over = threading.Event()
        self.since_s: float | None = None
        self.longest_s = 0.0

    def _size(self) -> int:
        total = 0
        for path in self._journal.glob("*.segment"):
            try:
                total += path.stat().st_size
            except OSError:
                continue
        return total

    def run(self) -> None:
        size = -1
        changed_s = time.monotonic()
        while not self.is_over.wait(LOOK_S):
            now_s, found = time.monotonic(), self._size()
            if found != size:
                size, changed_s = found, now_s
            if self.since_s is not None:
                began_s = max(changed_s, self.since_s)
                self.longest_s = max(self.longest_s, now_s - began_s)


def run_one(name: str, fault: Fault, made: list[Host], folder: Path) -> dict[str, object]:
    """Schedule the fleet with a fault and return its line."""
    output = folder / "output"
    settings = folder / "roadstead.yaml"
    settings.write_text(yaml.safe_dump({"ray": {"labels": fault.labels}}))
    command = (
        *(ROADSTEAD, "schedule", *write_fleet(folder), "--ray-address", "auto"),
        *("--settings", str(settings), "--schedulers", "2", "--workers", "1"),
        *("--batch", str(BATCH), "--output", str(output), "--force"),
    )
    watch = Standstill(output / "journal")
    watch.start()
    running = made[0].begin(*command)
    killer = threading.Timer(RUN_S, running.kill)
    killer.start()
    messages: list[str] = []
    assert running.stderr is not None
    assert running.stdout is not None
    for line in running.stderr:
        messages.append(line.rstrip())
        if watch.since_s is None and _placed_in(line) >= FAULT_AFTER:
            watch.since_s = time.monotonic()
            fault.happens(made)
    running.stdout.read()
    status = running.wait()
    took_s = None if watch.since_s is None else time.monotonic() - watch.since_s
    killer.cancel()
    watch.is_over.set()
    time.sleep(LEFT_S)
    checked = subprocess.run(
        [ROADSTEAD, "check", str(output), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(checked.stdout) if checked.stdout else {"violations": [checked.stderr]}
    return {
        "fault": name,
        "status": status,
        "message": next((line for line in reversed(messages) if line), ""),
        "standstill_s": round(watch.longest_s, 2),
        "after_fault_s": took_s and round(took_s, 1),
        "violations": len(found["violations"]),
        "binds": found.get("binds_checked"),
        "left": _left(made),
    }


def _placed_in(line: str) -> int:
    """Return the number of placed pods in a line of progress; 0 for any other line."""
    return int(line.split()[1].replace(",", "")) if " placed of " in line else 0


def _left(made: Sequence[Host]) -> int:
    """Return how many processes of actors are left on hosts that still run."""
    return sum(len(host.pids("ray::RayHost")) for host in made if host.is_up)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--faults", default=",".join(FAULTS), help="names, with commas")
    parser.add_argument("--times", type=int, default=1, help="runs for each fault")
    options = parser.parse_args(arguments)
    is_clean = True
    for name in options.faults.split(","):
        for _ in range(options.times):
            with (
                tempfile.TemporaryDirectory(prefix="faults-") as folder,
                hosts(3, cpus=5, labels=("", "place=x", "place=x")) as made,
            ):
                line = run_one(name, FAULTS[name], made, Path(folder))
            print(json.dumps(line), flush=True)
            is_clean = is_clean and not line["violations"] and not line["left"]
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
