"""The outcome of a run in the folder of its journal, from which its output can be written again.

The journal's records say which pods are bound. The rest of an output (why pods are pending, who was
evicted for whom, durations) is only in the actors of the run; before they end the binder writes it
to the file `outcome`, and the journal's last record contains its digest.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from roadstead.journal.headers import OUTCOME
from roadstead.protocol.codec import CodecError, DecodeLimits, from_wire, pack, to_wire, unpack
from roadstead.report.concurrency import Concurrency
from roadstead.report.result import ClaimedDevice, PendingPod, PlacedPod, PreemptedPod
from roadstead.run import RunOutcome

_MAGIC = b"RSOUTCM2"
_LIMITS = DecodeLimits(max_bytes=1 << 32, max_items=1 << 31)


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why pods are pending; many pods share one."""

    message: str
    reasons: tuple[tuple[str, int], ...]
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _StoredOutcome:
    """Content of the file. placed: number of bound pods. pending: (key, UID, index of cause)."""

    placed: int
    causes: tuple[_Cause, ...]
    pending: tuple[tuple[str, str, int], ...]
    preempted: tuple[PreemptedPod, ...]
    devices: tuple[ClaimedDevice, ...]
    scheduling_s: float
    timings_s: dict[str, float]
    concurrency: Concurrency | None


def encode_outcome(outcome: RunOutcome) -> tuple[bytes, str]:
    """Return an outcome as the content of its file, with the digest of that."""
    data = _MAGIC + pack(to_wire(_stored(outcome)))
    return data, hashlib.sha256(data).hexdigest()


def _stored(outcome: RunOutcome) -> _StoredOutcome:
    numbers: dict[_Cause, int] = {}
    pending = tuple(
        (
            each.pod,
            each.uid,
            numbers.setdefault(_Cause(each.message, each.reasons, each.plugins), len(numbers)),
        )
        for each in outcome.pending
    )
    return _StoredOutcome(
        len(outcome.placements),
        tuple(numbers),
        pending,
        outcome.preempted,
        outcome.devices,
        outcome.scheduling_s,
        dict(outcome.timings_s),
        outcome.concurrency,
    )


def read_outcome(folder: Path, digest: str, placements: tuple[PlacedPod, ...]) -> RunOutcome | None:
    """Read the outcome with a digest; None if it is missing, damaged, or of another run.

    placements: from the journal.
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
        PendingPod(key, uid, causes[n].message, causes[n].reasons, causes[n].plugins)
        for key, uid, n in stored.pending
    )
    return RunOutcome(
        placements,
        pending,
        stored.scheduling_s,
        stored.timings_s,
        stored.preempted,
        stored.devices,
        stored.concurrency,
    )
