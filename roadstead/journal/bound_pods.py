"""The pods that are bound at the end of a journal."""

from __future__ import annotations

from roadstead.journal.columns import RecordColumns
from roadstead.journal.records import RecordKind, Records


class BoundPods:
    """Pods that a run bound, in the order of their commits: uid → (key, node).

    Excludes pods that ran before, and those that were evicted or deleted since.
    """

    def __init__(self) -> None:
        self.pods: dict[str, tuple[str, str]] = {}

    def apply(self, group: Records) -> None:
        """Apply the next records."""
        for kind, records in RecordColumns.of(group).split_by_kind():
            if kind in (RecordKind.BIND, RecordKind.LOAD):
                rows = zip(records.uids, records.keys, records.nodes, records.tokens, strict=True)
                # Pods that ran before were loaded without a token.
                self.pods.update((uid, (key, node)) for uid, key, node, token in rows if token)
            elif kind in (RecordKind.EVICT, RecordKind.DELETE):
                for uid in records.uids:
                    self.pods.pop(uid, None)
