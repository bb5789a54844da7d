"""Hypothesis for all tests: no deadlines; in CI the same examples each time; quick: few of them."""

import os

from hypothesis import settings

settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("local", deadline=None, max_examples=60)
settings.register_profile("quick", deadline=None, max_examples=10)
PROFILE = "ci" if os.environ.get("CI") else "local"
if os.environ.get("ROADSTEAD_TESTS") == "quick":
    PROFILE = "quick"
settings.load_profile(PROFILE)
