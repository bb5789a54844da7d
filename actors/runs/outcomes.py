"""The outcome of a run as a file next to its journal, from which a resumed run writes its output.

The journal's records say which pods are bound. All else of an output (why pods are pending, which
were evicted for which, durations) is in the memory of the actors only; before they end, the binder
writes it to the file `outcome`, and the journal's last record contains the digest of this file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from roadstead.journal.headers import OUTCOME
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.plain_data import CodecError, DecodeLimits, pack, unpack
from roadstead.report.concurrency import Concurrency
from roadstead.report.ray_nodes import RayNodeUse
from roadstead.report.result import ClaimedDevice, PendingPod, PlacedPod, PreemptedPod
from roadstead.run import RunOutcome

_MAGIC = b"RSOUTCM3"
"""First bytes of the file, with the version of its format."""
_LIMITS = DecodeLimits(max_bytes=1 << 32, max_items=1 << 31)


@dataclass(frozen=True, slots=True)
class _Cause:
    """Reasons of pending pods; stored once for all pods that share them."""

    message: str
    reasons: tuple[tuple[str, int], ...]
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _StoredOutcome:
    """Content of the file. placed: number of bound pods. pending: (key, UID, index in `causes`)."""

    placed: int
    causes: tuple[_Cause, ...]
    pending: tuple[tuple[str, str, int], ...]
    preempted: tuple[PreemptedPod, ...]
    devices: tuple[ClaimedDevice, ...]
    scheduling_s: float
    timings_s: dict[str, float]
    concurrency: Concurrency | None
    ray_nodes: tuple[RayNodeUse, ...]


def encode_outcome(outcome: RunOutcome) -> tuple[bytes, str]:
    """Return the content of an outcome's file, and its SHA-256."""
    data = _MAGIC + pack(to_wire(_stored(outcome)))
    return data, hashlib.sha256(data).hexdigest()


def _stored(outcome: RunOutcome) -> _StoredOutcome:
    index_of: dict[_Cause, int] = {}
    pending = tuple(
        (
            each.pod,
            each.uid,
            index_of.setdefault(_Cause(each.message, each.reasons, each.plugins), len(index_of)),
        )
        for each in outcome.pending
    )
    return _StoredOutcome(
        placed=len(outcome.placements),
        causes=tuple(index_of),
        pending=pending,
        preempted=outcome.preempted,
        devices=outcome.devices,
        scheduling_s=outcome.scheduling_s,
        timings_s=dict(outcome.timings_s),
        concurrency=outcome.concurrency,
        ray_nodes=outcome.ray_nodes,
    )


def read_outcome(folder: Path, digest: str, placements: tuple[PlacedPod, ...]) -> RunOutcome | None:
    """Read the outcome with this digest; None if it is missing, damaged, or of another run.

    placements: those of the journal.
    """
    try:
        data = (folder / OUTCOME).read_bytes()
        if hashlib.sha256(data).hexdigest() != digest or data[: len(_MAGIC)] != _MAGIC:
            return None
        stored = from_wire(_StoredOutcome, unpack(data[len(_MAGIC) :], _LIMITS, typed=True))
    except (OSError, CodecError):
        return None
    if stored.placed != len(placements):
        return None
    causes = stored.causes
    pending = tuple(
        PendingPod(key, uid, causes[index].message, causes[index].reasons, causes[index].plugins)
        for key, uid, index in stored.pending
    )
    return RunOutcome(
        placements,
        pending=pending,
        scheduling_s=stored.scheduling_s,
        timings_s=stored.timings_s,
        preempted=stored.preempted,
        devices=stored.devices,
        concurrency=stored.concurrency,
        ray_nodes=stored.ray_nodes,
    )
