"""The searches for a mutant: simulated runs alone, or the tests of its package alone."""

import logging
import os
import resource
import time
from collections.abc import Iterator, Sequence

from tests.mutation.reach import IMPORTED, Reach, lines_of, new_coverage
from tests.mutation.sites import Mutant

TESTS_OF = {
    "roadstead/queue": (
        "tests/queue",
        "tests/actors/test_queue_actor.py",
        "tests/actors/test_cluster_events.py",
        "tests/actors/test_gang_turns.py",
        "tests/actors/test_queue_gangs.py",
        "tests/actors/test_leases.py",
    ),
    "roadstead/cache": (
        "tests/cache",
        "tests/actors/test_cache_actor.py",
        "tests/actors/test_cache_recovery.py",
        "tests/actors/test_cache_stream.py",
    ),
    "roadstead/binder": (
        "tests/binder",
        "tests/actors/test_binder_actor.py",
        "tests/actors/test_binder_recovery.py",
    ),
    "roadstead/journal": ("tests/journal", "tests/binder/test_recovery.py"),
    "roadstead/cycle": (
        "tests/actors/test_scorers.py",
        "tests/actors/test_thinking.py",
        "tests/cycle",
        "tests/recordings",
        "tests/kernel",
        "tests/preemption",
    ),
    "roadstead/attempts": ("tests/attempts", "tests/cycle/test_gangs.py"),
    "roadstead/scheduler": (
        "tests/actors/test_scheduler_actor.py",
        "tests/actors/test_thinking.py",
    ),
    "roadstead/invariants": ("tests/invariants",),
    "roadstead": (
        "tests/test_pod_store.py",
        "tests/queue",
        "tests/cache",
        "tests/binder",
        "tests/attempts",
    ),
    "actors": (
        "tests/actors/test_cache_actor.py",
        "tests/actors/test_worker_refill.py",
        "tests/actors/test_cache_recovery.py",
        "tests/actors/test_cache_stream.py",
        "tests/actors/test_binder_actor.py",
        "tests/actors/test_binder_recovery.py",
        "tests/actors/test_supervisor.py",
        "tests/actors/test_runs.py",
    ),
}
"""The tests of each mutated package, of the modules they share, and of the packages of `actors`."""


def suites_of(path: str) -> tuple[str, ...]:
    """Folders and modules with the tests of a module, as paths below the checkout."""
    package = os.path.dirname(path)
    found = TESTS_OF["actors" if package.startswith("actors/") else package]
    return tuple(each for each in found if os.path.exists(each))


WAYS = 5
"""In the wide variant, seeds that are equal modulo this number run in the same way, 0 in the quiet
one.
"""

SLOWEST = 5
LEAST_CPU_S = 30
"""A run, or the tests of a mutant, are treated as endless after this many times their time without
the mutant and at least this much processor time.
"""

HOW = ("-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:cov", "-p", "no:randomly")


def program(rounds: int) -> Iterator[tuple[str, int]]:
    """Yield (variant, seed) of the runs of a mutant, until one detects it."""
    for seed in range(rounds):
        yield "quiet", seed
        yield "wide", WAYS * seed
        yield "sampled", seed
        yield "plain", seed
        yield "modes", seed
        yield "wide", WAYS * seed + 1 + seed % (WAYS - 1)
        yield "resume", seed
        yield "strained", seed
        yield "peculiar", seed
        yield "kernel", seed


