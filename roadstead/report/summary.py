"""The summary of a run, for `summary.json` and the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roadstead.config.legacy.notes import TranslationNote
from roadstead.report.concurrency import Concurrency, concurrency_part
from roadstead.report.not_created import RefusedObjects, group_not_created
from roadstead.report.ray_nodes import RayNodeUse, ray_nodes_part
from roadstead.report.result import Json, NodeUse, PendingPod, RunResult

REASON_MAX_CHARS = 300
"""Maximum length of a reason that is the message of a whole attempt; longer ones are cut."""

_NO_NODES: Final = re.compile(r"^0/\d+ nodes are available: ")
_NAMES: Final = re.compile(
    r"""(?i)(\bpod|claim(?:\.resource\.k8s\.io)?) ("[^"]*"|[a-z0-9-]+/[a-z0-9.-]+)"""
)
"""Names of pods and claims in a message: mostly each pod has a claim of its own."""


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """One resource of one zone, or of the whole fleet; fractions are None without capacity."""

    resource: str
    allocatable: int
    before: int
    after: int

    @property
    def before_fraction(self) -> float | None:
        return self.before / self.allocatable if self.allocatable else None

    @property
    def after_fraction(self) -> float | None:
        return self.after / self.allocatable if self.allocatable else None


@dataclass(frozen=True, slots=True)
class ReasonSummary:
    """A reason for which pods are pending.

    pods: their number. nodes: for each of these pods, the number of nodes refused for the reason,
    added up; 0 if the reason concerns a whole attempt. first: the first of these pods.
    """

    reason: str
    pods: int
    nodes: int
    first: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a run. utilization: of the fleet; zones: the same by zone name.

    refusals: why objects are not created. notes: on the inputs. ray_nodes: of a joined cluster.
    """

    source: str
    placed: int
    pending: int
    nodes: int
    pods_per_s: float
    scheduling_s: float
    elapsed_s: float
    timings_s: dict[str, float]
    utilization: tuple[ResourceUse, ...]
    zones: dict[str, tuple[ResourceUse, ...]]
    reasons: tuple[ReasonSummary, ...]
    plugins: dict[str, int]
    config_notes: tuple[TranslationNote, ...] = ()
    preempted: int = 0
    concurrency: Concurrency | None = None
    refusals: tuple[RefusedObjects, ...] = ()
    notes: tuple[str, ...] = ()
    ray_nodes: tuple[RayNodeUse, ...] = ()

    @property
    def not_created(self) -> int:
        return sum(each.count for each in self.refusals)


def summarize(result: RunResult) -> Summary:
    """Compute the figures of a run. Reasons and plugins: most pods first, then by name."""
    use = result.node_use
    all_nodes = np.ones(len(use.nodes), dtype=bool)
    zone_of = np.array(use.zones, dtype=np.str_)
    zones = {zone: _use(use, zone_of == zone) for zone in sorted(set(use.zones))}
    return Summary(
        source=result.source,
        placed=len(result.placements),
        pending=len(result.pending),
        nodes=len(use.nodes),
        pods_per_s=result.pods_per_s,
        scheduling_s=result.scheduling_s,
        elapsed_s=result.elapsed_s,
        timings_s=dict(result.timings_s),
        utilization=_use(use, all_nodes),
        zones=zones,
        reasons=_reasons(result.pending),
        plugins=_most_first(plugin for pod in result.pending for plugin in set(pod.plugins)),
        config_notes=result.config_notes,
        preempted=len(result.preempted),
        concurrency=result.concurrency,
        refusals=group_not_created(result.not_created),
        notes=result.notes,
        ray_nodes=result.ray_nodes,
    )


def _use(use: NodeUse, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[ResourceUse, ...]:
    sums = [_exact_sum(column[rows]) for column in (use.allocatable, use.before, use.after)]
    return tuple(ResourceUse(*entry) for entry in zip(use.resources, *sums, strict=True))


def _exact_sum(amounts: NDArray[np.int64]) -> list[int]:
    """Sums of columns as Python integers: two nodes of 8Ei exceed an int64."""
    high, low = (amounts >> 32).sum(axis=0), (amounts & 0xFFFF_FFFF).sum(axis=0)
    return [(upper << 32) + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)]


def _reasons(pending: Iterable[PendingPod]) -> tuple[ReasonSummary, ...]:
    pods: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    first: dict[str, str] = {}
    texts: dict[str, str] = {}
    for pod in pending:
        # An attempt that failed as a whole has a message, and no reasons by node.
        of_attempt = ((_of_attempt(pod.message), 0),) if pod.message else ()
        for reason, count in pod.reasons or of_attempt:
            # Reasons that differ only in names are counted together, and reported without names.
            without_names = _NAMES.sub(r"\1 *", reason)
            is_only_text = texts.get(without_names, reason) == reason
            texts[without_names] = reason if is_only_text else without_names
            pods[without_names] += 1
            nodes[without_names] += count
            first.setdefault(without_names, pod.pod)
    order = sorted(pods, key=lambda each: (-pods[each], texts[each]))
    return tuple(ReasonSummary(texts[each], pods[each], nodes[each], first[each]) for each in order)


def _of_attempt(message: str) -> str:
    """The reason in the message of an attempt, without the number of nodes."""
    return _cut(_NO_NODES.sub("", message))


def _cut(message: str) -> str:
    return message if len(message) <= REASON_MAX_CHARS else f"{message[:REASON_MAX_CHARS]}…"


def _most_first(names: Iterable[str]) -> dict[str, int]:
    counts = Counter(names)
    return {name: counts[name] for name in sorted(counts, key=lambda name: (-counts[name], name))}


def summary_document(summary: Summary) -> dict[str, Json]:
    """The summary as a JSON document; amounts in base units (milli-CPU, bytes, counts).

    `config_notes` is present only if the configuration was an older document, `concurrency` only
    with several schedulers or a refused bind, `notes` only if there are any, `ray_nodes` only on a
    Ray cluster.
    """
    notes: list[Json] = [dict(note.document()) for note in summary.config_notes]
    return {
        "source": summary.source,
        "placed": summary.placed,
        "pending": summary.pending,
        "preempted": summary.preempted,
        "not_created": summary.not_created,
        "nodes": summary.nodes,
        "pods_per_s": round(summary.pods_per_s, 1),
        "scheduling_s": round(summary.scheduling_s, 6),
        "elapsed_s": round(summary.elapsed_s, 6),
        "timings_s": {phase: round(spent, 6) for phase, spent in summary.timings_s.items()},
        "utilization": [_use_document(use) for use in summary.utilization],
        "zones": {
            zone: [_use_document(use) for use in uses] for zone, uses in summary.zones.items()
        },
        "pending_reasons": [asdict(reason) for reason in summary.reasons],
        "pending_plugins": dict(summary.plugins),
        "not_created_reasons": [_refusals_document(each) for each in summary.refusals],
        **({"config_notes": notes} if notes else {}),
        **({"notes": list(summary.notes)} if summary.notes else {}),
        **concurrency_part(summary.concurrency),
        **ray_nodes_part(summary.ray_nodes),
    }


def _refusals_document(refusals: RefusedObjects) -> dict[str, Json]:
    first = refusals.first
    return {
        "kind": first.kind,
        "workload": first.workload,
        "count": refusals.count,
        "first": first.name,
        "source": first.source,
        "reason": first.reason,
    }


def _use_document(use: ResourceUse) -> dict[str, Json]:
    return {
        **asdict(use),
        "before_fraction": use.before_fraction,
        "after_fraction": use.after_fraction,
    }
