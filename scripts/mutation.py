"""Mutation run: which share of small wrong changes do simulated runs find, which the tests?

    scripts/mutation.py [--sample N] [--seed S] [--by simulation,tests] [--only WORDS]
                        [--rounds R] [--processes P] [--json FILE] [--again FILE] [--reach DIR]

Takes a random sample of all mutants of queue, cache, binder, journal, cycle, recovery and
invariants. Two killers run each mutant, in a process of its own: simulated runs of all variants for
R seeds until one finds something, and the tests of the mutant's package; of both only those that
reach the changed line, which is measured first. A host is a process that has imported a killer, and
forks for each mutant. Prints the share found per package, and every
mutant that was not found. Exit status 1 where some mutant of the sample is found by neither.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.mutation.equivalents import why_equivalent
from tests.mutation.hosts import HOSTS, Host, Kill
from tests.mutation.killers import KILLERS, REACHES, suites_of
from tests.mutation.planting import UnsuitedError, plant, plant_in_functions
from tests.mutation.reach import Reach, load, save
from tests.mutation.sites import Mutant, mutants_of

ROOT = Path(__file__).resolve().parent.parent
TARGETS = (
    "roadstead/queue",
    "roadstead/cache",
    "roadstead/binder",
    "roadstead/journal",
    "roadstead/cycle",
    "roadstead/attempts",
    "roadstead/scheduler",
    "roadstead/invariants",
)
SHARED = "roadstead/pod_store.py"
RECOVERY = (
    "actors/messages/recovery.py",
    "actors/cache/recovery.py",
    "actors/cache/encoding.py",
    "actors/cache/refill.py",
    "actors/cache/release_reports.py",
    "actors/cache/stream.py",
    "actors/binder/pages.py",
)
CPU_S = 400
"""Processor time after which a mutant counts as found, because it does not end."""

MEMORY_BYTES = 12 << 30

UNSUITED = "must be imported"
"""A host's result for a mutant that cannot be applied to functions that are already imported."""

Job = tuple[Mutant, str]
Plant = Callable[[Mutant], None]


@dataclass(frozen=True, slots=True)
class KillerResult:
    """Finding of one killer for one mutant, None for nothing; processor time in seconds."""

    mutant: Mutant
    killer: str
    found: str | None
    cpu_s: float


def targets() -> Iterator[str]:
    """Yield the modules that are mutated, as paths below the checkout."""
    for folder in TARGETS:
        yield from (str(path.relative_to(ROOT)) for path in sorted((ROOT / folder).glob("*.py")))
    yield SHARED
    yield from RECOVERY


def all_mutants(words: str) -> list[Mutant]:
    """Return every mutant of the targets whose path contains these words."""
    found = []
    for path in targets():
        if words in path:
            found += mutants_of(path, (ROOT / path).read_text())
    return found


def _be_silent() -> None:
    """Discard the output of this child process, and change to the root of the checkout."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    os.chdir(ROOT)


def _measure(killer: str, paths: Sequence[str], rounds: int, into: Path) -> None:
    _be_silent()
    save(REACHES[killer](paths, rounds), into)
    os._exit(0)


def measured(killer: str, paths: Sequence[str], rounds: int, folder: Path) -> Reach:
    """Return which of a killer's runs or tests reach which lines; measure if not in the folder.

    Raises SystemExit if they fail without any mutant.
    """
    into = folder / f"{killer}.json"
    if not into.exists():
        print(f"{killer}: what reaches which line ...", flush=True)
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_measure, args=(killer, paths, rounds, into))
        process.start()
        process.join()
        if process.exitcode or not into.exists():
            raise SystemExit(f"{killer}: fails without a mutant; see the tests or simulated runs")
    return load(into)


def _work(plant: Plant, kill: Kill, mutant: Mutant, answer: Connection) -> None:
    """In a child process: plant the mutant, run the killer, send the result."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    _be_silent()
    try:
        plant(mutant)
        found = kill(mutant)
    except UnsuitedError:
        found = UNSUITED
    except BaseException as failure:
        found = f"does not start: {type(failure).__name__}: {failure}"
    answer.send((found, time.process_time()))
    answer.close()
    os._exit(0)


