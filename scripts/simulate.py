"""Simulated runs of many seeds in virtual time, with faults of every kind, checked after each run.

    scripts/simulate.py [--seeds N] [--start S] [--faults lost,slow,…] [--among VARIANT]
                        [--processes P] [--reached]

A failure prints its seed and the command that replays it; the exit status is then 1. A variant
(--among) is a family of runs with settings of its own. --reached counts the transitions, refusals
and faults that happen, and names those that no run reaches (gaps).
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.simulation.modes import VARIANTS
from tests.simulation.reached import gaps, report
from tests.simulation.simulation import KINDS, Outcome, simulate, simulate_counted

SHOWN = 5
"""Maximum number of problems that are shown for one seed."""


def replay_of(seed: int, kinds: Iterable[str], among: str = "plain") -> str:
    """Return the command that runs one seed again."""
    variant = "" if among == "plain" else f" --among {among}"
    return f"scripts/simulate.py --start {seed} --seeds 1 --faults {','.join(kinds)}{variant}"


def print_problems(outcome: Outcome, kinds: Sequence[str], among: str = "plain") -> None:
    """Print the problems of one seed."""
    print(f"seed {outcome.seed}: {len(outcome.problems)} problems")
    for problem in outcome.problems[:SHOWN]:
        print(f"  {problem}")
    print(f"  replay: {replay_of(outcome.seed, kinds, among)}", flush=True)


def summary(outcomes: Sequence[Outcome], real_s: float) -> list[str]:
    """Return the summary of many runs, as lines."""
    happened: Counter[str] = Counter()
    for each in outcomes:
        happened.update(each.happened)
    virtual_s = sum(each.virtual_s for each in outcomes)
    failed = [each.seed for each in outcomes if each.problems]
    lines = [
        f"seeds                {len(outcomes)}",
        f"virtual time         {virtual_s / 3600:.2f} h in {real_s:.0f} s",
        f"pods submitted       {sum(each.pods for each in outcomes)}",
        f"pods bound at end    {sum(each.bound for each in outcomes)}",
        f"pods evicted         {sum(each.evicted for each in outcomes)}",
        *(f"{kind:<20} {count}" for kind, count in sorted(happened.items())),
        f"failed               {len(failed)} {failed[:20] or ''}".rstrip(),
    ]
    return lines


def _one(seed: int, *, kinds: Sequence[str], among: str, counts: bool) -> Outcome:
    """Run one seed; an error in the checks after the run is reported as a problem."""
    try:
        return (simulate_counted if counts else simulate)(seed, kinds, among=among)
    except Exception as failure:
        place = traceback.extract_tb(failure.__traceback__)[-1]
        text = f"{type(failure).__name__}: {failure} ({place.filename}:{place.lineno})"
        return Outcome(seed, "", 0.0, Counter(), problems=[text])


def run(
    seeds: Sequence[int],
    kinds: Sequence[str],
    processes: int,
    among: str = "plain",
    *,
    counts: bool = False,
) -> list[Outcome]:
    """Run all seeds in parallel; print problems as the runs end."""
    outcomes = []
    with multiprocessing.Pool(processes, initializer=logging.disable) as pool:
        one = partial(_one, kinds=kinds, among=among, counts=counts)
        for number, outcome in enumerate(pool.imap(one, seeds), 1):
            outcomes.append(outcome)
            if outcome.problems:
                print_problems(outcome, kinds, among)
            if number % 100 == 0:
                print(f"{number} of {len(seeds)} seeds", flush=True)
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=200, help="number of seeds (default 200)")
    parser.add_argument("--start", type=int, default=0, help="first seed (default 0)")
    parser.add_argument(
        "--faults", default=",".join(KINDS), help=f"some of {', '.join(KINDS)} (default all)"
    )
    parser.add_argument("--processes", type=int, default=2, help="processes at a time (default 2)")
    parser.add_argument(
        "--among",
        default="plain",
        choices=[*VARIANTS, "all"],
        help="variant of the runs (default plain; all: every one, one after the other)",
    )
    parser.add_argument(
        "--reached",
        action="store_true",
        help="count arrows, refusals and faults on messages; exit status 1 where any is missed",
    )
    options = parser.parse_args(arguments)
    kinds = [kind for kind in options.faults.split(",") if kind]
    if unknown := sorted(set(kinds) - set(KINDS)):
        parser.error(f"--faults: {', '.join(unknown)} is none of {', '.join(KINDS)}")
    began_s = time.monotonic()
    seeds = range(options.start, options.start + options.seeds)
    variants = VARIANTS if options.among == "all" else [options.among]
    outcomes = [
        outcome
        for among in variants
        for outcome in run(seeds, kinds, options.processes, among, counts=options.reached)
    ]
    print("\n".join(summary(outcomes, time.monotonic() - began_s)))
    missed = False
    if options.reached:
        reached = sum((each.reached for each in outcomes), Counter())
        print("\n".join(report(reached)))
        missed = bool(gaps(reached))
    return 1 if missed or any(each.problems for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
