"""Schedule a trace from a submitted job, over three hosts, and show where the time went.

    python scripts/cluster_job.py --trace openb.trace --schedulers 1

Three hosts in namespaces of this machine (root on Linux), the head with Ray's dashboard, which
takes jobs. The same command runs three times: inline on this machine, over the hosts by itself, and
as a job of `ray job submit`, with Ray's upload of a working directory. A line of JSON for each: the
seconds of the command, those of each phase of the run (from its summary), processes and their
hosts, and whether the placements are byte for byte those of the first. Ray takes jobs only where
its extra `ray[default]` is installed (`pip install 'roadstead[cluster]'`). Exit status 1 if a
command fails or placements differ.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cluster_fault_list import CPUS, LABELS
from cluster_faults import ROADSTEAD

from tests.cluster.hosts import BIN, Host, hosts

JOBS_PORT = 8265
JOB_S = 600.0
PLACEMENTS = "placements.json"


def command(trace: Path, output: Path, *more: str) -> tuple[str, ...]:
    """Return the command that schedules the trace."""
    return (ROADSTEAD, "schedule", "--trace", str(trace), "--output", str(output), *more)


def as_job(head: Host, folder: Path, *job: str) -> tuple[str, ...]:
    """Return the command that submits a job with an uploaded folder, and waits for its end."""
    address = f"http://127.0.0.1:{JOBS_PORT}"
    upload = ("--working-dir", str(folder))
    return (str(BIN / "ray"), "job", "submit", "--address", address, *upload, "--", *job)


def run(name: str, host: Host | None, output: Path, command: Sequence[str]) -> dict[str, object]:
    """Run a command on a host, or on this machine, and return its figures."""
    began_s = time.monotonic()
    if host is None:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=JOB_S, check=False)
    else:
        ended = host.run(*command, timeout_s=JOB_S)
    took_s = time.monotonic() - began_s
    line: dict[str, object] = {"run": name, "status": ended.returncode, "took_s": round(took_s, 2)}
    if ended.returncode:
        return line | {"error": (ended.stderr or ended.stdout)[-2_000:]}
    summary = json.loads((output / "summary.json").read_text())
    line["hosts"] = {each["name"]: each["processes"] for each in summary.get("ray_nodes", [])}
    timings = {phase: round(spent, 2) for phase, spent in summary["timings_s"].items()}
    return line | {"timings_s": timings}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--trace", type=Path, required=True, help="a trace file (roadstead trace import)"
    )
    parser.add_argument(
        "--schedulers",
        default="1",
        help="schedulers of each run; placements are the same only with one",
    )
    options = parser.parse_args(arguments)
    trace, schedulers = options.trace.resolve(), ("--schedulers", options.schedulers)
    lines: list[dict[str, object]] = []
    with (
        tempfile.TemporaryDirectory(prefix="job-") as temporary,
        hosts(3, cpus=CPUS, labels=LABELS, dashboard=True) as made,
    ):
        folder, head = Path(temporary), made[0]
        (folder / "upload").mkdir()
        (folder / "upload" / "roadstead.yaml").write_text("{}\n")
        outputs = [folder / name for name in ("inline", "hosts", "job")]
        inline, joined, job = (command(trace, each, *schedulers) for each in outputs)
        runs = (
            ("inline", None, (*inline, "--runtime", "inline")),
            ("hosts", head, (*joined, "--ray-address", "auto")),
            ("job", head, as_job(head, folder / "upload", *job)),
        )
        for (name, host, each), output in zip(runs, outputs, strict=True):
            line = run(name, host, output, each)
            if not line["status"]:
                placed = (output / PLACEMENTS).read_bytes()
                line["same"] = placed == (outputs[0] / PLACEMENTS).read_bytes()
            print(json.dumps(line), flush=True)
            lines.append(line)
    return 1 if any(line["status"] or not line.get("same", True) for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
