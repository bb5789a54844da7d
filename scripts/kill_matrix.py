"""Kill each process of a run on Ray in each of its phases, and report the result.

    python scripts/kill_matrix.py                            every cell once
    python scripts/kill_matrix.py --phase output --victim driver
    python scripts/kill_matrix.py --json > matrix.json

A cell is one `roadstead schedule --trace … --output …`, of which one process gets SIGKILL in one
phase. Where that ends the run, the same command with --resume continues it, inline. A cell is good
if the run ended as expected, without a traceback; nothing of the run was there a second later;
every bind that was acknowledged before the kill is in the journal and in the placements, on its
node; every pod is placed or pending; and `roadstead check` finds nothing. Exit status 1 where a
cell is not good.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from click.testing import CliRunner
from kill_soak import SoakMetrics, judge
from ray._private.services import psutil

from roadstead.actors import entry
from roadstead.actors.interface import Runtime
from roadstead.actors.runs import launch
from roadstead.actors.runs.client import Client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime import ray_runtime
from roadstead.actors.runtime.ray_node import servers
from roadstead.actors.runtime.ray_runtime import RayRuntime
from roadstead.cli.main import build_cli
from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.trace_file import write_trace
from roadstead.journal.disk import RealDisk
from roadstead.journal.records import RecordKind
from roadstead.journal.segments import Reader
from roadstead.report import output
from roadstead.report.result import RunResult
from roadstead.run import Progress, RunInputs, RunOutcome, RunPlan

NODES, PODS = 60, 300
SEED = 1
SETTINGS = "runtime: ray\nworkers: 2\nschedulers: 2\nbatch: 4\ncontrol: apart\n"

PHASES = ("start", "load", "submit", "schedule", "collect", "finished", "output")
"""The steps of a run: it starts its actors, loads the cluster, submits pods, schedules them (a
tenth is placed at the kill), collects results, ends its journal, writes its output."""

ACTORS = ("queue", "cache", "binder", "worker-0", "scheduler-0")
VICTIMS = ("driver", "raylet", "gcs_server", *ACTORS)

NAMES = {
    "loading the cluster": "load",
    "submitting pods": "submit",
    "scheduling": "schedule",
    "collecting results": "collect",
}
"""Phases by the names under which a run reports them."""

RUN_S = 240.0
"""Deadline of one command; one that has not ended by then hangs."""

LEFT_S = 1.0
"""How long after the end of a run its processes may still exist."""

MARK = "mark.json"
"""File in which a run records the moment of its kill: placed pods and its processes."""


@dataclass
class Cell:
    """The result of one kill. resumed: the status of the command that continued the run.

    was_there: whether the victim existed; Ray and the actors have ended before the output.
    acknowledged: binds that the run knew of at the kill; kept: those in its journal after its end.
    lost: pods that are neither placed nor pending. moved: pods whose node in the output is not that
    of the journal. doubled: pods with two binds. violations: of invariants. why: what else is
    wrong.
    """

    phase: str
    victim: str
    ended: int | None = None
    resumed: int | None = None
    was_there: bool = False
    acknowledged: int = 0
    kept: int = 0
    placed: int = 0
    lost: int = 0
    moved: int = 0
    doubled: int = 0
    violations: int = 0
    took_s: float = 0.0
    why: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.moved or self.doubled or self.violations or self.why)


class Killer(ActorLauncher):
    """Execute a run in this process, and kill one of its processes in one phase."""

    def __init__(self, phase: str, victim: str, folder: Path) -> None:
        super().__init__()
        self._phase, self._victim, self._folder = phase, victim, folder
        self._opened: RayRuntime | None = None
        self._placed = 0
        self._is_done = False

    def install(self) -> None:
        """Patch the parts of a run to call `reach` when a phase begins."""
        entry.open_launcher = lambda: self
        opening, ready = launch.open_runtime, RayRuntime._await_ready
        end, write = Client.end, output.write_output

        def open_runtime(plan: RunPlan) -> Runtime:
            self._opened = runtime = opening(plan)  # type: ignore[assignment]
            return runtime

        async def await_ready(runtime: RayRuntime, host: str, timeout_s: float) -> None:
            await ready(runtime, host, timeout_s)
            self._opened = runtime
            if self._victim not in ACTORS or host == self._victim:
                self.reach("start")

        async def ending(client: Client, outcome: RunOutcome) -> None:
            self.reach("finished")
            await end(client, outcome)

        def writing(directory: Path, result: RunResult) -> None:
            self.reach("output")
            write(directory, result)

        launch.open_runtime = open_runtime
        ray_runtime.RayRuntime._await_ready = await_ready  # type: ignore[method-assign]
        Client.end = ending  # type: ignore[method-assign]
        output.write_output = writing

    def run(
        self, inputs: RunInputs, plan: RunPlan, progress: Callable[[Progress], None]
    ) -> RunOutcome:
        def on_progress(event: Progress) -> None:
            progress(event)
            self._placed = max(self._placed, event.placed)
            if event.phase != "scheduling" or event.placed >= PODS // 10:
                self.reach(NAMES.get(event.phase, ""))

        return super().run(inputs, plan, on_progress)

    def reach(self, phase: str) -> None:
        """Note that a phase began; kill the victim if it is the chosen phase."""
        if phase != self._phase or self._is_done:
            return
        self._is_done = True
        there = psutil.Process().children(recursive=True)
        # As (id, start), because ids are reused.
        pids = [(each.pid, each.create_time()) for each in there]
        victim = self._pid()
        is_there = victim in {os.getpid(), *(pid for pid, _ in pids)}
        mark = {"placed": self._placed, "processes": pids, "is_there": is_there}
        (self._folder / MARK).write_text(json.dumps(mark))
        if is_there:
            os.kill(victim, signal.SIGKILL)

    def _pid(self) -> int:
        """Return the id of the victim's process; 0 if Ray has ended already."""
        if self._victim == "driver":
            return os.getpid()
        if self._victim in ACTORS:
            return self._opened.pids.get(self._victim, 0) if self._opened is not None else 0
        server = servers().get(self._victim)
        return 0 if server is None else server.pid


