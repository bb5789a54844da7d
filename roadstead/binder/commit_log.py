"""Times of acknowledged binds: the binder notes them, its caller marks the time."""

from __future__ import annotations

from bisect import bisect_right


class CommitLog:
    """The commits of one binder process: one list entry per pod, three per batch."""

    __slots__ = ("_ends", "_processor_s", "_times", "_uids")

    def __init__(self) -> None:
        self._uids: list[str] = []
        self._ends: list[int] = []
        self._times: list[float] = []
        self._processor_s: list[float] = []

    @property
    def total(self) -> int:
        """Number of marked commits."""
        return self._ends[-1] if self._ends else 0

    def note(self, uid: str) -> None:
        """Note that a pod is bound."""
        self._uids.append(uid)

    def mark(self, now_s: float, processor_s: float) -> None:
        """Mark the commits noted since the last mark as acknowledged now.

        processor_s: processor time of the process.
        """
        if len(self._uids) > self.total:
            self._ends.append(len(self._uids))
            self._times.append(now_s)
            self._processor_s.append(processor_s)

    def page(self, start: int, count: int) -> tuple[list[str], list[tuple[int, float, float]]]:
        """Return marked commits from an index on: UIDs, and (how many of them, when) in order.

        When: the time, and the processor time of the process.
        """
        stop = min(self.total, start + count)
        times: list[tuple[int, float, float]] = []
        index, batch = start, bisect_right(self._ends, start)
        while index < stop:
            end = min(self._ends[batch], stop)
            times.append((end - index, self._times[batch], self._processor_s[batch]))
            index, batch = end, batch + 1
        return self._uids[start:stop], times
