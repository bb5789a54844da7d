"""Plant each of the bugs of tests/simulation/planted.py and look for a seed that finds it.

    scripts/planted.py [--only WORDS] [--processes P]

Prints for each bug the first seed that finds it, and what it finds. Exit status 1 where some bug is
not found among its seeds, or the first seed is another one than that of the list.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.simulation import planted_devices  # noqa: F401 (adds to BUGS)
from tests.simulation.planted import BUGS, Bug, find
from tests.simulation.simulation import simulate

SHOWN = 90
"""Characters of a problem that are shown."""


def look(number: int) -> tuple[int, tuple[int, str] | None, float]:
    """Look for a planted bug; return (bug, its first seed and problem or None, seconds)."""
    began_s = time.monotonic()
    found = find(BUGS[number], simulate)
    return number, found, time.monotonic() - began_s


def line_of(bug: Bug, found: tuple[int, str] | None, took_s: float) -> str:
    """Return the line that is printed about one bug."""
    if found is None:
        return f"NOT FOUND  {bug.name} (seeds {bug.seeds.start} to {bug.seeds.stop - 1})"
    seed, problem = found
    note = "" if bug.found in (None, seed) else f" (was {bug.found})"
    return f"seed {seed:>5}{note}  {bug.name}: {problem[:SHOWN]} ({took_s:.0f} s)"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="bugs whose names contain this")
    parser.add_argument("--processes", type=int, default=2, help="processes at a time (default 2)")
    options = parser.parse_args(arguments)
    numbers = [number for number, bug in enumerate(BUGS) if options.only in bug.name]
    missed = other = 0
    # A planted bug stays in its process, so each gets a process of its own.
    with multiprocessing.Pool(
        options.processes, partial(logging.disable), maxtasksperchild=1
    ) as pool:
        for number, found, took_s in pool.imap(look, numbers):
            print(line_of(BUGS[number], found, took_s), flush=True)
            missed += found is None
            other += found is not None and BUGS[number].found not in (None, found[0])
    print(f"{len(numbers)} bugs, {missed} not found, {other} found by another seed than before")
    return 1 if missed or other else 0


if __name__ == "__main__":
    sys.exit(main())
