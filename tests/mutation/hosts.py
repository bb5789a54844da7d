"""Processes with all imports done, whose forks search for mutants.

Importing the product and collecting its tests takes longer than most tests that detect a mutant.
"""

from collections.abc import Callable, Sequence

from tests.mutation.killers import HOW, SLOWEST, Listener, bound_cpu, by_simulation
from tests.mutation.reach import Reach
from tests.mutation.sites import Mutant

Kill = Callable[[Mutant], str | None]
"""Returns the text that detects a planted mutant, None if nothing does. It is called in a fork."""

Work = Callable[[Kill], None]
Host = Callable[[Work, Reach], None]


def host_of_simulation(work: Work, reach: Reach, suites: Sequence[str], rounds: int) -> None:
    """Import the modules that simulated runs need."""
    from tests.simulation import simulation

    assert simulation.simulate is not None
    work(lambda mutant: by_simulation(mutant, rounds, reach))


def host_of_tests(work: Work, reach: Reach, suites: Sequence[str], rounds: int) -> None:
    """Collect tests once; a fork runs those that reach its mutant, the fastest ones first."""
    import pytest

    pytest.main([*HOW, *suites], plugins=[_Loop(work, reach)])


class _Loop:
    """Replaces pytest's own loop over all tests."""

    def __init__(self, work: Work, reach: Reach) -> None:
        self._work, self._reach = work, reach

    def pytest_runtestloop(self, session) -> bool:
        items = sorted(session.items, key=lambda each: self._reach.seconds.get(each.nodeid, 0.0))

        def kill(mutant: Mutant) -> str | None:
            reaching = self._reach.of(mutant.path, mutant.line)
            bound_cpu(SLOWEST * sum(self._reach.seconds.get(each, 0.0) for each in reaching))
            return _first_failing(session, [each for each in items if each.nodeid in reaching])

        self._work(kill)
        return True


def _first_failing(session, items: list) -> str | None:
    """Return the first of these tests that fails; None where all pass, or where there is none."""
    if not items:
        return None
    listener = Listener()
    session.config.pluginmanager.register(listener)
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if listener.failed:
            return listener.failed[0]
    return None


HOSTS = {"simulation": host_of_simulation, "tests": host_of_tests}
