"""The study of the product, Roadstead itself: its actors on a generated fleet or the user's input.

A study is what a sweep runs: its parameters, metrics, and the combinations that make sense.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from roadstead.api.product_runs import DEFAULT_FLEET, SCENARIOS
from roadstead.cli.stress_plan import PRODUCT, SweepDefinition
from roadstead.inputs.loaded import Loaded
from roadstead.lab.studies import CONFLICTS, DAY_S, TRANSACTION, Parameter, Study, Value, Values
from roadstead.lab.sweep import Sweep
from roadstead.report.paths import JOURNAL_FOLDER

INPUT: Final = "input"
"""Value of the parameter `workload` for the user's input."""

PARAMETERS: Final = (
    Parameter("nodes", 64, "number of nodes (of a scenario)", 1, 1_000_000),
    Parameter("pods", 400, "number of pods (of a scenario)", 1, 10_000_000),
    Parameter("mode", "shared", "mode of concurrency", choices=("exact", "shared", "partitioned")),
    Parameter("schedulers", 4, "number of schedulers", 1, 256),
    Parameter("batch", 256, "batch size (pods that a scheduler leases at a time)", 1, 65_536),
    Parameter("partitions", 0, "number of partitions (0: one for each scheduler)", 0, 1024),
    CONFLICTS,
    TRANSACTION,
    Parameter("staleness_s", 0.0, "maximum age of the state (0: read for each batch)", 0.0, DAY_S),
    Parameter("decision_job_s", 0.0, "simulated decision time per job", 0.0, DAY_S),
    Parameter("decision_task_s", 0.0, "simulated decision time per pod", 0.0, DAY_S),
    Parameter(
        "partition_policy",
        "latency-first",
        "partition policy (nodes that are used first)",
        choices=("latency-first", "quality-first", "adaptive"),
    ),
    Parameter(
        "tie_break", "random", "tie break (of equally good nodes)", choices=("random", "first")
    ),
    Parameter(
        "recheck",
        "all",
        "re-check at the commit (lab only)",
        choices=("all", "node", "none"),
    ),
)

METRICS: Final = (
    "conflict_fraction",
    "violation_share",
    "pods_per_s",
    "score_regret",
    "transaction_conflict_fraction",
    "busyness",
    "wait_s",
    "retries",
    "utilization",
)
"""Metrics of a run, which `docs/conflicts.md` explains.

busyness: share of its time that a scheduler spends on decisions.
"""


def product_study(definition: SweepDefinition, loaded: Loaded | None) -> Study:
    """Make the study, on the user's input or on scenarios. Raises InputError."""
    workload = Parameter(
        "workload",
        DEFAULT_FLEET if loaded is None else INPUT,
        "workload",
        choices=(DEFAULT_FLEET, *SCENARIOS) if loaded is None else (INPUT,),
    )
    text = f"the product's actors, engine {definition.engine}"
    parameters = PARAMETERS if loaded is None else fixed_to_input(loaded)
    has_exact = "exact" in map(str, definition.vary.get("mode", ()))
    first_values = _first_values(definition)
    return Study(
        PRODUCT,
        text,
        (workload, *parameters),
        None,
        METRICS,
        lambda values: is_possible(has_exact, values) and not is_repeated(first_values, values),
    )


def fixed_to_input(loaded: Loaded) -> tuple[Parameter, ...]:
    """Return the parameters for the user's input; its numbers of nodes and pods are constants."""
    counts = {"nodes": len(loaded.inputs.nodes), "pods": len(loaded.inputs.pending)}
    return tuple(
        replace(each, default=count, low=count, high=count) if count is not None else each
        for each, count in ((each, counts.get(each.name)) for each in PARAMETERS)
    )


def is_possible(has_exact: bool, values: Values) -> bool:
    """Whether a combination is to be run; the mode `exact` has one scheduler.

    has_exact: `exact` is swept, too, so a single scheduler of another mode would repeat it.
    """
    is_single = values["schedulers"] == 1
    if values["mode"] == "exact":
        return is_single
    return not (is_single and has_exact)


def is_repeated(first_values: Values, values: Values) -> bool:
    """Whether a combination differs from another one only in parameters that its mode does not use.

    first_values: of each axis; for an unused parameter, only this value is run.
    """
    mode = values["mode"]
    unused = [
        *(("partitions", "partition_policy") if mode != "partitioned" else ()),
        *(("staleness_s",) if mode == "exact" else ()),
    ]
    return any(name in first_values and values[name] != first_values[name] for name in unused)


def _first_values(definition: SweepDefinition) -> dict[str, Value]:
    """Return the first value of each swept parameter."""
    known = {each.name: each for each in PARAMETERS}
    return {
        name: known[name].parse(values[0], definition.source)
        for name, values in definition.vary.items()
        if name in known and values
    }


def journals_of(sweep: Sweep, output: Path | None) -> list[str]:
    """Return the folder of each run's journal, "" for one that is deleted after the run.

    `output/journal` for the first run whose binder makes all checks, so that `roadstead check`
    finds it; the others have numbered folders.
    """
    runs = sweep.runs()
    if output is None:
        return [""] * len(runs)
    with_all_checks = [
        index for index, (values, _) in enumerate(runs) if values["recheck"] == "all"
    ]
    folders = [output / "runs" / f"{index + 1:03}" for index in range(len(runs))]
    for first in with_all_checks[:1]:
        folders[first] = output
    return [str(folder.resolve() / JOURNAL_FOLDER) for folder in folders]
