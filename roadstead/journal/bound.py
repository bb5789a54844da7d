"""Which pods a journal leaves bound."""

from __future__ import annotations

from roadstead.journal.columns import RecordColumns
from roadstead.journal.records import RecordKind, Records


class BoundPods:
    """Pods that a run bound, in the order of their commits: uid → (key, node).

    Without those that ran before, and those that were evicted or deleted since.
    """

    def __init__(self) -> None:
        self.pods: dict[str, tuple[str, str]] = {}

    def take(self, group: Records) -> None:
        """Records that follow those before."""
        for kind, run in RecordColumns.of(group).runs():
            if kind in (RecordKind.BIND, RecordKind.LOAD):
                rows = zip(run.uids, run.keys, run.nodes, run.tokens, strict=True)
                # What ran before was loaded without a token.
                self.pods.update((uid, (key, node)) for uid, key, node, token in rows if token)
            elif kind in (RecordKind.EVICT, RecordKind.DELETE):
                for uid in run.uids:
                    self.pods.pop(uid, None)
