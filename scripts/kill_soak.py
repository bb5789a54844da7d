"""Kill actors at random moments of one run after another, and report the result.

    python scripts/kill_soak.py --kills 1000            on Ray, processes by SIGKILL
    python scripts/kill_soak.py --kills 100 --inline    in this process, actors destroyed

Each run has a process of its own. After each its journal goes through the checker. Figures go to
standard output as JSON: kills, runs, lost, doubled, overfilled (violations of I1 of
docs/invariants.md), other violations, and recovery time: p50 and max of how long a replacement
took, without the time until the loss was noticed. The supervisor's budget of replacements is
lifted: it would end runs that are killed this often. Exit status 1 where anything was lost, doubled
or violated, or a run ended early.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from roadstead.actors.interface import Runtime
from roadstead.actors.runs import launch
from roadstead.actors.runs.client import Client
from roadstead.actors.runtime.inline import InlineRuntime
from roadstead.actors.runtime.ray_node import servers
from roadstead.actors.supervisor.replacing import Budget
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.config.settings import Settings
from roadstead.fleet.generate import generate_fleet
from roadstead.invariants.checker import check
from roadstead.journal.disk import RealDisk
from roadstead.journal.records import RecordKind
from roadstead.journal.segments import Reader
from roadstead.protocol.errors import RoadsteadError
from roadstead.run import Progress, RunInputs, RunOutcome, RunPlan

NODES, PODS = 300, 3_000
RUN_S = 1800.0
"""Deadline of one run; one that has not ended by then hangs."""

MOST_PER_RUN = 20
"""Maximum number of kills in one run."""

WAYS: tuple[dict[str, object], ...] = (
    {"workers": 2},
    {"mode": "shared"},
    {"mode": "partitioned"},
)
"""Settings of a run, chosen in turn by its seed."""

MOST_AT_ONCE = 4
"""Maximum number of actors that are killed at the same time."""

LOOK_S = 1.0
"""Maximum interval between two attempts to kill."""

MEANWHILE = 0.03
"""Probability of a kill while another actor is being replaced; then no pod is placed."""


@dataclass
class SoakMetrics:
    """The results of one run, or of all. why: errors of runs that ended early, with seeds.

    lost: pods that are neither placed nor pending, and placed ones without a bind in the journal.
    doubled: pods with two binds. took_s: durations of replacements.
    """

    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    placed: int = 0
    lost: int = 0
    doubled: int = 0
    violations: Counter[str] = field(default_factory=Counter)
    took_s: list[float] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    rss_mib: int = 0

    def add(self, other: SoakMetrics) -> None:
        """Add the results of another run."""
        self.kills.update(other.kills)
        self.violations.update(other.violations)
        self.runs += other.runs
        self.placed += other.placed
        self.lost += other.lost
        self.doubled += other.doubled
        self.took_s += other.took_s
        self.why += other.why
        self.rss_mib = max(self.rss_mib, other.rss_mib)

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.violations or self.why)

    def report(self) -> dict[str, object]:
        """Return the results as they are printed."""
        others = {name: n for name, n in self.violations.items() if name != "I1"}
        return {
            "kills": self.kills.total(),
            "by_kind": dict(self.kills),
            "runs": self.runs,
            "placed": self.placed,
            "runs_that_ended_early": len(self.why),
            "why": self.why,
            "lost": self.lost,
            "doubled": self.doubled,
            "overfilled": self.violations["I1"],
            "other_violations": others,
            "replacements": len(self.took_s),
            "recovery_p50_s": round(statistics.median(self.took_s), 3) if self.took_s else None,
            "recovery_max_s": round(max(self.took_s), 3) if self.took_s else None,
            "driver_rss_max_mib": self.rss_mib,
        }


class OneRun:
    """A run in this process, and its kills."""

    def __init__(self, seed: int, folder: Path, most_kills: int, *, inline: bool) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self._most = most_kills
        self._inputs = inputs_of(seed)
        self._folder = folder
        self._settings = Settings(
            runtime="inline" if inline else "ray",
            schedulers=2,
            batch=4,
            control="apart",
            journal=folder,
            **WAYS[seed % len(WAYS)],
        )
        self.metrics = SoakMetrics(runs=1)

    def run(self) -> SoakMetrics:
        """Execute the run, killing actors until it ends or the kills are used up."""
        Budget.TIMES = sys.maxsize
        outcome = None
        try:
            outcome = asyncio.run(self._one(RunPlan(self._settings)))
        except RoadsteadError as failure:
            self.metrics.why.append(str(failure)[:500])
        judge(self.metrics, self._folder, self._inputs, outcome)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.metrics.rss_mib = peak >> (20 if sys.platform == "darwin" else 10)
        return self.metrics

    async def _one(self, plan: RunPlan) -> RunOutcome:
        runtime = launch.open_runtime(plan)
        watching = Supervisor(runtime, plan)
        killing = asyncio.create_task(_nothing())
        try:
            await watching.start()
            killing = asyncio.create_task(self._kill(runtime, list(watching.refs)))
            client = Client(watching, plan, _ignore)
            return await launch.first_of(client.run(self._inputs), watching.watch())
        finally:
            killing.cancel()
            self.metrics.took_s += [each.took_s for each in watching.restarts]
            with contextlib.suppress(TimeoutError):
                await watching.stop()

    async def _kill(self, runtime: Runtime, names: list[str]) -> None:
        while (left := self._most - self.metrics.kills.total()) > 0:
            await asyncio.sleep(self._random.uniform(0, LOOK_S))
            victims = self._random.sample(names, self._random.randint(1, MOST_AT_ONCE))[:left]
            if isinstance(runtime, InlineRuntime):
                for name in victims:
                    await runtime.kill(name)
            else:
                victims = self._kill_processes(runtime.pids, victims)  # type: ignore[attr-defined]
            self.metrics.kills.update(name.partition("-")[0] for name in victims)

    def _kill_processes(self, pids: dict[str, int], names: list[str]) -> list[str]:
        """Send SIGKILL to the processes of these actors; return the names of the killed ones."""
        running = actors_among(pids.values())
        if running != set(pids.values()) and self._random.random() >= MEANWHILE:
            return []
        killed = [name for name in names if pids[name] in running]
        for name in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pids[name], signal.SIGKILL)
        return killed


def inputs_of(seed: int) -> RunInputs:
    """Return the cluster and pods of one run."""
    trace = generate_fleet(NODES, PODS, seed)
    return RunInputs(tuple(trace.nodes()), (), tuple(trace.pods()))


def actors_among(pids: Iterable[int]) -> set[int]:
    """Return the processes that are actors of this run: children of its raylet.

    Process ids are reused within minutes here: the id of an ended actor may belong to any other
    process, even one of Ray's servers.
    """
    listing = subprocess.run(
        ["/bin/ps", "-ww", "-o", "pid=,ppid=,args=", "-p", ",".join(map(str, pids))],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()]
    raylet = str(servers()["raylet"].pid)
    return {int(pid) for pid, parent, args in rows if parent == raylet and "ray::" in args}


def judge(
    metrics: SoakMetrics, folder: Path, inputs: RunInputs, outcome: RunOutcome | None = None
) -> None:
    """Count the violations that the journal and the outcome show."""
    records = list(Reader(RealDisk(folder)).records())
    metrics.violations.update(each.invariant for each in check(records).violations)
    bound = Counter(each.uid for each in records if each.kind is RecordKind.BIND)
    metrics.placed += len(bound)
    metrics.doubled += sum(count > 1 for count in bound.values())
    if outcome is not None:
        reported = {each.uid for each in outcome.placements} | {
            each.uid for each in outcome.pending
        }
        metrics.lost += sum(who.uid not in reported for who, _ in inputs.pending)
        metrics.lost += sum(each.uid not in bound for each in outcome.placements)


def in_a_process(seed: int, most_kills: int, *, inline: bool) -> SoakMetrics:
    """Execute a run in its own process, so that nothing that Ray leaves there affects others."""
    with tempfile.TemporaryDirectory() as folder:
        one = [sys.executable, __file__, "--one", folder]
        one += ["--seed", str(seed), "--kills", str(most_kills), *(["--inline"] * inline)]
        child = subprocess.Popen(one, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            output, _ = child.communicate(timeout=RUN_S)
            found = SoakMetrics(**json.loads(output.splitlines()[-1]))
        except (subprocess.TimeoutExpired, IndexError, ValueError, TypeError) as failure:
            why = f"its process ended with {child.poll()}: {type(failure).__name__}"
            found = SoakMetrics(runs=1, why=[why])
            # Before its journal is read, which they would still write.
            end_group(child)
            judge(found, Path(folder), inputs_of(seed))
        finally:
            end_group(child)
    found.why = [f"run {seed}: {each}" for each in found.why]
    return found


def end_group(child: subprocess.Popen[str]) -> None:
    """End the processes of a run, and wait for the first of them."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


async def _nothing() -> None:
    """Kill nothing: the placeholder until all actors have started."""


def _ignore(progress: Progress) -> None:
    """Ignore progress reports."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000, help="in all (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run (default 1)")
    parser.add_argument(
        "--minutes", type=float, default=600.0, help="begin no run after these (default 600)"
    )
    parser.add_argument("--inline", action="store_true", help="in this process, without Ray")
    parser.add_argument("--one", type=Path, help="only one run, with its journal in this folder")
    options = parser.parse_args()
    if options.one is not None:
        one = OneRun(options.seed, options.one, options.kills, inline=options.inline)
        print(json.dumps(vars(one.run())))
        return 0
    found, began = SoakMetrics(), time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        # After an interrupt, the results so far are printed as well.
        while (
            found.kills.total() < options.kills and time.monotonic() - began < options.minutes * 60
        ):
            most = min(MOST_PER_RUN, options.kills - found.kills.total())
            found.add(in_a_process(options.seed + found.runs, most, inline=options.inline))
            print(json.dumps(found.report()), file=sys.stderr, flush=True)
    print(json.dumps(found.report(), indent=2))
    return 0 if found.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
