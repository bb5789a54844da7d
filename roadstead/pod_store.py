"""PodStore: the pods that a core keeps, found by UID, and the one way to move them.

    unknown ──► here ──► ended ──► forgotten: the oldest beyond `max_ended`

Queue, cache, binder and attempts have one each, over their own table. What else follows from a move
(heaps, deadlines, placements) they do themselves, from what `go_all` returns.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from roadstead.protocol.errors import IllegalTransitionError
from roadstead.transitions import Event, Moved, State, Subject, TransitionTable

RecordT = TypeVar("RecordT", bound=Subject[Any])
Value = TypeVar("Value")


class PodStore(Generic[RecordT, State, Event]):
    """Records of the pods that are here, and of the last `max_ended` that ended.

    unknown: the state of a pod without a record. here_in, ended_in: the states of those that are
    here and of those that ended; in any other a pod is forgotten. begun: how many came. ends: how
    many went from a state to one outside `here_in`.
    """

    def __init__(
        self,
        table: TransitionTable[State, Event],
        unknown: State,
        here_in: Collection[State],
        ended_in: Collection[State],
        max_ended: int,
    ) -> None:
        self.max_ended = max_ended
        self.begun = 0
        self.ends: defaultdict[tuple[State, State], int] = defaultdict(int)
        self._table, self._unknown = table, unknown
        self._here_in, self._ended_in = frozenset(here_in), frozenset(ended_in)
        self._here: dict[str, RecordT] = {}
        self._ended: OrderedDict[str, RecordT] = OrderedDict()
        # Attributes: a property would be a call for each pod. Only the store changes them.
        self.here: Mapping[str, RecordT] = self._here
        self.ended: Mapping[str, RecordT] = self._ended

    def find(self, uid: str) -> RecordT | None:
        """The record of a pod that is here, or ended lately."""
        return self._here.get(uid) or self._ended.get(uid)

    def known(self, uid: str, event: Event, why: str = "") -> RecordT:
        """As `find`; raises IllegalTransitionError for any other pod."""
        record = self._here.get(uid) or self._ended.get(uid)
        if record is None:
            raise self.illegal(uid, event, why)
        return record

    def state_of(self, uid: str) -> State:
        """A pod's state, whether or not it is known."""
        record = self.find(uid)
        return self._unknown if record is None else record.state

    def illegal(self, uid: str, event: Event, why: str = "") -> IllegalTransitionError:
        """The error for an event on a pod, wherever that is."""
        record = self.find(uid)
        state, history = (record.state, record.history) if record else (self._unknown, ())
        return self._table.illegal(uid, state, event, history, why)

    def continue_stories(self, records: Iterable[RecordT]) -> None:
        """Make new records start from where the pods of their UIDs ended."""
        ended = self._ended
        for record in records if ended else ():
            before = ended.get(record.uid)
            if before is not None:
                record.state, record.history = before.state, before.history

    def go(self, record: RecordT, event: Event) -> None:
        """Move a record along an arrow; raises IllegalTransitionError, with nothing changed."""
        arrow = self._table.follow(record.uid, record.state, event, record.history)
        was, record.state = record.state, arrow.target
        record.history = arrow.extend(record.history)
        self._keep((record,), was, arrow.target)

    def go_all(self, records: Sequence[RecordT], *events: Event) -> list[Moved[State]]:
        """As `go` for records, each there once, and for one event after another.

        Where a record is kept follows from the last state alone.
        """
        moves = self._table.walk(*events).move(records)
        for moved in moves:
            self._keep(moved.among(records), moved.was, moved.to)
        return moves

    def restore(self, records: Iterable[RecordT]) -> None:
        """Put records here that came here elsewhere."""
        named = {record.uid: record for record in records}
        self._here |= named
        self.begun += len(named)

    def ended_as(self, state: State) -> int:
        """How many pods that were here ended in a state."""
        return sum(self.ends[was, state] for was in self._here_in)

    def validate(self) -> None:
        """Check that each record is kept where its state says, and none is lost."""
        assert not self._ended.keys() & self._here.keys(), "a pod is here and ended"
        assert len(self._ended) <= self.max_ended, "too many pods are remembered"
        for uid, record in self._here.items():
            assert record.uid == uid, f"{record.uid} under {uid}"
            assert record.state in self._here_in, f"{uid} is here as {record.state}"
        for uid, record in self._ended.items():
            assert record.state in self._ended_in, f"{uid} ended as {record.state}"
        ended = sum(count for (was, _), count in self.ends.items() if was in self._here_in)
        counts = f"of {self.begun} pods {len(self._here)} are here and {ended} ended"
        assert self.begun == len(self._here) + ended, counts

    def _keep(self, records: Sequence[RecordT], was: State, to: State) -> None:
        """Keep records where the state to which they went says."""
        if to in self._here_in:
            if was not in self._here_in:
                named = {record.uid: record for record in records}
                for uid in self._ended.keys() & named.keys():
                    del self._ended[uid]
                self._here |= named
                self.begun += len(records)
            return
        self.ends[was, to] += len(records)
        for record in records:
            self._here.pop(record.uid, None)
        if to in self._ended_in:
            for record in records:
                self._ended[record.uid] = record
            forget_oldest(self._ended, self.max_ended)
        elif was in self._ended_in:
            for record in records:
                self._ended.pop(record.uid, None)


def forget_oldest(memory: OrderedDict[str, Value], most: int) -> None:
    """Drop what came first of a memory, down to the last `most`."""
    for _ in range(len(memory) - most):
        memory.popitem(last=False)
