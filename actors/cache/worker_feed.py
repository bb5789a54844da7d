"""WorkerFeed: buffers the changes for one worker, so that one message has many of them.

    change ──► the worker receives requests now, or nodes are added ──► sent at once
           └── the worker is idle ──► waits, `WAIT_S` at most ──► sent with the next changes

A message costs the cache more than the changes in it: with four workers and one message for each
change, its process needed a third more time (SchedulingBasic). A delay changes no decision: none
depends on the state of a worker. Changes for several workers are joined once (`Joiner`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain

from roadstead.actors.messages import DeltaBatch

WAIT_S = 1.0
"""Longest wait of a change. After a pause without requests, the first one may be answered by a
worker whose table is that old."""

MAX_WAITING = 16_384
"""Number of waiting changes at which all are sent, so that a message is not too large."""


class WorkerFeed:
    """Buffer of one worker's changes. send: sends one batch, without waiting for the answer.

    join: joins several batches into one. receives_requests: whether schedulers send requests to the
    worker now, according to its last answer.
    """

    def __init__(
        self, send: Callable[[DeltaBatch], None], join: Callable[[Sequence[DeltaBatch]], DeltaBatch]
    ) -> None:
        self._send, self._join = send, join
        self._waiting: list[DeltaBatch] = []
        self._changes_waiting = 0
        self._timer: asyncio.TimerHandle | None = None
        self.receives_requests = False

    def add(self, batch: DeltaBatch) -> None:
        """Send or buffer the next changes."""
        if batch.new_nodes:
            # Nodes are added when a cluster is loaded: the batches are large, and each takes a
            # worker long to apply.
            self._send_waiting()
            self._send(batch)
            return
        self._waiting.append(batch)
        self._changes_waiting += batch.count
        if self.receives_requests or self._changes_waiting >= MAX_WAITING:
            self._send_waiting()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WAIT_S, self._send_waiting)

    def drop(self) -> None:
        """Drop waiting changes: the worker receives them with a fill, or not at all."""
        self._waiting.clear()
        self._changes_waiting = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send_waiting(self) -> None:
        waiting = self._waiting[:]
        self.drop()
        if waiting:
            self._send(self._join(waiting))


class Joiner:
    """Join of batches of one stream, cached for the next worker."""

    def __init__(self) -> None:
        self._last: DeltaBatch | None = None

    def __call__(self, batches: Sequence[DeltaBatch]) -> DeltaBatch:
        # A stream uses each number once: batches with the same numbers have the same changes.
        numbers = batches[0].first_seq, sum(each.count for each in batches)
        last = self._last
        if last is None or (last.first_seq, last.count) != numbers:
            last = self._last = join_batches(batches)
        return last


def join_batches(batches: Sequence[DeltaBatch]) -> DeltaBatch:
    """Join consecutive batches into one; none of them may have new nodes (`new_nodes`)."""
    first, *others = batches
    if not others:
        return first

    def empty_names(batch: DeltaBatch) -> tuple[str, ...]:
        return ("",) * len(batch.kinds)

    # By packed facts: the index in the joined batch.
    classes: dict[bytes, int] = {}
    pods: list[int] = []
    started_s: list[tuple[int, float]] = []
    next_seq = first.first_seq
    for batch in batches:
        assert batch.first_seq == next_seq, f"change {next_seq} is missing"
        assert not batch.new_nodes, "new nodes are sent in batches of their own"
        next_seq += batch.count
        indices = [classes.setdefault(each, len(classes)) for each in batch.classes]
        started_s += [(len(pods) + index, at_s) for index, at_s in batch.started_s]
        pods += [indices[pod] if pod >= 0 else pod for pod in batch.pods]
    return DeltaBatch(
        first.first_seq,
        kinds=tuple(chain.from_iterable(each.kinds for each in batches)),
        names=tuple(chain.from_iterable(each.names for each in batches)),
        pods=tuple(pods),
        classes=tuple(classes),
        nodes=tuple(chain.from_iterable(each.nodes for each in batches)),
        arrivals=tuple(chain.from_iterable(each.arrivals for each in batches)),
        changes=tuple(chain.from_iterable(each.changes for each in batches)),
        uids=tuple(chain.from_iterable(each.uids or empty_names(each) for each in batches)),
        keys=tuple(chain.from_iterable(each.keys or empty_names(each) for each in batches)),
        started_s=tuple(started_s),
        versions=tuple(chain.from_iterable(each.versions for each in batches)),
        partitions=tuple(chain.from_iterable(each.partitions for each in batches)),
    )
