"""Times of acknowledged binds, for benchmarks.

The binder notes each bind (`note`); its caller, which has the clock, marks the time at which all
binds noted so far are acknowledged (`mark`). A commit is marked once both have happened.
"""

from __future__ import annotations

from bisect import bisect_right


class CommitLog:
    """The commits of one binder process.

    _uids: of the bound pods, in order. By mark: _ends, the number of commits up to it; _times, the
    time; _processor_s, the processor time of the process until then.
    """

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
        """Return at most `count` marked commits from index `start` on.

        Returns their UIDs, and (number of commits, time, processor time) of each mark, in order.
        """
        stop = min(self.total, start + count)
        times: list[tuple[int, float, float]] = []
        index, mark = start, bisect_right(self._ends, start)
        while index < stop:
            end = min(self._ends[mark], stop)
            times.append((end - index, self._times[mark], self._processor_s[mark]))
            index, mark = end, mark + 1
        return self._uids[start:stop], times
