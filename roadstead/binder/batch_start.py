"""The binder's state at the start of a batch, and its restoration after an error.

Commits of a batch are verified on top of one another, so they are counted before the whole batch is
decided. If something raises before the records are returned, the whole batch must be undone: a pod
that is accepted and not journaled would leave a gap in the numbers of records, and the next commit
would end the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from roadstead.binder.pods import BinderRecord, BinderState, BindRequest, Released
from roadstead.binder.rows import Row, RowVersions
from roadstead.binder.tokens import TokenMemory
from roadstead.placements import Placements
from roadstead.transitions import History

Unflushed = deque[tuple[int, BinderRecord, str | Released | None]]
"""(record number, pod, what follows the flush): the token of a commit, to be answered; the command
of a removal; or None, for a pod that was added with its node."""


@dataclass(frozen=True, slots=True)
class BatchStart:
    """All that a batch may change, as before. histories: of the pods that it accepted, by UID.

    unflushed, tokens: numbers of entries. rows: of the requested nodes, if commits check versions.
    """

    last_lsn: int
    version: int
    unflushed: int
    tokens: int
    epochs: Mapping[str, int]
    rows: Mapping[str, Row | None]
    histories: dict[str, History]

    def reset_accepted(
        self,
        requests: Iterable[BindRequest],
        records: Mapping[str, BinderRecord],
        placements: Placements,
    ) -> None:
        """Reset the pods that the batch accepted or placed to PENDING, on no node."""
        for uid in dict.fromkeys(request.uid for request in requests):
            record = records.get(uid)
            if record is None:
                continue
            history = self.histories.get(uid)
            if history is not None:
                record.state, record.history = BinderState.PENDING, history
                record.node_name = record.token = record.owner = ""
                record.epoch = record.lsn = record.version = 0
            if record.state is BinderState.PENDING and placements.node_of(uid) is not None:
                placements.remove_pod(uid)
        placements.version = self.version

    def drop_entries(self, unflushed: Unflushed, tokens: TokenMemory, rows: RowVersions) -> None:
        """Drop the batch's entries, and restore its rows."""
        while len(unflushed) > self.unflushed:
            unflushed.pop()
        tokens.undo_to(self.tokens)
        for node_name, row in self.rows.items():
            rows.restore(node_name, row)
