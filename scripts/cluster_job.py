"""Schedule a trace by submitted jobs, over three hosts, and show where the time went.

    python scripts/cluster_job.py --trace openb.trace
    python scripts/cluster_job.py --trace openb.trace --jobs packed,plugin --wheels DIR

Three hosts in namespaces of this machine (root on Linux), the head with Ray's dashboard, which
takes jobs. The trace is scheduled inline on this machine, over the hosts by a command on the head,
and by jobs of `ray job submit`:

    upload     with a working directory, which has the trace and the settings
    installed  without one: Roadstead is installed on the nodes
    packed     no node has Roadstead: `roadstead cluster pack`, the wheel in the job's environment
    plugin     the same with a plugin of the user in the packed environment, and two workers
    changed    the same again, with another code of the plugin on the third host: it is refused

A line of JSON for each: the seconds of the command, those of each phase of the run (from its
summary), processes and their hosts, and whether the placements are byte for byte those of a run
inline with the same plugins. With --wheels the packed environment also has the packages that
Roadstead needs, which Ray installs on each host from this folder (`pip download -d DIR` of the
packages that `roadstead cluster pack` lists). Ray takes jobs only where its extra `ray[default]` is
installed (`pip install 'roadstead[cluster]'`). Exit status 1 if a command fails, placements differ,
or the changed plugin is not refused.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cluster_fault_list import CPUS, LABELS, THIRD
from cluster_faults import ROADSTEAD

from tests.cluster.hosts import BIN, Host, hosts

ROOT = Path(__file__).resolve().parent.parent
JOBS_URL = "http://127.0.0.1:8265"
JOB_S = 900.0
PLACEMENTS = "placements.json"
PLUGIN = "few_pods:FewPods"
CHANGED = "changed"
REFUSAL = "differs from the code that the run was started with"
JOBS = ("upload", "installed", "packed", "plugin", CHANGED)


def job(*options: str) -> tuple[str, ...]:
    """Return the command that submits a job; its own command follows."""
    return (str(BIN / "ray"), "job", "submit", "--address", JOBS_URL, *options, "--")


def takes_jobs(all_hosts: Sequence[Host]) -> None:
    """Let jobs find `python` and `roadstead` of this environment on every host."""
    for each in all_hosts:
        each.environment["PATH"] = f"{BIN}:{os.environ['PATH']}"


@dataclass(slots=True)
class Trial:
    """A folder that all hosts see, with the trace, and the options of every run."""

    all_hosts: Sequence[Host]
    folder: Path
    trace: Path
    options: tuple[str, ...]

    def schedule(self, name: str, *more: str) -> tuple[str, ...]:
        """Return the arguments that schedule the trace into the output folder of this name."""
        files = ("--trace", str(self.trace), "--output", str(self.folder / name))
        return ("schedule", *files, *self.options, *more)

    def run(self, name: str, same_as: str, host: Host | None, *command: str) -> dict[str, object]:
        """Run a command on a host, or on this machine, and print and return its figures."""
        began_s = time.monotonic()
        if host is None:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=JOB_S, check=False, cwd=self.folder
            )
        else:
            ended = host.run(*command, timeout_s=JOB_S)
        line: dict[str, object] = {
            "run": name,
            "status": ended.returncode,
            "took_s": round(time.monotonic() - began_s, 2),
        }
        if ended.returncode:
            line["error"] = (ended.stderr + ended.stdout)[-2_000:]
        else:
            line |= self._figures(name, same_as)
        print(json.dumps(line), flush=True)
        return line

    def _figures(self, name: str, same_as: str) -> dict[str, object]:
        summary = json.loads((self.folder / name / "summary.json").read_text())
        one, other = (self.folder / each / PLACEMENTS for each in (name, same_as))
        nodes = summary.get("ray_nodes", [])
        return {
            "hosts": {each["name"]: each["processes"] for each in nodes},
            "timings_s": {phase: round(spent, 2) for phase, spent in summary["timings_s"].items()},
            "same": one.read_bytes() == other.read_bytes(),
        }

    @contextmanager
    def without_roadstead(self):
        """Hide the checkout from all hosts: nothing of Roadstead can be imported there."""
        with ExitStack() as mounts:
            for each in self.all_hosts:
                ended = each.run("mount", "-t", "tmpfs", "tmpfs", str(ROOT / "roadstead"))
                assert ended.returncode == 0, ended.stderr
                mounts.callback(each.run, "umount", str(ROOT / "roadstead"))
            yield

    def pack(self, name: str, wheels: Path | None, *more: str) -> tuple[str, str]:
        """Pack an environment, and return the options that submit a job with it."""
        file = self.folder / name / "env.yaml"
        packages = () if wheels else ("--without-packages",)
        packing = (ROADSTEAD, "cluster", "pack", "-o", str(file), *packages, *more)
        subprocess.run(packing, check=True, capture_output=True, cwd=self.folder)
        return "--runtime-env", str(file)


def upload(trial: Trial, wheels: Path | None) -> dict[str, object]:
    """Schedule the trace from an uploaded folder, by names in it."""
    folder = trial.folder / "uploaded"
    folder.mkdir()
    (folder / "roadstead.yaml").write_text("{}\n")
    (folder / "t.trace").write_bytes(trial.trace.read_bytes())
    files = ("--trace", "t.trace", "--settings", "roadstead.yaml", *trial.options)
    to = ("--output", str(trial.folder / "upload"))
    submit = job("--working-dir", str(folder))
    return trial.run(
        "upload", "inline", trial.all_hosts[0], *submit, "roadstead", "schedule", *files, *to
    )


def installed(trial: Trial, wheels: Path | None) -> dict[str, object]:
    """Schedule the trace without a working directory or an environment."""
    command = (*job(), "roadstead", *trial.schedule("installed"))
    return trial.run("installed", "inline", trial.all_hosts[0], *command)


def packed(trial: Trial, wheels: Path | None) -> dict[str, object]:
    """Schedule the trace on nodes that do not have Roadstead."""
    submit = job(*trial.pack("env", wheels))
    command = (*submit, "python", "-m", "roadstead", *trial.schedule("packed"))
    with trial.without_roadstead():
        return trial.run("packed", "inline", trial.all_hosts[0], *command)


def plugin(trial: Trial, wheels: Path | None, name: str = "plugin") -> dict[str, object]:
    """Schedule the trace with a packed plugin of the user; inline first, to compare."""
    with_plugin = ("--plugin", PLUGIN)
    if not (trial.folder / "few_pods.py").exists():
        subprocess.run(
            (ROADSTEAD, "plugin", "new", "FewPods"),
            check=True,
            capture_output=True,
            cwd=trial.folder,
        )
        inline = trial.schedule("plugin-inline", "--runtime", "inline", *with_plugin)
        trial.run("plugin-inline", "plugin-inline", None, ROADSTEAD, *inline)
    submit = job(*trial.pack(f"env-{name}", wheels, "--plugin-file", "few_pods.py"))
    more = (*with_plugin, "--workers", "2")
    command = (*submit, "python", "-m", "roadstead", *trial.schedule(name, *more))
    with trial.without_roadstead():
        return trial.run(name, "plugin-inline", trial.all_hosts[0], *command)


def changed(trial: Trial, wheels: Path | None) -> dict[str, object]:
    """Change the plugin that the job before unpacked on a host: the run must refuse it."""
    host = trial.all_hosts[THIRD]
    unpacked = list(host.temp.glob("session_*/runtime_resources/py_modules_files/*/few_pods.py"))
    assert unpacked, f"no unpacked plugin on {host.name}: name the job `plugin` before this one"
    for each in unpacked:
        each.write_text(each.read_text() + "\nOTHER = True\n")
    line = plugin(trial, wheels, CHANGED)
    line["refused"] = bool(line["status"]) and REFUSAL in str(line.get("error"))
    return line


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
    parser.add_argument("--jobs", default=",".join(JOBS), help="names, with commas; all by default")
    parser.add_argument(
        "--wheels", type=Path, help="folder with wheels of the packages that Roadstead needs"
    )
    options = parser.parse_args(arguments)
    makes: dict[str, Callable[[Trial, Path | None], dict[str, object]]] = {
        each.__name__: each for each in (upload, installed, packed, plugin, changed)
    }
    names = options.jobs.split(",")
    if unknown := [name for name in names if name not in JOBS]:
        parser.error(f"argument --jobs: {unknown[0]!r} is none of {', '.join(JOBS)}")

    def before_ray(all_hosts: Sequence[Host]) -> None:
        takes_jobs(all_hosts)
        for each in all_hosts if options.wheels else ():
            each.environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(options.wheels)}

    with (
        tempfile.TemporaryDirectory(prefix="job-") as temporary,
        hosts(3, cpus=CPUS, labels=LABELS, dashboard=True, before_ray=before_ray) as all_hosts,
    ):
        schedulers = ("--schedulers", options.schedulers)
        trial = Trial(all_hosts, Path(temporary), options.trace.resolve(), schedulers)
        inline = (ROADSTEAD, *trial.schedule("inline", "--runtime", "inline"))
        joined = (ROADSTEAD, *trial.schedule("hosts", "--ray-address", "auto"))
        lines = [
            trial.run("inline", "inline", None, *inline),
            trial.run("hosts", "inline", all_hosts[0], *joined),
            *(makes[name](trial, options.wheels) for name in names),
        ]
    return 0 if all(line.get("refused", line.get("same")) for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
