"""Kills actors at random moments of one run after another, and says what came of it.

    python scripts/kill_soak.py --kills 1000            on Ray, processes by SIGKILL
    python scripts/kill_soak.py --kills 100 --inline    in this process, actors destroyed

After each run the journal goes through the checker. Figures go to standard output as JSON: kills,
runs, lost, doubled, overfilled (violations of I1), other violations, and recovery time: p50 and max
of how long a replacement took, without the time until it was noticed. Exit status 1 where anything
was lost, doubled or violated.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from roadstead.actors import launch, supervisor
from roadstead.actors.client import Client
from roadstead.actors.inline_runtime import InlineRuntime
from roadstead.actors.seam import Runtime
from roadstead.config.settings import Settings
from roadstead.fleet.generate import generate_fleet
from roadstead.invariants.checker import check
from roadstead.journal.disk import RealDisk
from roadstead.journal.records import RecordKind
from roadstead.journal.segments import Reader
from roadstead.protocol.errors import RoadsteadError
from roadstead.run import Progress, RunInputs, RunOutcome, RunPlan

MOST_FAILED = 20
"""Runs that may end early before one without a kill means that this machine cannot do it."""

MOST_PER_RUN = 12
"""Kills in one run: the budget of the supervisor ends it when one actor goes too often."""


class Soak:
    """Runs with kills in them, and what came of all."""

    def __init__(self, seed: int, *, inline: bool) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.inline = inline
        self.kills: Counter[str] = Counter()
        self.runs = self.ended = self.lost = self.doubled = 0
        self.violations: Counter[str] = Counter()
        self.took_s: list[float] = []
        self.why: list[str] = []

    def run(self, most_kills: int) -> None:
        """One run. Actors are killed until it ends, or the kills are used up."""
        self.runs += 1
        trace = generate_fleet(40, 3_000, self.runs)
        inputs = RunInputs(tuple(trace.nodes()), (), tuple(trace.pods()))
        with tempfile.TemporaryDirectory() as folder:
            settings = Settings(
                runtime="inline" if self.inline else "ray",
                shards=2,
                schedulers=2,
                batch=8,
                control="apart",
                journal=Path(folder),
            )
            try:
                outcome = asyncio.run(self._one(inputs, RunPlan(settings), most_kills))
            except RoadsteadError as failure:
                self.ended += 1
                self.why.append(str(failure)[:300])
                outcome = None
            self._judge(inputs, outcome, Path(folder))

    async def _one(self, inputs: RunInputs, plan: RunPlan, most_kills: int) -> RunOutcome:
        runtime = launch.open_runtime(plan)
        watching = supervisor.Supervisor(runtime, plan)
        killing = asyncio.create_task(_nothing())
        try:
            await watching.start()
            killing = asyncio.create_task(self._kill(runtime, list(watching.refs), most_kills))
            client = Client(watching, plan, _ignore)
            return await launch.first_of(client.run(inputs), watching.watch())
        finally:
            killing.cancel()
            self.took_s += [each.took_s for each in watching.restarts]
            await watching.stop()

    async def _kill(self, runtime: Runtime, names: list[str], most: int) -> None:
        for _ in range(most):
            await asyncio.sleep(self.random.uniform(0.05, 0.5) * (1 if self.inline else 4))
            name = self.random.choice(names)
            if isinstance(runtime, InlineRuntime):
                await runtime.kill(name)
            else:
                try:
                    os.kill(runtime.pids[name], signal.SIGKILL)  # type: ignore[attr-defined]
                except ProcessLookupError:
                    continue
            self.kills[name.partition("-")[0]] += 1

    def _judge(self, inputs: RunInputs, outcome: RunOutcome | None, folder: Path) -> None:
        records = list(Reader(RealDisk(folder)).records())
        self.violations.update(each.invariant for each in check(records).violations)
        bound = Counter(each.uid for each in records if each.kind is RecordKind.BIND)
        self.doubled += sum(count > 1 for count in bound.values())
        if outcome is not None:
            told = {each.uid for each in (*outcome.placements, *outcome.pending)}
            self.lost += sum(who.uid not in told for who, _ in inputs.pending)
            self.lost += sum(each.uid not in bound for each in outcome.placements)

    def figures(self) -> dict[str, object]:
        """What came of it all."""
        others = {name: n for name, n in self.violations.items() if name != "I1"}
        return {
            "kills": self.kills.total(),
            "by_kind": dict(self.kills),
            "runs": self.runs,
            "runs_that_ended_early": self.ended,
            "why": self.why[:5],
            "lost": self.lost,
            "doubled": self.doubled,
            "overfilled": self.violations["I1"],
            "other_violations": others,
            "recovery_p50_s": round(statistics.median(self.took_s), 3) if self.took_s else None,
            "recovery_max_s": round(max(self.took_s), 3) if self.took_s else None,
        }


async def _nothing() -> None:
    """Nobody is killed before all are there."""


def _ignore(progress: Progress) -> None:
    """Nobody looks on."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--inline", action="store_true")
    given = parser.parse_args()
    soak, began = Soak(given.seed, inline=given.inline), time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        # What was found until somebody stops it, is told as well.
        while soak.kills.total() < given.kills and time.monotonic() - began < given.minutes * 60:
            before = soak.kills.total()
            soak.run(min(MOST_PER_RUN, given.kills - before))
            print(f"run {soak.runs}: {soak.kills.total()} kills", file=sys.stderr, flush=True)
            if soak.ended > MOST_FAILED and soak.kills.total() == before:
                break
    figures = soak.figures()
    print(json.dumps(figures, indent=2))
    return 1 if soak.lost or soak.doubled or soak.violations else 0


if __name__ == "__main__":
    sys.exit(main())
