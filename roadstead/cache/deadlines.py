"""Deadlines of assumptions: a heap of groups of records with lazy deletion.

    put(records, deadline) ──► first() ──► the record whose deadline is first
          remove(records): deletes their tickets; records are dropped when their group is the first,
                           or when most records have no ticket

The records of one `put` are one group, whose number is their ticket. Most assumptions end long
before their deadline, so adding and removing a record only writes and deletes its ticket.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from roadstead.cache.pods import CacheRecord

ENDED_MAX: Final = 64
"""Number of records without a ticket that are not worth a pass over all records."""

_Group = tuple[float, int, deque[CacheRecord]]


class AssumeDeadlines:
    """Records by deadline; those of one deadline in the order in which they were put."""

    def __init__(self) -> None:
        # A heap of (deadline in seconds, ticket, records).
        self._groups: list[_Group] = []
        # UID → ticket.
        self._ticket_of: dict[str, int] = {}
        # The last ticket; tickets are numbered from 1.
        self._tickets = 0
        # Number of records in all groups, with those that have no ticket any more.
        self._records_in_groups = 0

    def __len__(self) -> int:
        return len(self._ticket_of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._ticket_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._ticket_of)

    def put(self, records: Sequence[CacheRecord], deadline_s: float) -> None:
        """Set the deadline of distinct records that have none."""
        if not records:
            return
        self._tickets += 1
        for record in records:
            record.deadline_s = deadline_s
        self._ticket_of.update(dict.fromkeys([each.uid for each in records], self._tickets))
        heapq.heappush(self._groups, (deadline_s, self._tickets, deque(records)))
        self._records_in_groups += len(records)

    def remove(self, records: Sequence[CacheRecord]) -> None:
        """Remove the deadlines of records. KeyError if one has none."""
        for record in records:
            del self._ticket_of[record.uid]
        self._drop_removed()
        if self._records_in_groups > 2 * len(self._ticket_of) + ENDED_MAX:
            self._compact()

    def first(self) -> CacheRecord | None:
        """Return the record with the first deadline without removing it; None if there is none."""
        return self._groups[0][2][0] if self._groups else None

    def _drop_removed(self) -> None:
        groups, ticket_of = self._groups, self._ticket_of
        while groups:
            _, ticket, records = groups[0]
            while records and ticket_of.get(records[0].uid) != ticket:
                records.popleft()
                self._records_in_groups -= 1
            if records:
                return
            heapq.heappop(groups)

    def _compact(self) -> None:
        """Drop all records without a ticket: the first group may wait for long."""
        groups: list[_Group] = []
        for deadline_s, ticket, records in self._groups:
            waiting = deque(each for each in records if self._ticket_of.get(each.uid) == ticket)
            if waiting:
                groups.append((deadline_s, ticket, waiting))
        heapq.heapify(groups)
        self._groups, self._records_in_groups = groups, len(self._ticket_of)
