"""Hypothesis for all tests: no deadlines; in CI the same examples each time; quick: few of them.

Modules and tests stay until the end of a run: the garbage collector does not search them. Tests of
Ray run first, in two processes at the most, and with priority over the others of a run.
"""

import gc
import os

import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("local", deadline=None, max_examples=60)
settings.register_profile("quick", deadline=None, max_examples=10)
PROFILE = "ci" if os.environ.get("CI") else "local"
if os.environ.get("ROADSTEAD_TESTS") == "quick":
    PROFILE = "quick"
settings.load_profile(PROFILE)

BEHIND = 5
"""Niceness of a process from its first test that does not start Ray: calls to Ray have deadlines,
which pass on a machine that computes."""

_behind: set[int] = set()
"""This process, once it has this niceness."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    # Of 42 s for the collection of all tests, the garbage collector took 16 s and found nothing.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    of_ray = [[], []]
    others = []
    for item in items:
        # Actors alone, whose tests set short deadlines; commands, which wait for minutes.
        part = of_ray["actors" not in item.path.parts] if is_of_ray(item) else others
        part.append(item)
    # `--dist worksteal` gives each process an equal part of the tests, in their order, and steals
    # the last ones of a part: while tests wait for Ray, a process computes, and of all tests not
    # more than two start Ray at a time.
    second = max(0, part_of(len(items)) - len(of_ray[0]))
    items[:] = [*of_ray[0], *others[:second], *of_ray[1], *others[second:]]


def part_of(tests):
    """Return how many of the tests the first process begins with; 0 for one process."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return tests // processes if processes > 1 else 0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if not _behind and "PYTEST_XDIST_WORKER" in os.environ and not is_of_ray(item):
        os.nice(BEHIND)
        _behind.add(os.getpid())


def is_of_ray(item):
    return item.get_closest_marker("ray") is not None
