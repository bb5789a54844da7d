"""Texts for exhausted memory, open files or threads, printed in place of a traceback."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator

MOST_FILES = 65_536
"""Maximum number of open files that a command requests from the system."""

_NO_FILES = (errno.EMFILE, errno.ENFILE)


def allow_files() -> None:
    """Raise the soft limit of open files, up to the hard one: a shell's default is small."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def exhausted(failure: BaseException) -> str:
    """The resource whose exhaustion caused a failure; "" for any other failure."""
    for each in _chain(failure):
        if isinstance(each, MemoryError):
            return "out of memory"
        if isinstance(each, OSError) and each.errno == errno.ENOMEM:
            return "out of memory"
        if isinstance(each, OSError) and each.errno in _NO_FILES:
            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            return f"too many open files: the limit is {limit} (ulimit -n)"
        if isinstance(each, RuntimeError) and "start new thread" in str(each):
            return "no more threads can be started (ulimit -u)"
    return ""


def _chain(failure: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while failure is not None and id(failure) not in seen:
        seen.add(id(failure))
        yield failure
        failure = failure.__cause__ or failure.__context__
