"""The study of the product: its actors on a scenario or on the user's input."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from roadstead.cli.options import SourceOptions
from roadstead.cli.session import Session
from roadstead.cli.stress_plan import PRODUCT, Asked
from roadstead.config.settings import Settings, load_settings
from roadstead.facts.cluster import ClusterFacts
from roadstead.inputs.loaded import Loaded, load_generated
from roadstead.lab.lab_run import LabRun, LabSetup, Recheck
from roadstead.lab.regret import Placed, score_regret
from roadstead.lab.scenarios import constraint_heavy, jobs
from roadstead.lab.studies import (
    CONFLICTS,
    DAY_S,
    TRANSACTION,
    Metrics,
    Parameter,
    Study,
    Value,
    Values,
)
from roadstead.nodes.pod_class import PodClasses
from roadstead.report.result import InputDigest
from roadstead.run import RunInputs, RunPlan, build_profiles

INPUT: Final = "input"
DEFAULT_FLEET: Final = "fleet"

SCENARIOS: Final = {"constraint-heavy": constraint_heavy, "jobs": jobs}

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


def product_study(
    session: Session, asked: Asked, source: SourceOptions, output: Path | None
) -> Study:
    """Make the study, on the user's input or on scenarios. Raises InputError."""
    has_input = source.trace is not None or bool(source.cluster)
    loaded = None
    if has_input:
        from roadstead.cli.sources import load

        loaded = load(source, with_digests=True)
    runs = ProductRuns(session, asked.engine, loaded, output)
    workload = Parameter(
        "workload",
        INPUT if has_input else DEFAULT_FLEET,
        "workload",
        choices=(INPUT,) if has_input else (DEFAULT_FLEET, *SCENARIOS),
    )
    text = f"the product's actors, engine {asked.engine}"
    parameters = PARAMETERS if loaded is None else sized(loaded)
    has_exact = "exact" in map(str, asked.vary.get("mode", ()))
    first = _first_values(asked)
    return Study(
        PRODUCT,
        text,
        (workload, *parameters),
        runs,
        METRICS,
        lambda values: is_possible(has_exact, values) and not is_repeated(first, values),
    )


def sized(loaded: Loaded) -> tuple[Parameter, ...]:
    """The parameters for the user's input: nodes and pods are fixed to its counts."""
    counts = {"nodes": len(loaded.inputs.nodes), "pods": len(loaded.inputs.pending)}
    return tuple(
        replace(each, default=count, low=count, high=count) if count is not None else each
        for each, count in ((each, counts.get(each.name)) for each in PARAMETERS)
    )


def is_possible(has_exact: bool, values: Values) -> bool:
    """Whether a combination is to be run; the mode `exact` has one scheduler.

    has_exact: `exact` is swept, too, so a single scheduler of another mode would repeat it.
    """
    is_alone = values["schedulers"] == 1
    return is_alone if values["mode"] == "exact" else not (is_alone and has_exact)


def is_repeated(first: Values, values: Values) -> bool:
    """Whether a combination differs from another one only in parameters that its mode does not use.

    first: the first value of each axis; for an unused parameter, only this value is run.
    """
    mode = values["mode"]
    unused = [
        *(("partitions", "partition_policy") if mode != "partitioned" else ()),
        *(("staleness_s",) if mode == "exact" else ()),
    ]
    return any(name in first and values[name] != first[name] for name in unused)


def _first_values(asked: Asked) -> dict[str, Value]:
    known = {each.name: each for each in PARAMETERS}
    return {
        name: known[name].parse(given[0], asked.source)
        for name, given in asked.vary.items()
        if name in known and given
    }


