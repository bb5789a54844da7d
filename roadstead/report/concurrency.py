"""Figures of concurrent schedulers: conflicts, retries, and busyness."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass

from roadstead.report.json_value import Json

CONFLICTS = frozenset({"constraint", "version", "transaction", "unknown_node"})
"""The binder's causes of refusal (`RejectCause`) that mean that the state had changed since the
scheduler read it."""


@dataclass(frozen=True, slots=True)
class SchedulerWork:
    """One scheduler of a run.

    profile: the profile that it serves, "" for all. busyness: the share of the run spent on
    decisions, including reads of the state and simulated latency. reads: reads of the state. asked,
    bound: binds that it requested, and those that were made. refused: refused binds by the binder's
    cause. transactions: commits of all pods of one job (a gang, or the pods of one controller);
    conflicted: those of which a bind was refused. retries: pods received from the queue after an
    earlier attempt. passed_on: pods that found no node among those that the scheduler tries first
    (its partitions), and were returned for another scheduler. memory_bytes: peak memory of its
    process; 0 if it shares one.
    """

    name: str
    profile: str
    busyness: float
    reads: int
    decided: int
    asked: int
    bound: int
    transactions: int
    conflicted: int
    retries: int
    passed_on: int
    refused: dict[str, int]
    memory_bytes: int = 0

    @property
    def conflicts(self) -> int:
        """Binds that were refused because the state had changed since it was read."""
        return sum(count for cause, count in self.refused.items() if cause in CONFLICTS)


@dataclass(frozen=True, slots=True)
class Concurrency:
    """All schedulers of a run.

    mode, detection, transaction: the run's settings `mode`, `conflicts` and `transaction`.
    """

    mode: str
    detection: str
    transaction: str
    schedulers: tuple[SchedulerWork, ...]

    @property
    def is_notable(self) -> bool:
        """Whether there is more to report than one scheduler whose binds were all accepted."""
        return self.mode != "exact" or bool(self.refused)

    @property
    def refused(self) -> dict[str, int]:
        """Refused binds by cause, the most frequent first."""
        causes: Counter[str] = Counter()
        for each in self.schedulers:
            causes.update(each.refused)
        return dict(sorted(causes.items(), key=lambda item: (-item[1], item[0])))

    @property
    def asked(self) -> int:
        return sum(each.asked for each in self.schedulers)

    @property
    def conflict_fraction(self) -> float | None:
        """Conflicts per requested bind; None without requests."""
        conflicts = sum(each.conflicts for each in self.schedulers)
        return conflicts / self.asked if self.asked else None

    @property
    def conflicts_per_transaction(self) -> float | None:
        """Conflicted transactions per successful one, as in the Omega paper; None without those."""
        conflicted = sum(each.conflicted for each in self.schedulers)
        succeeded = sum(each.transactions for each in self.schedulers) - conflicted
        return conflicted / succeeded if succeeded else None

    @property
    def memory_bytes(self) -> int:
        """Peak memory of the largest scheduler process; 0 if schedulers share a process."""
        return max((each.memory_bytes for each in self.schedulers), default=0)

    @property
    def retries(self) -> int:
        return sum(each.retries for each in self.schedulers)


def concurrency_document(concurrency: Concurrency) -> dict[str, Json]:
    """The figures as JSON, for `summary.json` and `run.json`."""
    schedulers: list[Json] = [_document(each) for each in concurrency.schedulers]
    return {
        "mode": concurrency.mode,
        "conflicts": concurrency.detection,
        "transaction": concurrency.transaction,
        "asked": concurrency.asked,
        "refused": dict(concurrency.refused),
        "conflict_fraction": concurrency.conflict_fraction,
        "conflicts_per_transaction": concurrency.conflicts_per_transaction,
        "retries": concurrency.retries,
        "schedulers": schedulers,
    }


def concurrency_part(concurrency: Concurrency | None) -> dict[str, Json]:
    """The part of a document on schedulers; empty if there is nothing notable."""
    if concurrency is None or not concurrency.is_notable:
        return {}
    return {"concurrency": concurrency_document(concurrency)}


def _document(work: SchedulerWork) -> dict[str, Json]:
    document: dict[str, Json] = asdict(work) | {"busyness": round(work.busyness, 6)}
    # Last, after the numbers that every scheduler has.
    document["refused"] = document.pop("refused")
    return document
