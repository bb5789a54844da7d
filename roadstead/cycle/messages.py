"""What schedulers and shards say to each other about classes of pods.

Sent by a scheduler, answered by a worker; every message may come twice, since nothing in it changes
the worker's state. Pods travel as classes; a class is known by its place in the request.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.framework.victims import DryRun
from roadstead.nodes.row_slice import NodeSlice, RowSlice

WireSummary = tuple[str, bytes]
"""(plugin name, its summary packed)."""


@dataclass(frozen=True, slots=True)
class WireStatus:
    """A Status as it travels."""

    code: int
    reasons: tuple[str, ...]
    plugin: str


@dataclass(frozen=True, slots=True)
class WireNarrowed:
    """A `roadstead.framework.narrowed.Narrowed` as it travels: int64[k] arrivals as bytes."""

    stays: bytes
    scores: bytes
    seen: bytes | None
    refused: tuple[tuple[WireStatus, bytes], ...]
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class ClassAsk:
    """One class to evaluate.

    facts: as bytes (see `roadstead.facts.wire`).
    filters, scores: summaries merged over all shards, or None where they are not known yet.
    narrows: the scheduler narrows what Filter leaves; narrowed: how, once it has.
    """

    facts: bytes
    filters: tuple[WireSummary, ...] | None = None
    scores: tuple[WireSummary, ...] | None = None
    narrows: bool = False
    narrowed: WireNarrowed | None = None


@dataclass(frozen=True, slots=True)
class EvaluateRequest:
    """Scheduler → worker: evaluate classes on your rows and name candidates.

    node_count: nodes over all shards. keep: rows to name per group of equal normalization.
    table_version: the worker's table must have reached it.
    """

    node_count: int
    keep: int
    table_version: int
    classes: tuple[ClassAsk, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """So many rows were refused with this status."""

    status: WireStatus
    rows: int


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """See `roadstead.cycle.class_run.RestGroup`."""

    raw: tuple[int, ...]
    rows: int
    floor: int


@dataclass(frozen=True, slots=True)
class ClassAnswer:
    """One class on one shard.

    filters, scores: what this shard contributes, where the request did not know the merged ones.
    waits_for: "" if the class is done, else "filters" or "scores": ask again with them merged;
        "narrowing": ask again with what stays of `feasible`.
    unsupported: (plugin, field) if a plugin that is not there yet would be needed.
    error: text of a failed PreScore or Score, which upstream runs where rows are feasible.
    failure: text of a failed PreFilter, or summary for it.
    fixed_codes, fixed_positions: int32[candidate], answers of plugins that read NODE facts only;
        codes point into `statuses`.
    fixed_scores: per score plugin int64[candidate]; b"" where it was skipped or reads more.
    groups, refused: the rows that are no candidates.
    feasible, considered: arrivals of what Filter and PreFilter leave (None: all), to be narrowed.
    """

    filters: tuple[WireSummary, ...] = ()
    scores: tuple[WireSummary, ...] = ()
    waits_for: str = ""
    unsupported: tuple[str, str] | None = None
    error: str = ""
    failure: str = ""
    statuses: tuple[WireStatus, ...] = ()
    fixed_codes: bytes = b""
    fixed_positions: bytes = b""
    fixed_scores: tuple[bytes, ...] = ()
    groups: tuple[GroupAnswer, ...] = ()
    refused: tuple[Refusal, ...] = ()
    feasible: bytes = b""
    considered: bytes | None = None


@dataclass(frozen=True, slots=True)
class ShardAnswer:
    """Worker → scheduler. `rows` or `nodes` are the candidates, once no class waits.

    node_count: all nodes of this shard. lowest_priority: of all pods on them; None for no pods.
    nominations: (node, facts as bytes, how many pods) of the candidates. row_versions: of the
    candidates, where they matter (see `roadstead.binder.rows`).
    """

    table_version: int
    node_count: int
    classes: tuple[ClassAnswer, ...]
    rows: RowSlice | None = None
    nodes: NodeSlice | None = None
    lowest_priority: int | None = None
    nominations: tuple[tuple[str, bytes, int], ...] = ()
    row_versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ShardView:
    """Worker → whoever explains a pod: everything about one class on this shard's rows.

    codes: int32[row] into `statuses` (see `roadstead.framework.evaluation`).
    raw: per score plugin int64[row], b"" where it was skipped or did not run.
    """

    names: tuple[str, ...]
    pre_filter: WireStatus
    pre_filter_skipped: tuple[str, ...]
    node_names: tuple[str, ...] | None
    narrowed_by: tuple[str, ...]
    unreached: tuple[str, ...]
    statuses: tuple[WireStatus, ...]
    codes: bytes
    pre_score: WireStatus
    pre_score_skipped: tuple[str, ...]
    raw: tuple[bytes, ...]
    lowest_priority: int | None


@dataclass(frozen=True, slots=True)
class DryRunAsk:
    """Scheduler → worker: try preemption for one class on your rows. Coming twice is no harm.

    ask: the class with its summaries merged. node_count, table_version: as in EvaluateRequest.
    The answer is a `Tried`.
    """

    node_count: int
    table_version: int
    ask: ClassAsk
    dry_run: DryRun


@dataclass(frozen=True, slots=True)
class ScoreAsk:
    """Scheduler → worker: what users' plugins say of classes on your rows. Twice is no harm.

    seq: the number of the last change that the scheduler's table holds. node_count: of the cluster.
    classes: as bytes (see `roadstead.facts.wire`).
    """

    seq: int
    node_count: int
    classes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PluginColumn:
    """What one plugin says of one class. point: Filter or Score.

    data: codes into `statuses` from 1 on (0 passes), or raw scores: a value for each row in order
    of arrival, integers of `size` bytes each; of size 0 it is one value for all, in 8 bytes.
    """

    plugin: str
    point: str
    size: int
    data: bytes
    statuses: tuple[WireStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreAnswer:
    """Worker → scheduler, of the table after change `seq`.

    rows, digest: which rows these are (see `roadstead.cycle.scorer.digest_of`).
    touched: int64[k], arrivals of rows that changed since the ask's `seq`; None where unknown.
    classes: no column of a plugin that said Skip, or failed. spent_s: with the plugins.
    """

    seq: int
    rows: int
    digest: int
    touched: bytes | None
    classes: tuple[tuple[PluginColumn, ...], ...]
    spent_s: float = 0.0
