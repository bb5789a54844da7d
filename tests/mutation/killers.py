"""What may find a mutant: simulated runs alone, or the tests of its package alone."""

import logging
import os
from collections.abc import Iterator

from tests.mutation.sites import Mutant

TESTS_OF = {
    "roadstead/queue": ("tests/queue", "tests/actors/test_queue_actor.py"),
    "roadstead/cache": ("tests/cache", "tests/actors/test_cache_actor.py"),
    "roadstead/binder": ("tests/binder", "tests/actors/test_binder_actor.py"),
    "roadstead/journal": ("tests/journal", "tests/binder/test_recovery.py"),
    "roadstead/cycle": ("tests/cycle", "tests/parity", "tests/kernel", "tests/preemption"),
    "roadstead/invariants": ("tests/invariants",),
    "actors": (
        "tests/actors/test_cache_recovery.py",
        "tests/actors/test_binder_actor.py",
        "tests/actors/test_supervisor.py",
        "tests/actors/test_runs.py",
    ),
}
"""The tests of each package that is mutated."""

WAYS = 6
"""Of the wide variant: seeds that are equal modulo this number run in the same way, 0 the quiet."""


def program(rounds: int) -> Iterator[tuple[str, int]]:
    """(variant, seed) of the runs that a mutant goes through, until one finds it."""
    for seed in range(rounds):
        yield "quiet", seed
        yield "wide", WAYS * seed
        yield "sampled", seed
        yield "plain", seed
        yield "modes", seed
        yield "wide", WAYS * seed + 1 + seed % (WAYS - 1)
        yield "beside", seed
        yield "resume", seed
        yield "strained", seed
        if seed % 2:
            yield "kernel", seed


def by_simulation(mutant: Mutant, rounds: int) -> str | None:
    """What the first simulated run that does not end well finds; None where all end well."""
    from tests.simulation.simulation import KINDS, simulate

    logging.disable()
    for among, seed in program(rounds):
        where = f"{among} {seed}"
        try:
            outcome = simulate(seed, KINDS, among=among)
        except Exception as failure:
            return f"{where}: {type(failure).__name__}: {failure}"
        if outcome.problems:
            return f"{where}: {outcome.problems[0]}"
    return None


def by_tests(mutant: Mutant, rounds: int) -> str | None:
    """The first test of the mutant's package that fails; None where none does."""
    import pytest

    failed: list[str] = []

    class Listener:
        def pytest_runtest_logreport(self, report):
            if report.failed:
                failed.append(report.nodeid)

        def pytest_collectreport(self, report):
            if report.failed:
                failed.append(f"{report.nodeid} (not collected)")

    package = os.path.dirname(mutant.path)
    paths = [path for path in TESTS_OF[package] if os.path.exists(path)]
    how = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:cov")
    code = pytest.main([*how, *paths], plugins=[Listener()])
    if failed:
        return failed[0]
    return None if code == 0 else f"pytest ended with {int(code)}"


KILLERS = {"simulation": by_simulation, "tests": by_tests}
