"""When binds were acknowledged: the binder notes it, whoever measures asks for it."""

from __future__ import annotations

import time
from bisect import bisect_right

from roadstead.actors.messages import CommitPage, PageAsk


class CommitLog:
    """Commits of this life of a binder: a word for each pod, two for each batch."""

    __slots__ = ("_ends", "_times", "_uids")

    def __init__(self) -> None:
        self._uids: list[str] = []
        self._ends: list[int] = []
        self._times: list[float] = []

    def note(self, uid: str) -> None:
        """A pod is bound."""
        self._uids.append(uid)

    def mark(self) -> None:
        """What was noted since the last mark is about to be acknowledged."""
        if len(self._uids) > (self._ends[-1] if self._ends else 0):
            self._ends.append(len(self._uids))
            self._times.append(time.monotonic())

    def page(self, ask: PageAsk) -> CommitPage:
        """Marked commits from a place on."""
        total = self._ends[-1] if self._ends else 0
        stop = min(total, ask.start + ask.count)
        times: list[tuple[int, float]] = []
        place, batch = ask.start, bisect_right(self._ends, ask.start)
        while place < stop:
            end = min(self._ends[batch], stop)
            times.append((end - place, self._times[batch]))
            place, batch = end, batch + 1
        return CommitPage(
            tuple(self._uids[ask.start : stop]), tuple(times), total, time.monotonic()
        )
