"""What-if questions, for the command line and the Python API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roadstead.facts.node import NodeFacts
from roadstead.inputs.find_nodes import find_nodes
from roadstead.inputs.loaded import Loaded
from roadstead.inputs.not_created import find_created
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.drain_result import DrainResult
from roadstead.report.fit_result import FitResult
from roadstead.report.grow_result import GrowResult, ShrinkResult
from roadstead.run import RunPlan
from roadstead.whatif.sandbox import OnProgress

SPECS_MAX: Final = 100
"""Maximum number of pods and workloads that `fit` counts together."""

RATIO_MAX: Final = 1_000
FIELD_OF_SPECS: Final = "POD_OR_WORKLOAD"
"""Name of the argument in the help and in errors."""


@dataclass(frozen=True, slots=True)
class FitLimits:
    """Limits of a `fit`; None for the default.

    is_total: count the given pending pods of the specs, too. max_changes: how many changes of the
    pod that would make it fit are reported; 0 for none.
    """

    is_total: bool = False
    max_replicas: int | None = None
    max_changes: int | None = None


@dataclass(frozen=True, slots=True)
class ChosenNodes:
    """Nodes by name (or zone), zone, and label selector; without any, all nodes."""

    names: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    selector: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.names or self.zones or self.selector)

    def of(self, loaded: Loaded) -> tuple[NodeFacts, ...]:
        """Return the chosen nodes. Raises InputError."""
        nodes = loaded.inputs.nodes
        if self.is_empty:
            return tuple(nodes)
        return find_nodes(nodes, self.names, self.zones, self.selector)


def fit_pods(
    loaded: Loaded, plan: RunPlan, specs: Sequence[str], limits: FitLimits, progress: OnProgress
) -> FitResult:
    """Count how many more replicas fit. specs: names as for `explain`, each with `=RATIO`.

    Raises InputError for a name or ratio that is wrong, RoadsteadError if scheduling fails.
    """
    from roadstead.whatif.fit import CHANGES_SHOWN, REPLICAS_MAX, CountedSpec, FitQuestion, fit

    if not 1 <= len(specs) <= SPECS_MAX:
        rule = f"must name 1 to {SPECS_MAX} pods or workloads"
        raise InputError(rule, field=FIELD_OF_SPECS, value=cut_short(tuple(specs)))
    named = [(each, *_split_ratio(each)) for each in specs]
    counted = tuple(
        CountedSpec(spec, find_created(loaded, name).pod, ratio) for spec, name, ratio in named
    )
    replicas, changes = limits.max_replicas, limits.max_changes
    question = FitQuestion(
        counted,
        limits.is_total,
        REPLICAS_MAX if replicas is None else replicas,
        CHANGES_SHOWN if changes is None else changes,
    )
    return fit(loaded.inputs, plan, question, loaded.source, progress)


def _split_ratio(spec: str) -> tuple[str, int]:
    """Split `NAME=RATIO`; the ratio is 1 if it is not given."""
    name, equals, text = spec.partition("=")
    if not equals:
        return name, 1
    if not re.fullmatch("[0-9]{1,4}", text) or not 1 <= int(text) <= RATIO_MAX:
        rule = f"must end with a ratio from 1 to {RATIO_MAX:,}, as web=3"
        raise InputError(rule, field=FIELD_OF_SPECS, value=cut_short(spec))
    return name, int(text)


def grow_nodes(
    loaded: Loaded, plan: RunPlan, catalog: Path, progress: OnProgress, max_runs: int | None = None
) -> GrowResult:
    """Search the nodes of a catalogue with which every pod is placed. Raises InputError.

    max_runs: of the search; None for the default.
    """
    from roadstead.inputs.node_catalog import read_catalog
    from roadstead.whatif.grow import RUNS_MAX, grow

    shapes = read_catalog(catalog)
    limit = RUNS_MAX if max_runs is None else max_runs
    return grow(loaded.inputs, plan, shapes, loaded.source, progress, limit)


def shrink_nodes(
    loaded: Loaded,
    plan: RunPlan,
    chosen: ChosenNodes,
    progress: OnProgress,
    max_trials: int | None = None,
) -> ShrinkResult:
    """Search the chosen nodes for those that can be removed. Raises InputError.

    max_trials: number of nodes to try; None for the default.
    """
    from roadstead.whatif.shrink import TRIALS_MAX, shrink

    nodes = chosen.of(loaded)
    limit = TRIALS_MAX if max_trials is None else max_trials
    return shrink(loaded.inputs, plan, nodes, loaded.source, progress, limit)


def drain_nodes(
    loaded: Loaded,
    plan: RunPlan,
    chosen: ChosenNodes,
    progress: OnProgress,
    *,
    force: bool,
    delete_emptydir_data: bool,
) -> DrainResult:
    """Drain the chosen nodes, with the flags of `kubectl drain`. Raises InputError."""
    from roadstead.whatif.drain import drain
    from roadstead.whatif.evictions import EvictionRules

    if chosen.is_empty:
        raise InputError("no node is chosen: name nodes, zones or a selector", field="NODE")
    nodes = chosen.of(loaded)
    rules = EvictionRules(force, delete_emptydir_data, loaded.local_storage)
    return drain(loaded.inputs, plan, nodes, rules, loaded.source, progress)
