"""Lose nodes of a Ray cluster, one after the other, and check that no bind is lost.

    python scripts/cluster_soak.py --losses 200 --seed 1

Three hosts in namespaces of this machine (root on Linux), the driver on the head. The processes of
each run are on the two other hosts, which lose their power in turn, at moments that the seed gives,
and start again. Runs follow one another until the number of losses is reached. The journal is in
a folder that all hosts see, as on a shared disk.

A line of JSON per run: losses, exit status, the binds and violations that `roadstead check` counts
in the journal, processes left on the cluster 10 s after the run, the longest time without progress.
The last line has the sums. Exit status 1 if a run lost a pod, violated a rule or left a process,
or if the runs ended before enough losses.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cluster_fault_list import ANY, CPUS, LABELS
from cluster_faults import LEFT_S, ROADSTEAD, placed_in, processes_left, write_fleet

from tests.cluster.hosts import Host, hosts

PODS, PODS_PER_NODE, BATCH = 40_000, 200, 16
"""A small batch, so that a run lasts for several losses."""

APART_S = 15.0
"""Least time between two losses: an actor may be replaced five times in a minute."""

SPREAD_S = 10.0
"""Up to so much is added at random."""

RUN_S = 900.0

MAX_WITHOUT_LOSS = 5
"""After so many runs in a row without a loss, no more begin: they end before a loss can happen."""


class Losses(threading.Thread):
    """Cut the power of the two hosts in turn while a run lasts, and start them again."""

    def __init__(self, all_hosts: Sequence[Host], seeded: random.Random, most: int) -> None:
        super().__init__(daemon=True)
        self._all_hosts, self._random, self._most = all_hosts, seeded, most
        self._is_over = threading.Event()
        self.done = 0

    def run(self) -> None:
        which = self._random.choice((1, 2))
        while self.done < self._most:
            if self._is_over.wait(APART_S + self._random.random() * SPREAD_S):
                return
            self._all_hosts[which].cut_power()
            self.done += 1
            self._all_hosts[which].restart(self._all_hosts[0], CPUS, f"--labels={LABELS[which]}")
            which = 3 - which

    def end(self) -> None:
        """Return once the host that was lost last has started again."""
        self._is_over.set()
        if self.ident is not None:
            self.join()


def run_one(
    all_hosts: Sequence[Host], folder: Path, losses: Losses, pods: int
) -> dict[str, object]:
    """Schedule a fleet of `pods` while hosts are lost; return the line of the run."""
    settings = folder / "roadstead.yaml"
    labels = dict.fromkeys(("control", "scheduler", "worker"), ANY)
    settings.write_text(yaml.safe_dump({"ray": {"labels": labels}}))
    fleet = write_fleet(folder, -(-pods // PODS_PER_NODE), pods)
    running = all_hosts[0].begin(
        *(ROADSTEAD, "schedule", *fleet, "--ray-address", "auto"),
        *("--settings", str(settings), "--schedulers", "2", "--batch", str(BATCH)),
        *("--output", str(folder / "output"), "--journal", str(folder / "journal")),
    )
    killer = threading.Timer(RUN_S, running.kill)
    killer.start()
    began_s = changed_s = time.monotonic()
    placed, longest_s, message = 0, 0.0, ""
    assert running.stderr is not None
    for line in running.stderr:
        message = line.strip() or message
        if placed_in(line) > placed:
            if not placed:
                losses.start()
            placed, now_s = placed_in(line), time.monotonic()
            longest_s, changed_s = max(longest_s, now_s - changed_s), now_s
    status, took_s = running.wait(), time.monotonic() - began_s
    killer.cancel()
    losses.end()
    time.sleep(LEFT_S)
    checked = all_hosts[0].run(ROADSTEAD, "check", str(folder / "journal"), "--format", "json")
    found = json.loads(checked.stdout) if checked.stdout else {"violations": [checked.stderr]}
    return {
        "losses": losses.done,
        "status": status,
        "message": message,
        "took_s": round(took_s, 1),
        "longest_s": round(longest_s, 1),
        "binds": found.get("binds_checked"),
        "violations": len(found["violations"]),
        "left": processes_left(all_hosts),
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--losses", type=int, default=200, help="losses in all runs together")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the losses")
    parser.add_argument("--pods", type=int, default=PODS, help="pods of a run: more, longer runs")
    options = parser.parse_args(arguments)
    seeded = random.Random(options.seed)  # noqa: S311
    lost = runs = broken = without_loss = 0
    with hosts(3, cpus=CPUS, labels=LABELS) as all_hosts:
        while lost < options.losses and without_loss < MAX_WITHOUT_LOSS:
            with tempfile.TemporaryDirectory(prefix="soak-") as folder:
                losses = Losses(all_hosts, seeded, options.losses - lost)
                line = run_one(all_hosts, Path(folder), losses, options.pods)
            print(json.dumps(line), flush=True)
            lost, runs = lost + losses.done, runs + 1
            without_loss = 0 if losses.done else without_loss + 1
            is_whole = line["status"] == 0 and line["binds"] == options.pods
            broken += not is_whole or bool(line["violations"]) or bool(line["left"])
    print(json.dumps({"seed": options.seed, "runs": runs, "losses": lost, "broken": broken}))
    return 1 if broken or lost < options.losses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
