"""Hypothesis for all tests: no deadlines; in CI the same examples each time; quick: few of them.

Modules and tests stay until the end of a run: the garbage collector does not search them. Tests of
Ray run first, one after another, and with priority over the other processes of a run.
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
"""Niceness of processes that begin with another test than one of Ray: calls to Ray have deadlines,
which pass on a machine that computes."""

_begun: set[int] = set()
"""This process, once it has begun a test."""


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
    # `--dist worksteal` gives the first tests to one process, and steals its last ones: while a
    # test waits for Ray, the other processes compute, and no two tests start Ray at a time.
    items.sort(key=lambda item: not is_of_ray(item))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if not _begun and "PYTEST_XDIST_WORKER" in os.environ and not is_of_ray(item):
        os.nice(BEHIND)
    _begun.add(os.getpid())


def is_of_ray(item):
    return item.get_closest_marker("ray") is not None
