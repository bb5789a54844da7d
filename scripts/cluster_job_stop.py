"""Stops submitted jobs during their runs, and shows how soon each ended.

    python scripts/cluster_job_stop.py --times 5

Three hosts in namespaces of this machine (root on Linux), the head with Ray's dashboard
(`ray[default]`). Each job schedules 40,000 pods with two schedulers and a worker; once some pods
are placed, Ray is asked to stop it, as by `ray job stop`. A line of JSON for each: the seconds from
the request until Ray sends SIGTERM, until the driver has ended and until no process of the run is
left on any host (the last two as a poll sees them, with its interval); whether Ray calls the job
stopped, and whether the driver reported SIGTERM (`is_said`); the binds in its journal by
`roadstead check`, and the number of parts of it that cannot be read. Exit status 1 if a run took
longer than the wanted 2 s, left a process, or did not close its journal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cluster_fault_list import CPUS, LABELS
from cluster_faults import BATCH, FAULT_AFTER, ROADSTEAD, placed_in, processes_left, write_fleet
from cluster_job import JOBS_URL, job, takes_jobs

from tests.cluster.hosts import BIN, Host, hosts

PODS, FLEET = 40_000, 400
WANTED_S, GIVEN_UP_S = 2.0, 30.0
DRIVER = f"{ROADSTEAD} schedule"

ASK = (
    "import sys, urllib.request; print('asked', flush=True); "
    "urllib.request.urlopen(urllib.request.Request(sys.argv[1], method='POST')).read()"
)
"""What `ray job stop` sends; the command itself takes seconds to start."""

MARK = (
    'file=$0; (trap "date +%s.%N > $file; exit" TERM; sleep 600 & wait) > /dev/null 2>&1 & '
    'exec "$@"'
)
"""A shell's command that starts another one, and writes into a file when Ray sends SIGTERM."""


def stop(all_hosts: Sequence[Host], folder: Path, number: int) -> dict[str, object]:
    """Submit a job, stop it, and return its figures."""
    head, name, output = all_hosts[0], f"stopped-{number}", folder / f"output-{number}"
    files = write_fleet(folder, FLEET, PODS)
    options = ("--schedulers", "2", "--workers", "1", "--batch", str(BATCH))
    running = head.begin(
        *job("--submission-id", name),
        *("sh", "-c", MARK, str(folder / f"signal-{number}")),
        *("roadstead", "schedule", *files, *options, "--output", str(output)),
    )
    assert running.stdout is not None
    for line in running.stdout:
        if placed_in(line) >= FAULT_AFTER:
            break
    else:
        return {"run": name, "error": "the job ended before it was stopped"}
    asking = head.begin(str(BIN / "python"), "-c", ASK, f"{JOBS_URL}/api/jobs/{name}/stop")
    assert asking.stdout is not None
    asking.stdout.readline()
    asked_s = time.time()
    driver_s = all_s = poll_s = 0.0
    while not all_s and time.time() < asked_s + GIVEN_UP_S:
        began_s = time.time()
        is_driven, left = bool(head.pids(DRIVER)), processes_left(all_hosts)
        ended_s = time.time()
        poll_s = max(poll_s, ended_s - began_s)
        if not is_driven:
            driver_s = driver_s or ended_s - asked_s
            all_s = 0.0 if left else ended_s - asked_s
    rest = running.communicate()[0].splitlines()
    asking.communicate()
    checked = head.run(ROADSTEAD, "check", str(output), "--format", "json")
    found = json.loads(checked.stdout) if checked.stdout else {"violations": [checked.stderr]}
    signal = folder / f"signal-{number}"
    return {
        "run": name,
        # None if Ray sent no SIGTERM.
        "signal_s": round(float(signal.read_text()) - asked_s, 2) if signal.exists() else None,
        "driver_s": round(driver_s, 2),
        "all_s": round(all_s, 2),
        "poll_s": round(poll_s, 2),
        "is_stopped": any("was stopped" in line for line in rest),
        "is_said": any("Interrupted by SIGTERM" in line for line in rest),
        "load": round(os.getloadavg()[0], 1),
        "left_out": len(found.get("left_out", ())),
        "violations": len(found["violations"]),
        "binds": found.get("binds_checked"),
    }


def is_clean(line: dict[str, object]) -> bool:
    """Whether a job ended in time, with a closed journal and without a process of its run."""
    if "error" in line:
        return False
    seconds = line.get("all_s")
    in_time = isinstance(seconds, float) and 0 < seconds <= WANTED_S
    is_closed = not line["violations"] and not line["left_out"]
    return in_time and bool(line["is_said"] and line["is_stopped"]) and is_closed


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--times", type=int, default=5, help="jobs to stop")
    options = parser.parse_args(arguments)
    lines: list[dict[str, object]] = []
    with (
        tempfile.TemporaryDirectory(prefix="job-") as folder,
        hosts(3, cpus=CPUS, labels=LABELS, dashboard=True, before_ray=takes_jobs) as all_hosts,
    ):
        for number in range(options.times):
            lines.append(stop(all_hosts, Path(folder), number))
            print(json.dumps(lines[-1]), flush=True)
    return 0 if all(map(is_clean, lines)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