def carry_out(phase: str, victim: str, seed: int, folder: Path) -> Cell:
    """Run one cell, in a folder of its own."""
    began_s = time.monotonic()
    cell = Cell(phase, victim)
    trace = generate_fleet(NODES, PODS, seed)
    write_trace(folder / "fleet.trace", trace)
    (folder / "settings.yaml").write_text(SETTINGS)
    own = ["--one", str(folder), "--phase", phase, "--victim", victim]
    cell.ended, output = run_command([sys.executable, __file__, *own], folder)
    _look_at_end(cell, output, folder)
    before = binds_in(folder)
    cell.kept = len(before)
    if cell.kept < cell.acknowledged:
        cell.why.append(
            f"{cell.acknowledged - cell.kept} acknowledged binds are not in the journal"
        )
    if cell.ended:
        cell.resumed, output = run_command(
            roadstead_command("schedule", *schedule_options(resume=True)), folder
        )
        if cell.resumed:
            cell.why.append(f"--resume ended with {cell.resumed}: {_last(output)}")
    _look_at_result(cell, folder, before, {who.uid for who, _ in trace.pods()})
    cell.took_s = round(time.monotonic() - began_s, 1)
    return cell


def _look_at_end(cell: Cell, output: str, folder: Path) -> None:
    mark = json.loads((folder / MARK).read_text()) if (folder / MARK).exists() else None
    if mark is None:
        cell.why.append(f"the run did not come to its phase: {_last(output)}")
        return
    cell.acknowledged, cell.was_there = mark["placed"], mark["is_there"]
    expected = (-signal.SIGKILL,) if cell.victim == "driver" else (0, 1)
    if cell.ended == 1 and "--resume" not in output:
        cell.why.append(f"the run ended without a hint at --resume: {_last(output)}")
    if cell.ended not in expected:
        cell.why.append(f"the run ended with {cell.ended}: {_last(output)}")
    if "Traceback" in output:
        cell.why.append("the run printed a traceback")
    if left := still_there(mark["processes"]):
        cell.why.append(f"still there after {LEFT_S:g} s: {', '.join(left)}")


def _look_at_result(cell: Cell, folder: Path, before: dict[str, str], uids: set[str]) -> None:
    found = folder / "out"
    if not (found / "summary.json").exists():
        cell.why.append("there is no output")
        return
    rows = {name: json.loads((found / f"{name}.json").read_text()) for name in OUTPUTS}
    nodes = {row["uid"]: row["node"] for row in rows["placements"]}
    cell.placed = len(nodes)
    cell.lost = len(uids - nodes.keys() - {row["uid"] for row in rows["pending"]})
    cell.moved = sum(nodes.get(uid) != node for uid, node in before.items())
    metrics = SoakMetrics()
    judge(metrics, found / "journal", RunInputs(()))
    cell.doubled, cell.violations = metrics.doubled, metrics.violations.total()
    checked = CliRunner().invoke(build_cli(entry.open_launcher), ["check", str(found)])
    if checked.exit_code:
        cell.why.append(f"check ended with {checked.exit_code}: {_last(checked.output)}")
    if len(journals := sorted(path.name for path in found.glob("journal*"))) > 1:
        cell.why.append(f"the run was begun anew: {', '.join(journals)}")


