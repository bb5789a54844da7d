"""Hypothesis settings of all tests: no deadlines, and in CI the same examples each time."""

import os

from hypothesis import settings

settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("local", deadline=None, max_examples=60)
settings.load_profile("ci" if os.environ.get("CI") else "local")
