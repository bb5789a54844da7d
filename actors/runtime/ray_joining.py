"""Failures to join Ray: texts for the user, and the question that Ray asks too slowly."""

from __future__ import annotations

import time
from typing import Final

from ray._private import services

NO_NODE_HERE: Final = (
    "this machine is no node of the cluster (no raylet of it runs here): run the command on one of "
    "its nodes, or submit it with `ray job submit`"
)

_POLL_S = 0.5
"""Interval between two searches for a raylet on this machine: each reads its list of processes."""


def is_on_a_node(timeout_s: float) -> bool:
    """Return whether a raylet runs on this machine, of whichever cluster, within the time."""
    # Private to Ray: without the function, Ray itself asks, and waits for a minute.
    find = getattr(services, "find_node_ids", None)
    if find is None:
        return True
    until_s = time.monotonic() + timeout_s
    while not find():
        if time.monotonic() >= until_s:
            return False
        time.sleep(_POLL_S)
    return True


def join_problem(failure: BaseException) -> str:
    """Return in one line why Ray did not start or was not joined, with the remedy if known."""
    text = " ".join(str(failure).split())
    if "Version mismatch" in text:
        # Ray compares the patch version of Python, too. The versions are on further lines.
        rule = "all nodes and the driver need one version of Ray and of Python, 3.11.7 for example"
        return f"{text.rstrip('. ')}; {rule}"
    if "No node info found" in text:
        return NO_NODE_HERE
    return first_line(failure)


def first_line(failure: BaseException) -> str:
    """Return the first line of an error's text that is not empty; its type if there is none."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[0] if lines else type(failure).__name__
