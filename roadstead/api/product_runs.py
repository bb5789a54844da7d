"""Runs of the product's own actors in a sweep (`roadstead stress`), each with its metrics.

A study is what a sweep runs: it has parameters, such as the number of schedulers, and metrics
(`roadstead.lab.studies`). The study of these runs has one metric more, `score_regret`: by how much
the score of the best node exceeded that of the chosen node, on average.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

from roadstead.api.launcher import open_launcher
from roadstead.config.settings import Settings, load_settings
from roadstead.facts.cluster import ClusterFacts
from roadstead.inputs.input_wire import decode_inputs
from roadstead.inputs.loaded import load_generated
from roadstead.lab.lab_run import LabRun, LabSetup, Recheck
from roadstead.lab.regret import Placed, score_regret
from roadstead.lab.scenarios import constraint_heavy, jobs
from roadstead.lab.studies import Metrics, Values
from roadstead.nodes.pod_class import PodClasses
from roadstead.run import Launcher, RunInputs, RunPlan, build_profiles
from roadstead.sweeps.functions import RunTask
from roadstead.sweeps.tasks import Plain

DEFAULT_FLEET: Final = "fleet"
"""Workload of the generated fleet of `roadstead demo`."""

SCENARIOS: Final = {"constraint-heavy": constraint_heavy, "jobs": jobs}
"""Other workloads → function that generates nodes and pending pods."""

Inputs = tuple[RunInputs, ClusterFacts]


def product_runs(shared: Mapping[str, Plain]) -> RunTask:
    """Return the function of one run of a sweep over the product, for `roadstead.sweeps`.

    Keys of `shared`, which msgpack encodes (`Plain`), as it does tasks and results:
        engine: virtual, inline or ray.
        settings: sections of the settings of every run.
        inputs: of the user (`encode_inputs`); None to generate those of a scenario.
    Keys of a task:
        values: of the study's parameters, by name.
        seed: of the run.
        journal: folder of the journal; "" to delete it after the run.
    The result of a task is the metrics of its run.
    """
    encoded = shared["inputs"]
    inputs = None if encoded is None else decode_inputs(encoded)
    sections = cast("Mapping[str, object]", shared["settings"])
    return _ProductRuns(str(shared["engine"]), sections, inputs, open_launcher())


@dataclass(slots=True)
class _ProductRuns:
    """The function of one run.

    sections: of the settings. inputs: of the user; None if a scenario is generated. _last_scenario:
    (workload, nodes, pods, seed) of the previous run → its inputs; the next run with the same key
    reuses them.
    """

    engine: str
    sections: Mapping[str, object]
    inputs: Inputs | None
    launcher: Launcher
    _last_scenario: dict[tuple[object, ...], Inputs] = field(default_factory=dict)

    def __call__(self, task: Mapping[str, Plain]) -> Plain:
        values, seed = cast("Values", task["values"]), cast("int", task["seed"])
        return dict(self._metrics(values, seed, str(task["journal"])))

    def _metrics(self, values: Values, seed: int, journal: str) -> Metrics:
        inputs, cluster = self.inputs or self._scenario(values, seed)
        lab = LabSetup(_recheck(values), is_virtual=self.engine == "virtual")
        with _journal(journal) as folder:
            settings = settings_of(values, seed, self.engine, folder, self.sections)
            plan = RunPlan(settings, cluster=cluster)
            lab_run = self.launcher.run_lab(inputs, plan, lab)
            violations, binds = _violations(folder)
        return {
            **lab_run.metrics(int(values["schedulers"])),
            "violations": float(violations),
            "violation_share": violations / binds if binds else 0.0,
            "score_regret": _regret(inputs, plan, lab_run),
            "utilization": _utilization(inputs, lab_run),
        }

    def _scenario(self, values: Values, seed: int) -> Inputs:
        workload, nodes, pods = str(values["workload"]), int(values["nodes"]), int(values["pods"])
        key = (workload, nodes, pods, seed)
        if key not in self._last_scenario:
            self._last_scenario.clear()
            self._last_scenario[key] = _generate(workload, nodes, pods, seed)
        return self._last_scenario[key]


def _generate(workload: str, nodes: int, pods: int, seed: int) -> Inputs:
    if workload == DEFAULT_FLEET:
        # Digests identify a user's inputs in results; parameters and seed determine this fleet.
        loaded = load_generated(nodes, pods, seed, with_digests=False)
        return loaded.inputs, loaded.cluster
    facts, pending = SCENARIOS[workload](nodes, pods, seed)
    inputs = RunInputs(tuple(facts), (), tuple(pending))
    return inputs, ClusterFacts(namespaces=(("default", ()),))


@contextmanager
def _journal(folder: str) -> Iterator[Path]:
    """Yield the folder of a run's journal; a temporary one for "".

    An existing folder is removed: it is of an earlier start of this run, which did not finish.
    """
    if not folder:
        with tempfile.TemporaryDirectory(prefix="roadstead-stress-") as temporary:
            yield Path(temporary) / "journal"
        return
    shutil.rmtree(folder, ignore_errors=True)
    yield Path(folder)


def _recheck(values: Values) -> Recheck:
    """Return which filters the binder checks again when it commits a bind."""
    known: Mapping[str, Recheck] = {"all": "all", "node": "node", "none": "none"}
    return known[str(values["recheck"])]


def settings_of(
    values: Values,
    seed: int,
    engine: str,
    journal: Path,
    sections: Mapping[str, object] = MappingProxyType({}),
) -> Settings:
    """Return the settings of a run. Raises ConfigError if values contradict each other.

    sections: further sections of the settings, which no parameter sets.
    """
    mode, schedulers = str(values["mode"]), int(values["schedulers"])
    is_partitioned = mode == "partitioned"
    overrides: dict[str, object] = {
        "runtime": "ray" if engine == "ray" else "inline",
        "seed": seed,
        "journal": journal,
        **{name: values[name] for name in ("mode", "schedulers", "batch", "tie_break")},
        # What counts as a conflict, and whether a job's pods are bound all-or-nothing.
        **{name: values[name] for name in ("conflicts", "transaction")},
        **sections,
    }
    if is_partitioned:
        # Settings refuse fewer partitions than schedulers, but a sweep varies both independently:
        # raise the number rather than leave out the combination.
        overrides["partitions"] = max(int(values["partitions"]), schedulers, 2)
    # Mode exact always reads the current state, so settings refuse a staleness with it.
    if values["staleness_s"] and mode != "exact":
        overrides["staleness_s"] = values["staleness_s"]
    if is_partitioned:
        overrides["partition_policy"] = values["partition_policy"]
    if values["decision_job_s"] or values["decision_task_s"]:
        # Simulated decision times for each job, and for each of its tasks (Omega), which are pods.
        # Batch and service jobs get the same times.
        time = {"job_s": values["decision_job_s"], "task_s": values["decision_task_s"]}
        overrides["decision_time"] = {"batch": time, "service": time}
    return load_settings(overrides=overrides, source="stress")


def _violations(journal: Path) -> tuple[int, int]:
    """Return (number of binds that break a rule, number of binds), by the independent checker."""
    from roadstead.invariants.checker import check
    from roadstead.journal.disk import RealDisk
    from roadstead.journal.segments import Reader

    result = check(Reader(RealDisk(journal)).records())
    return len({(each.lsn, each.pod) for each in result.violations}), result.binds_checked


def _placed(inputs: RunInputs, lab_run: LabRun) -> list[Placed]:
    """Return the placed pods with the names of their nodes."""
    # By UID.
    pods = {identity.uid: (identity, facts) for identity, facts in inputs.pending}
    return [(*pods[uid], node) for uid, node in lab_run.placements]


def _regret(inputs: RunInputs, plan: RunPlan, lab_run: LabRun) -> float:
    """Return the mean difference between the scores of the best and the chosen nodes."""
    classes = PodClasses()
    profiles = build_profiles(plan, classes)
    return score_regret(inputs.nodes, inputs.running, _placed(inputs, lab_run), classes, profiles)


def _utilization(inputs: RunInputs, lab_run: LabRun) -> float:
    """Return the share of all CPU that pods request at the end."""
    total = sum(dict(node.allocatable).get("cpu", 0) for node in inputs.nodes)
    pods = [*inputs.running, *_placed(inputs, lab_run)]
    used = sum(dict(facts.requests).get("cpu", 0) for _, facts, _ in pods)
    return used / total if total else 0.0
