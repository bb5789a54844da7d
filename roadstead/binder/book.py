"""The binder's records of pods, and the one way to move them from state to state."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from roadstead.binder.pods import COUNTED, TABLE, BinderSettings, PodEvent, PodRecord, PodState
from roadstead.facts.pod import PodFacts
from roadstead.protocol.errors import IllegalTransitionError


class PodBook:
    """Records by UID: of pods that are here, and of the last `max_gone_remembered` that are gone.

    placements and journal follow the states.
    """

    def __init__(self, settings: BinderSettings) -> None:
        self.settings = settings
        self._records: dict[str, PodRecord] = {}
        self._gone: OrderedDict[str, PodRecord] = OrderedDict()

    def pod(self, uid: str) -> tuple[str, PodFacts]:
        """Key and facts of a pod that is here, or was lately. KeyError for any other."""
        record = self._find(uid)
        if record is None:
            raise KeyError(uid)
        return record.key, record.facts

    def standing(self, uid: str) -> tuple[PodState, str | None]:
        """A pod's state and node, for who asks what became of a bind.

        TENTATIVE is no answer yet: ask again after the flush.
        """
        record = self._find(uid)
        if record is None:
            return PodState.UNKNOWN, None
        return record.state, record.node_name if record.state in COUNTED else None

    def is_bound_by(self, uid: str, token: str) -> bool:
        """Whether a pod is bound, and by the request of this token."""
        record = self._records.get(uid)
        return record is not None and record.state is PodState.BOUND and record.token == token

    def pods(self) -> list[PodRecord]:
        """Pods that wait or are bound, in the order in which they came; not to be changed."""
        return list(self._records.values())

    def records(self, uids: Iterable[str]) -> list[PodRecord]:
        """Those of the pods that wait or are bound; not to be changed."""
        return [self._records[uid] for uid in uids if uid in self._records]

    def _go(self, record: PodRecord, event: PodEvent) -> None:
        """The one mutator of states; placements and journal follow it."""
        arrow = TABLE.follow(record.uid, record.state, event, record.history)
        record.state = arrow.target
        record.history = arrow.extend(record.history)
        self._file(record)

    def _file(self, record: PodRecord) -> None:
        """Where records are found: those that are here, and those that are gone."""
        if record.state is PodState.DELETED:
            self._records.pop(record.uid, None)
            self._gone[record.uid] = record
            if len(self._gone) > self.settings.max_gone_remembered:
                self._gone.popitem(last=False)
        else:
            self._gone.pop(record.uid, None)
            self._records[record.uid] = record

    def _file_here(self, records: Sequence[PodRecord]) -> None:
        """As `_file` for records that are not gone, each there once."""
        named = {record.uid: record for record in records}
        for uid in self._gone.keys() & named.keys():
            del self._gone[uid]
        self._records |= named

    def _fresh(self, uid: str, key: str, facts: PodFacts) -> PodRecord:
        """A new record; a pod that was deleted before starts from there."""
        record = PodRecord(uid, key, facts)
        before = self._gone.get(uid)
        if before is not None:
            record.state, record.history = before.state, before.history
        return record

    def _find(self, uid: str) -> PodRecord | None:
        return self._records.get(uid) or self._gone.get(uid)

    def _known(self, uid: str, event: PodEvent) -> PodRecord:
        """The record of a pod to which `event` may happen; raises where it may not."""
        record = self._find(uid)
        if record is None:
            raise self._illegal(uid, event, "never added")
        TABLE.follow(uid, record.state, event, record.history)
        return record

    def _illegal(self, uid: str, event: PodEvent, why: str) -> IllegalTransitionError:
        record = self._find(uid)
        state, history = (record.state, record.history) if record else (PodState.UNKNOWN, ())
        return TABLE.illegal(uid, state, event, history, why)
