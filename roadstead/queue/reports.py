"""What schedulers report to the queue of pods that were lent to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PendingNote:
    """Why a pod is pending: message, (reason, nodes), plugins."""

    uid: str
    key: str
    message: str
    reasons: tuple[tuple[str, int], ...]
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GivenBack:
    """One pod that goes back to the queue; see `roadstead.queue.Requeue`.

    freed: it was assumed on a node, where there is room again.
    """

    uid: str
    reason: str
    rejected_by: tuple[str, ...]
    nominated_node: str | None = None
    preempts: bool = False
    pending: tuple[str, ...] = ()
    freed: bool = False
