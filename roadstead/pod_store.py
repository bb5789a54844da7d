"""PodStore: a core's pods by UID, and the only way to change their states.

    unknown ──► present ──► ended ──► forgotten: the oldest beyond `max_ended`

Queue, cache, binder and attempts each have a store with their own transition table. They update
their other structures (heaps, deadlines, placements) from the moves that `apply_all` returns. A
move is a change from one state to another, of one or more pods.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from roadstead.protocol.errors import IllegalTransitionError
from roadstead.transitions import Event, Moved, State, Stateful, TransitionTable

RecordT = TypeVar("RecordT", bound=Stateful[Any])
"""What a core keeps of a pod, with its state and history (its last transitions, for errors)."""

Value = TypeVar("Value")
"""Any value that is kept by UID."""


class PodStore(Generic[RecordT, State, Event]):
    """Records of the present pods (`present`), and of the latest `max_ended` that ended (`ended`).

    unknown: the state of a pod without a record. present_in, ended_in: the states of present and of
    ended pods; in any other state a pod has no record. begun: how often a pod became present, ever.
    ends: how often a pod moved, by (old state, new state), to a state outside `present_in`.
    """

    def __init__(
        self,
        table: TransitionTable[State, Event],
        unknown: State,
        present_in: Collection[State],
        ended_in: Collection[State],
        max_ended: int,
    ) -> None:
        self.max_ended = max_ended
        self.begun = 0
        self.ends: defaultdict[tuple[State, State], int] = defaultdict(int)
        self._table, self._unknown = table, unknown
        self._present_in, self._ended_in = frozenset(present_in), frozenset(ended_in)
        self._present: dict[str, RecordT] = {}
        self._ended: OrderedDict[str, RecordT] = OrderedDict()
        # Attributes, since a property would cost a call for each pod. Only the store changes them.
        self.present: Mapping[str, RecordT] = self._present
        self.ended: Mapping[str, RecordT] = self._ended

    def find(self, uid: str) -> RecordT | None:
        """Return the record of a present or recently ended pod; None for any other."""
        return self._present.get(uid) or self._ended.get(uid)

    def require(self, uid: str, event: Event, why: str = "") -> RecordT:
        """Return the record as `find` does; raises IllegalTransitionError instead of None.

        event: that is to be applied, for the error. why: the reason, for the error.
        """
        record = self._present.get(uid) or self._ended.get(uid)
        if record is None:
            raise self.illegal(uid, event, why)
        return record

    def state_of(self, uid: str) -> State:
        """Return a pod's state; `unknown` without a record."""
        record = self.find(uid)
        return self._unknown if record is None else record.state

    def illegal(self, uid: str, event: Event, why: str = "") -> IllegalTransitionError:
        """Return the error for an illegal event of a pod, known or not."""
        record = self.find(uid)
        state, history = (record.state, record.history) if record else (self._unknown, ())
        return self._table.illegal(uid, state, event, history, why)

    def inherit_histories(self, records: Iterable[RecordT]) -> None:
        """Let new records start with the state and history of an ended pod of the same UID."""
        ended = self._ended
        for record in records if ended else ():
            before = ended.get(record.uid)
            if before is not None:
                record.state, record.history = before.state, before.history

    def apply(self, record: RecordT, event: Event) -> None:
        """Apply an event to a record. IllegalTransitionError, with nothing changed, if illegal."""
        transition = self._table.follow(record.uid, record.state, event, record.history)
        was, record.state = record.state, transition.target
        record.history = transition.extend(record.history)
        self._file_by_state((record,), was, transition.target)

    def apply_all(self, records: Sequence[RecordT], *events: Event) -> list[Moved[State]]:
        """Apply events, one after another, to distinct records, and return the moves.

        Errors as for `apply`. Only the last state decides whether a record is present, ended or
        forgotten.
        """
        moves = self._table.walk(*events).move(records)
        for moved in moves:
            self._file_by_state(moved.select(records), moved.was, moved.to)
        return moves

    def restore(self, records: Iterable[RecordT]) -> None:
        """Add present records that were created elsewhere, as from a snapshot."""
        by_uid = {record.uid: record for record in records}
        self._present |= by_uid
        self.begun += len(by_uid)

    def ended_as(self, state: State) -> int:
        """Return how often a present pod moved to `state`, one in which pods end."""
        return sum(self.ends[was, state] for was in self._present_in)

    def validate(self) -> None:
        """Check that each record is kept according to its state, and that none is lost."""
        assert not self._ended.keys() & self._present.keys(), "a pod is present and ended"
        assert len(self._ended) <= self.max_ended, "too many pods are remembered"
        for uid, record in self._present.items():
            assert record.uid == uid, f"{record.uid} under {uid}"
            assert record.state in self._present_in, f"{uid} is present as {record.state}"
        for uid, record in self._ended.items():
            assert record.state in self._ended_in, f"{uid} ended as {record.state}"
        ended = sum(count for (was, _), count in self.ends.items() if was in self._present_in)
        counts = f"of {self.begun} pods {len(self._present)} are present and {ended} ended"
        assert self.begun == len(self._present) + ended, counts

    def _file_by_state(self, records: Sequence[RecordT], was: State, to: State) -> None:
        """File records as present, ended or forgotten, according to their new state."""
        if to in self._present_in:
            if was not in self._present_in:
                by_uid = {record.uid: record for record in records}
                for uid in self._ended.keys() & by_uid.keys():
                    del self._ended[uid]
                self._present |= by_uid
                self.begun += len(records)
            return
        self.ends[was, to] += len(records)
        for record in records:
            self._present.pop(record.uid, None)
        if to in self._ended_in:
            for record in records:
                self._ended[record.uid] = record
            forget_oldest(self._ended, self.max_ended)
        elif was in self._ended_in:
            for record in records:
                self._ended.pop(record.uid, None)


def forget_oldest(memory: OrderedDict[str, Value], max_entries: int) -> None:
    """Drop the oldest entries, so that `max_entries` remain."""
    for _ in range(len(memory) - max_entries):
        memory.popitem(last=False)