OUTPUTS = ("placements", "pending")


def binds_in(folder: Path) -> dict[str, str]:
    """Return pod → node of all binds in the journal of a run."""
    journal = folder / "out" / "journal"
    if not journal.is_dir():
        return {}
    records = Reader(RealDisk(journal)).records()
    return {each.uid: each.node_name for each in records if each.kind is RecordKind.BIND}


def still_there(processes: Iterable[Sequence[float]]) -> list[str]:
    """Return the names of the processes (id, start) that still exist after `LEFT_S`."""
    until_s = time.monotonic() + LEFT_S
    while True:
        left = [name for pid, start in processes if (name := _name_of(int(pid), start))]
        if not left or time.monotonic() > until_s:
            return left
        time.sleep(0.02)


def _name_of(pid: int, start: float) -> str:
    try:
        process = psutil.Process(pid)
        is_same = process.create_time() == start and process.status() != psutil.STATUS_ZOMBIE
        return str(process.name()) if is_same else ""
    except psutil.Error:
        return ""


def schedule_options(*, resume: bool) -> list[str]:
    """Return the command line of a cell's run; with `resume`, the one that continues it."""
    options = {
        "trace": "fleet.trace",
        "output": "out",
        "settings": "settings.yaml",
        "format": "json",
    }
    line = [part for name, value in options.items() for part in (f"--{name}", value)]
    return [*line, "--resume", "--runtime", "inline"] if resume else line


def roadstead_command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "roadstead", *arguments]


def run_command(command: list[str], folder: Path) -> tuple[int | None, str]:
    """Run a command; return its status (None if it did not end in time) and standard error."""
    child = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        _, output = child.communicate(timeout=RUN_S)
        return child.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        _, output = child.communicate()
        return None, output


def _last(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"


def table(cells: Sequence[Cell]) -> str:
    """Return the matrix as text: how each cell ended, and what is wrong."""
    found = {(cell.phase, cell.victim): cell for cell in cells}
    lines = [" ".join([f"{'':12}", *(f"{phase:>9}" for phase in PHASES)])]
    for victim in VICTIMS:
        results = (_short_result(found.get((phase, victim))) for phase in PHASES)
        lines.append(" ".join([f"{victim:12}", *(f"{result:>9}" for result in results)]))
    lines += [
        f"{each.phase} × {each.victim}: {reason}"
        for each in cells
        if not each.is_good
        for reason in (*each.why, json.dumps({k: v for k, v in asdict(each).items() if k != "why"}))
    ]
    return "\n".join(lines)


def _short_result(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    if not cell.is_good:
        return "BAD"
    if cell.ended:
        return "resumed"
    return "done" if cell.was_there else "gone"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--phase", choices=PHASES, action="append", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--victim", choices=VICTIMS, action="append", help="only this one; may be repeated"
    )
    parser.add_argument("--seed", type=int, default=SEED, help=f"of each run (default {SEED})")
    parser.add_argument(
        "--json", action="store_true", help="print the cells as JSON, not as a table"
    )
    parser.add_argument("--one", type=Path, help="only the run of one cell, in this folder")
    options = parser.parse_args()
    phases, victims = options.phase or PHASES, options.victim or VICTIMS
    if options.one is not None:
        Killer(phases[0], victims[0], options.one).install()
        sys.argv[1:] = ["schedule", *schedule_options(resume=False)]
        entry.main()
        return 0
    cells = []
    for one in (partial(carry_out, phase, victim) for phase in phases for victim in victims):
        with tempfile.TemporaryDirectory() as folder:
            cells.append(one(options.seed, Path(folder)))
        print(json.dumps(asdict(cells[-1])), file=sys.stderr, flush=True)
    print(json.dumps([asdict(cell) for cell in cells], indent=2) if options.json else table(cells))
    return 0 if all(cell.is_good for cell in cells) else 1


if __name__ == "__main__":
    sys.exit(main())
