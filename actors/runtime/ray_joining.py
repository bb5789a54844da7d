"""Failures to join Ray: texts for the user, and a quick search for a raylet on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ray._private import services
from ray.exceptions import AuthenticationError

NO_NODE_HERE: Final = (
    "this machine is no node of the cluster (no raylet of it runs here): run the command on one of "
    "its nodes, or submit it with `ray job submit`"
)

AUTHENTICATE: Final = (
    "set RAY_AUTH_TOKEN_PATH to a file with the token of the cluster, which `ray get-auth-token` "
    "shows on its head"
)

REFUSED: Final = "InvalidAuthToken"
"""What the head answers to a wrong token, and to none; Ray raises it as another error's cause."""

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
    if token_problem := _token_problem(failure):
        return f"{token_problem}: {AUTHENTICATE}"
    if "Version mismatch" in text:
        # Ray compares the patch version of Python, too. The versions are on further lines.
        rule = "all nodes and the driver need one version of Ray and of Python, 3.11.7 for example"
        return f"{text.rstrip('. ')}; {rule}"
    if "No node info found" in text:
        return NO_NODE_HERE
    return first_line(failure)


def _token_problem(failure: BaseException) -> str:
    """Return what is wrong with the token of this process; "" if it is not the cause."""
    if isinstance(failure, AuthenticationError):
        # Ray looked for a token because RAY_AUTH_MODE is `token`. Its text names the file.
        return str(failure).partition(". Ensure")[0]
    if not any(REFUSED in str(each) for each in _causes(failure)):
        return ""
    if _has_token():
        return "its head refused the token of this process"
    return "it accepts only those with its token, and this process has none"


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    while failure is not None:
        yield failure
        failure = failure.__cause__


def _has_token() -> bool:
    """Return whether Ray finds a token for this process, right or wrong."""
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return True
    return (Path.home() / ".ray" / "auth_token").exists()


def first_line(failure: BaseException) -> str:
    """Return the first line of an error's text that is not empty; its type if there is none."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[0] if lines else type(failure).__name__