def side_by_side(
    jobs: Sequence[Job], processes: int, plant: Plant, killers: Mapping[str, Kill]
) -> Iterator[KillerResult]:
    """Yield results as they arrive, from up to `processes` forks of this process at a time."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(jobs))
    running: dict[Connection, tuple[Mutant, str, multiprocessing.process.BaseProcess]] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            mutant, killer = waiting.pop()
            ours, theirs = context.Pipe(duplex=False)
            arguments = plant, killers[killer], mutant, theirs
            process = context.Process(target=_work, args=arguments)
            process.start()
            theirs.close()
            running[ours] = mutant, killer, process
        for ready in wait(list(running)):
            assert isinstance(ready, Connection)
            mutant, killer, process = running.pop(ready)
            try:
                found, cpu_s = ready.recv()
            except EOFError:
                process.join()
                found, cpu_s = f"its process ended with {process.exitcode}", float(CPU_S)
            ready.close()
            process.join()
            yield KillerResult(mutant, killer, found, cpu_s)


def _host(
    host: Host, jobs: Sequence[Job], processes: int, reach: Reach, results: Connection
) -> None:
    """In a child process: import the killer once, then fork for each mutant."""
    _be_silent()

    def work(kill: Kill) -> None:
        for result in side_by_side(jobs, processes, plant_in_functions, {jobs[0][1]: kill}):
            results.send(result)

    host(work, reach)
    results.send(None)
    os._exit(0)


def _hosted(
    host: Host, jobs: Sequence[Job], processes: int, reach: Reach
) -> Iterator[KillerResult]:
    """Yield a host's results as they arrive. SystemExit if it ends before the last one."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_host, args=(host, jobs, processes, reach, theirs))
    process.start()
    theirs.close()
    try:
        while (result := ours.recv()) is not None:
            yield result
    except EOFError:
        process.join()
        raise SystemExit(f"{jobs[0][1]}: ended with {process.exitcode}") from None
    process.join()


def run(
    jobs: Sequence[Job], rounds: int, processes: int, reaches: Mapping[str, Reach]
) -> Iterator[KillerResult]:
    """Yield results as they arrive: of mutants in functions (from hosts), then of other mutants."""
    groups: dict[tuple[str, tuple[str, ...]], list[Job]] = {}
    # Of code that runs when a module is imported: a host has imported it already.
    at_import: list[Job] = []
    for mutant, killer in jobs:
        if reaches[killer].of(mutant.path, mutant.line) is None:
            at_import.append((mutant, killer))
        else:
            suites = suites_of(mutant.path) if killer == "tests" else ()
            groups.setdefault((killer, suites), []).append((mutant, killer))
    for (killer, suites), some in groups.items():
        host = partial(HOSTS[killer], suites=suites, rounds=rounds)
        for result in _hosted(host, some, processes, reaches[killer]):
            if result.found == UNSUITED:
                at_import.append((result.mutant, killer))
            else:
                yield result
    killers = {
        name: partial(KILLERS[name], rounds=rounds, reach=reach) for name, reach in reaches.items()
    }
    yield from side_by_side(at_import, processes, plant, killers)


def package_of(mutant: Mutant) -> str:
    """Return the package under which a mutant is counted."""
    if "recovery" in mutant.path:
        return "recovery"
    return mutant.path.split("/")[1].removesuffix(".py")


def table(results: Sequence[KillerResult]) -> list[str]:
    """Return the share found per package and killer; same: mutants without effect, excluded."""
    lines = [f"{'package':<12} {'killer':<11} {'found':>6} {'of':>5} {'same':>5} {'share':>6}"]
    groups: dict[tuple[str, str], list[KillerResult]] = {}
    for each in results:
        for name in (package_of(each.mutant), "all"):
            groups.setdefault((name, each.killer), []).append(each)
    for (name, killer), some in sorted(
        groups.items(), key=lambda item: (item[0][0] == "all", item)
    ):
        found = sum(each.found is not None for each in some)
        same = sum(each.found is None and why_equivalent(each.mutant) is not None for each in some)
        share = found / max(1, len(some) - same)
        counts = f"{found:>6} {len(some) - same:>5} {same:>5}"
        lines.append(f"{name:<12} {killer:<11} {counts} {share:>6.1%}")
    return lines