def bound_cpu(more_s: float) -> None:
    """Limit the processor time that this process may use from now on, in addition to `LEAST_CPU_S`,
    before it is killed.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    spent_s = usage.ru_utime + usage.ru_stime
    _, most_s = resource.getrlimit(resource.RLIMIT_CPU)
    bound_s = int(spent_s + LEAST_CPU_S + more_s)
    if most_s == resource.RLIM_INFINITY or bound_s < most_s:
        resource.setrlimit(resource.RLIMIT_CPU, (bound_s, most_s))


def by_simulation(mutant: Mutant, rounds: int, reach: Reach) -> str | None:
    """Return the problem of the first simulated run that fails; None where all succeed."""
    from tests.simulation.simulation import KINDS, simulate

    logging.disable()
    reaching = reach.of(mutant.path, mutant.line)
    for among, seed in program(rounds):
        where = f"{among} {seed}"
        if reaching is not None and where not in reaching:
            continue
        bound_cpu(SLOWEST * reach.seconds.get(where, 0.0))
        try:
            outcome = simulate(seed, KINDS, among=among)
        except Exception as failure:
            return f"{where}: {type(failure).__name__}: {failure}"
        if outcome.problems:
            return f"{where}: {outcome.problems[0]}"
    return None


def reach_of_simulation(paths: Sequence[str], rounds: int) -> Reach:
    """Measure which runs reach which lines. For a process of its own."""
    logging.disable()
    followed = new_coverage(paths)
    followed.start()
    from tests.simulation.simulation import KINDS, simulate

    seconds = {}
    for among, seed in program(rounds):
        where = f"{among} {seed}"
        followed.switch_context(where)
        began_s = time.perf_counter()
        assert not simulate(seed, KINDS, among=among).problems, f"{where} fails without a mutant"
        seconds[where] = time.perf_counter() - began_s
    followed.stop()
    return Reach(lines_of(followed), seconds)


class Listener:
    """Records the tests that fail, and the time of each. only: their ids; None for all of them."""

    def __init__(self, reach: Reach | None = None, only: set[str] | None = None) -> None:
        self.failed: list[str] = []
        self.seconds: dict[str, float] = {}
        self._reach, self._only = reach, only

    def pytest_collection_modifyitems(self, items: list) -> None:
        if self._only is not None:
            items[:] = [each for each in items if each.nodeid in self._only]
        if self._reach is not None:
            items.sort(key=lambda each: self._reach.seconds.get(each.nodeid, 0.0))

    def pytest_runtest_logreport(self, report) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid} (not collected)")


def by_tests(mutant: Mutant, rounds: int, reach: Reach) -> str | None:
    """Return the first test of the mutant's package that fails, the fastest first; None for
    none.
    """
    import pytest

    paths = wanted = suites_of(mutant.path)
    reaching = reach.of(mutant.path, mutant.line)
    if reaching is not None:
        files = {each.partition("::")[0] for each in reaching}
        paths = tuple(path for path in sorted(files) if path.startswith(wanted))
    if not paths:
        return None
    bound_cpu(SLOWEST * sum(reach.seconds.get(each, 0.0) for each in reaching or ()))
    listener = Listener(reach, reaching)
    code = pytest.main(["-x", *HOW, *paths], plugins=[listener])
    if listener.failed:
        return listener.failed[0]
    # 5: no test is left, so none reaches it.
    return None if code in (0, 5) else f"pytest ended with {int(code)}"


class _Contexts(Listener):
    """Assigns the lines that a test reaches to it; lines that a fixture reaches, to all tests of
    its file.
    """

    def __init__(self, followed) -> None:
        super().__init__()
        self._followed, self.items = followed, []

    def pytest_collection_finish(self, session) -> None:
        self.items = [each.nodeid for each in session.items]

    def pytest_runtest_setup(self, item) -> None:
        self._followed.switch_context(item.nodeid.partition("::")[0])

    def pytest_runtest_call(self, item) -> None:
        self._followed.switch_context(item.nodeid)

    def pytest_runtest_teardown(self, item) -> None:
        self._followed.switch_context(item.nodeid)


def reach_of_tests(paths: Sequence[str], rounds: int) -> Reach:
    """Measure which tests reach which lines. For a process of its own."""
    import pytest

    followed = new_coverage(paths)
    folders = {each for path in paths for each in suites_of(path)}
    listener = _Contexts(followed)
    followed.start()
    code = pytest.main([*HOW, *sorted(folders)], plugins=[listener])
    followed.stop()
    assert code == 0, f"tests fail without a mutant: {listener.failed[:3]}"
    return Reach(_with_fixtures(lines_of(followed), listener.items), listener.seconds)


def _with_fixtures(lines, items):
    """Add the lines of fixtures to every test of the file."""
    tests = {}
    for each in items:
        tests.setdefault(each.partition("::")[0], []).append(each)
    return {
        path: {
            line: sorted({one for name in contexts for one in tests.get(name, (name,))})
            for line, contexts in known.items()
        }
        for path, known in lines.items()
    }


KILLERS = {"simulation": by_simulation, "tests": by_tests}
REACHES = {"simulation": reach_of_simulation, "tests": reach_of_tests}
assert IMPORTED == "", "coverage has an empty context name by default"
