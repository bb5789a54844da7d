"""The result of `roadstead bench` as a document, and its comparison with an earlier one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeGuard

from roadstead.bench.machine import Machine
from roadstead.bench.metrics import BenchMetrics, WorkloadResult
from roadstead.bench.templates import read_text
from roadstead.protocol.errors import InputError

VERSION = 1
RESULT_MAX_BYTES = 1 << 26
MIN_NOISE = 0.02
"""Relative changes up to this count as equal, also if the runs hardly differ."""

COMPARED = {"pods_per_s": True, "latency_p50_s": False, "latency_p99_s": False, "peak_bytes": False}
"""Metric that is compared → whether higher is better."""

Json = dict[str, object]


def result_document(
    outcomes: Sequence[WorkloadResult],
    *,
    machine: Machine,
    commit: str,
    version: str,
    command: Sequence[str],
    settings: Mapping[str, object],
) -> Json:
    """All metrics as one document. With one workload, `pods_per_s` is also a top-level key."""
    results = [_result(each) for each in outcomes]
    document: Json = {
        "bench_version": VERSION,
        "version": version,
        "commit": commit,
        "machine": asdict(machine),
        "command": list(command),
        "settings": dict(settings),
        "results": results,
    }
    return document | ({"pods_per_s": results[0]["pods_per_s"]} if len(results) == 1 else {})


def _result(outcome: WorkloadResult) -> Json:
    each = outcome.median_run
    changed: Json = {
        "pods_per_s": round(each.pods_per_s, 3),
        "critical_us_per_pod": round(each.critical_us_per_pod, 3),
        "process_us_per_pod": {
            name: round(spent_us, 3) for name, spent_us in each.process_us_per_pod.items()
        },
        "kernel": {
            "pods": each.kernel.pods,
            "share": each.kernel.share,
            "reference": dict(each.kernel.reference),
        },
        "runs": [round(rate, 3) for rate in outcome.rates],
        "spread": outcome.spread,
    }
    # The name and the rate are what readers look for, so they come first.
    return {"name": each.name, "pods_per_s": each.pods_per_s, **asdict(each), **changed}


@dataclass(frozen=True, slots=True)
class MetricChange:
    """A metric before and after. metric: its name. better: None if the two are about equal."""

    workload: str
    metric: str
    before: float
    after: float
    better: bool | None

    @property
    def factor(self) -> float:
        """after / before; 0 if the metric was 0 before."""
        return self.after / self.before if self.before else 0.0


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """The result of a comparison. missing: workloads that the older result does not have.

    commit: of the older result. settings: names of the settings that differ, among those that both
    results have.
    """

    changes: tuple[MetricChange, ...]
    missing: tuple[str, ...]
    commit: str
    same_machine: bool
    settings: tuple[str, ...]


def read_result(path: Path) -> Json:
    """Read a document that `roadstead bench --json` wrote. Raises InputError for anything else."""
    try:
        found = json.loads(read_text(path, RESULT_MAX_BYTES))
    except (ValueError, RecursionError):
        raise InputError("is not JSON", source=str(path)) from None
    if not isinstance(found, dict) or found.get("bench_version") != VERSION:
        problem = f"is not what roadstead bench --json writes (want bench_version {VERSION})"
        raise InputError(problem, source=str(path))
    results = found.get("results")
    if not isinstance(results, list) or not all(map(_is_result, results)):
        raise InputError("must hold results with figures", source=str(path), field="results")
    return found


def _is_result(found: object) -> bool:
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return False
    return all(map(_is_finite_number, map(found.get, COMPARED)))


def _is_finite_number(found: object) -> TypeGuard[int | float]:
    """Whether a value of JSON is a number that a finite float can hold."""
    if not isinstance(found, (int, float)) or isinstance(found, bool):
        return False
    try:
        return math.isfinite(found)
    except OverflowError:
        return False


def compare(before: Json, after: Json) -> ResultComparison:
    """Compare workloads that are in both; changes within both spreads count as equal."""
    old = {each["name"]: each for each in _results(before)}
    changes: list[MetricChange] = []
    missing: list[str] = []
    for new in _results(after):
        old_result = old.get(new["name"])
        if old_result is None:
            missing.append(str(new["name"]))
            continue
        noise = max(MIN_NOISE, _number(old_result.get("spread")), _number(new.get("spread")))
        changes += [
            _change(str(new["name"]), name, old_result[name], new[name], noise) for name in COMPARED
        ]
    same = before.get("machine") == after.get("machine")
    commit, settings = str(before.get("commit", "")), _changed_settings(before, after)
    return ResultComparison(tuple(changes), tuple(missing), commit, same, settings)


def _changed_settings(before: Json, after: Json) -> tuple[str, ...]:
    """Return the names of the settings that both results have, with different values.

    The others do not count: another version of Roadstead may have added or removed them.
    """
    old, new = before.get("settings"), after.get("settings")
    if not isinstance(old, dict) or not isinstance(new, dict):
        return ()
    return tuple(name for name in new if name in old and old[name] != new[name])


def _results(document: Json) -> list[Json]:
    results = document["results"]
    assert isinstance(results, list)
    return results


def _number(found: object) -> float:
    return float(found) if _is_finite_number(found) else 0.0


def _change(
    workload: str, metric: str, before: object, after: object, noise: float
) -> MetricChange:
    then, now = _number(before), _number(after)
    is_same = abs(now - then) <= noise * max(abs(then), abs(now))
    better = None if is_same else (now > then) is COMPARED[metric]
    return MetricChange(workload, metric, then, now, better)


def headline(metrics: BenchMetrics) -> str:
    """One line of progress with the main results of a run."""
    return (
        f"{metrics.name}: {metrics.pods_per_s:,.0f} pods/s "
        f"({metrics.bound:,} of {metrics.pods:,} pods in {metrics.seconds:.2f} s)"
    )