@dataclass(slots=True)
class ProductRuns:
    """Runs of the product, one after another; journals are kept in `output`, if given."""

    session: Session
    engine: str
    loaded: Loaded | None
    output: Path | None
    _made: int = 0
    _checked: int = 0
    _known: dict[tuple[object, ...], Loaded] = field(default_factory=dict)

    def __call__(self, values: Values, seed: int) -> Metrics:
        """Run once, and return the figures."""
        loaded = self._workload(values, seed)
        lab = LabSetup(_recheck(values), self.engine == "virtual")
        with self._journal(lab) as journal:
            plan = RunPlan(settings_of(values, seed, self.engine, journal), cluster=loaded.cluster)
            lab_run = self.session.launcher().run_lab(loaded.inputs, plan, lab)
            violations, binds = _violations(journal)
        return {
            **lab_run.metrics(int(values["schedulers"])),
            "violations": float(violations),
            "violation_share": violations / binds if binds else 0.0,
            "score_regret": _regret(loaded.inputs, plan, lab_run),
            "utilization": _utilization(loaded.inputs, lab_run),
        }

    @property
    def digests(self) -> tuple[InputDigest, ...]:
        """Digests of the user's inputs; none for a scenario, which its seed generates."""
        return self.loaded.digests if self.loaded is not None else ()

    def _workload(self, values: Values, seed: int) -> Loaded:
        if self.loaded is not None:
            return self.loaded
        kind, nodes, pods = str(values["workload"]), int(values["nodes"]), int(values["pods"])
        key = (kind, nodes, pods, seed)
        if key not in self._known:
            self._known.clear()
            self._known[key] = _scenario(kind, nodes, pods, seed)
        return self._known[key]

    @contextmanager
    def _journal(self, lab: LabSetup) -> Iterator[Path]:
        """Yield the place of a run's journal: `output/journal` for the first run with all checks.

        Other runs have numbered folders. Without an output directory, the journal is deleted.
        """
        self._made += 1
        if self.output is None:
            with tempfile.TemporaryDirectory(prefix="roadstead-stress-") as temporary:
                yield Path(temporary) / "journal"
            return
        is_shown = lab.recheck == "all" and not self._checked
        self._checked += is_shown
        folder = self.output if is_shown else self.output / "runs" / f"{self._made:03}"
        yield folder / "journal"


def _scenario(kind: str, nodes: int, pods: int, seed: int) -> Loaded:
    if kind == DEFAULT_FLEET:
        return load_generated(nodes, pods, seed, with_digests=False)
    facts, pending = SCENARIOS[kind](nodes, pods, seed)
    inputs = RunInputs(tuple(facts), (), tuple(pending))
    return Loaded(f"{kind}, seed {seed}", inputs, ClusterFacts(namespaces=(("default", ()),)))


def _recheck(values: Values) -> Recheck:
    found: Mapping[str, Recheck] = {"all": "all", "node": "node", "none": "none"}
    return found[str(values["recheck"])]


def settings_of(values: Values, seed: int, engine: str, journal: Path) -> Settings:
    """The settings of a run. Raises ConfigError if values contradict each other."""
    mode, schedulers = str(values["mode"]), int(values["schedulers"])
    is_partitioned = mode == "partitioned"
    given: dict[str, object] = {
        "runtime": "ray" if engine == "ray" else "inline",
        "seed": seed,
        "journal": journal,
        **{name: values[name] for name in ("mode", "schedulers", "batch", "tie_break")},
        **{name: values[name] for name in ("conflicts", "transaction")},
    }
    if is_partitioned:
        given["partitions"] = max(int(values["partitions"]), schedulers, 2)
    if values["staleness_s"] and mode != "exact":
        given["staleness_s"] = values["staleness_s"]
    if is_partitioned:
        given["partition_policy"] = values["partition_policy"]
    if values["decision_job_s"] or values["decision_task_s"]:
        time = {"job_s": values["decision_job_s"], "task_s": values["decision_task_s"]}
        given["decision_time"] = {"batch": time, "service": time}
    return load_settings(overrides=given, source="stress")


def _violations(journal: Path) -> tuple[int, int]:
    """(binds that break a rule, binds checked), by the independent checker."""
    from roadstead.invariants.checker import check
    from roadstead.journal.disk import RealDisk
    from roadstead.journal.segments import Reader

    result = check(Reader(RealDisk(journal)).records())
    return len({(each.lsn, each.pod) for each in result.violations}), result.binds_checked


def _placed(inputs: RunInputs, lab_run: LabRun) -> list[Placed]:
    pods = {identity.uid: (identity, facts) for identity, facts in inputs.pending}
    return [(*pods[uid], node) for uid, node in lab_run.placements]


def _regret(inputs: RunInputs, plan: RunPlan, lab_run: LabRun) -> float:
    classes = PodClasses()
    profiles = build_profiles(plan, classes)
    return score_regret(inputs.nodes, inputs.running, _placed(inputs, lab_run), classes, profiles)


def _utilization(inputs: RunInputs, lab_run: LabRun) -> float:
    """The share of all CPU that pods request at the end."""
    total = sum(dict(node.allocatable).get("cpu", 0) for node in inputs.nodes)
    pods = [*inputs.running, *_placed(inputs, lab_run)]
    used = sum(dict(facts.requests).get("cpu", 0) for _, facts, _ in pods)
    return used / total if total else 0.0
