"""Hypothesis for all tests: no deadlines; in CI the same examples each time; quick: few of them.

Modules and tests stay until the end of a run: the garbage collector does not search them.
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


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    # Of 42 s for the collection of all tests, the garbage collector took 16 s and found nothing.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