def _import_libraries() -> None:
    """Import third-party libraries once, before processes are forked."""
    import hypothesis  # noqa: F401
    import msgpack  # noqa: F401
    import numba  # noqa: F401
    import numpy as np  # noqa: F401
    import pydantic  # noqa: F401
    import pytest  # noqa: F401


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=300, help="mutants (default 300; 0: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default 0)")
    parser.add_argument(
        "--by",
        default="simulation,tests",
        help="what looks for mutants, each by itself: simulation, tests (default both)",
    )
    parser.add_argument("--only", default="", help="modules whose path has these words")
    parser.add_argument("--rounds", type=int, default=12, help="seeds per variant (default 12)")
    parser.add_argument("--processes", type=int, default=2, help="processes at a time (default 2)")
    parser.add_argument("--json", type=Path, help="write every result here, a line each")
    parser.add_argument("--again", type=Path, help="only what was not found in this file's results")
    parser.add_argument("--reach", type=Path, help="keep what reaches which line here, for reuse")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    killers = options.by.split(",")
    if unknown := sorted(set(killers) - KILLERS.keys()):
        parser.error(f"--by: {', '.join(unknown)} is none of {', '.join(KILLERS)}")
    if options.again:
        jobs = [job for job in _missed_in(options.again) if options.only in job[0].path]
    else:
        mutants = all_mutants(options.only)
        size = min(options.sample or len(mutants), len(mutants))
        chosen = random.Random(options.seed).sample(mutants, size)  # noqa: S311
        jobs = [(mutant, killer) for mutant in chosen for killer in killers]
    _import_libraries()
    packages = {os.path.dirname(mutant.path) for mutant, _ in jobs}
    paths = [path for path in targets() if os.path.dirname(path) in packages]
    with tempfile.TemporaryDirectory() as passing:
        folder = options.reach or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        wanted = sorted({killer for _, killer in jobs})
        reaches = {each: measured(each, paths, options.rounds, folder) for each in wanted}
    results = []
    out = options.json.open("w") if options.json else None
    for number, result in enumerate(run(jobs, options.rounds, options.processes, reaches), 1):
        results.append(result)
        missed = why_equivalent(result.mutant) or "NOT FOUND"
        verdict = missed if result.found is None else result.found[:100]
        print(f"{number}/{len(jobs)} {result.killer}: {result.mutant}: {verdict}", flush=True)
        if out:
            print(json.dumps(asdict(result)), file=out, flush=True)
    print("\n".join(table(results)))
    found_by_some = {each.mutant for each in results if each.found is not None}
    judged = {each.mutant for each in results if why_equivalent(each.mutant)}
    neither = {each.mutant for each in results} - found_by_some - judged
    print(f"found by neither: {len(neither)}")
    return 1 if neither else 0


def _missed_in(path: Path) -> list[tuple[Mutant, str]]:
    """Return (mutant, killer) of the results in a file in which nothing was found.

    Each mutant is matched to the same change of the present source, at any number; mutants
    whose code no longer exists are omitted.
    """
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    missed = [(Mutant(**each["mutant"]), each["killer"]) for each in lines if not each["found"]]
    paths = {mutant.path for mutant, _ in missed}
    local = {name: (ROOT / name).read_text() for name in paths if (ROOT / name).exists()}
    now = {name: mutants_of(name, local.get(name, "")) for name in paths}
    return [(same, by) for each, by in missed if (same := _same_now(each, now[each.path]))]


def _same_now(mutant: Mutant, mutants: Sequence[Mutant]) -> Mutant | None:
    """Return the same change in the present source, the nearest by number; None without one."""
    change = mutant.function, mutant.before, mutant.after
    same = [each for each in mutants if (each.function, each.before, each.after) == change]
    return min(same, key=lambda each: abs(each.number - mutant.number), default=None)


if __name__ == "__main__":
    sys.exit(main())
