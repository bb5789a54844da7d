"""The entry of the Python API: load a cluster, schedule it, and explain its pods."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from roadstead.api import explain_steps, run_steps, what_if
from roadstead.api.config_source import Document, load_effective
from roadstead.api.explanation import PodExplanation
from roadstead.api.launcher import open_launcher
from roadstead.api.plugin_failures import failure_notes
from roadstead.api.request import ARGUMENTS, RunRequest, Runtime, check_not_both
from roadstead.api.result import Result
from roadstead.api.stopwatch import Stopwatch
from roadstead.inputs.loaded import Loaded, load_trace
from roadstead.inputs.not_created import find_created
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.drain_result import DrainResult
from roadstead.report.explain_sections import PendingReport
from roadstead.report.fit_result import FitResult
from roadstead.report.grow_result import GrowResult, ShrinkResult
from roadstead.report.result import Json, NotCreated
from roadstead.run import Progress, RunPlan

if TYPE_CHECKING:
    from roadstead.api.moment import RunMoment

Files: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"
"""Files, folders or globs."""

OnProgress: TypeAlias = Callable[[Progress], None]
"""Called with each report of progress."""


def load(
    cluster: Files = (),
    pods: Files = (),
    *,
    trace: str | os.PathLike[str] | None = None,
    trace_gpus: Literal["amount", "devices"] = "amount",
    strict: bool = False,
    lost_nodes: Literal["leave-out", "reschedule"] = "leave-out",
) -> Cluster:
    """Read manifests or a trace, as the options `--cluster`, `--pods` and `--trace` do.

    cluster: nodes, pods and other objects of the cluster. pods: pods and workloads to schedule.
    trace_gpus: whether the GPUs of the trace are amounts of nodes, or devices that pods claim.
    strict: a field of a pod that Kubernetes does not have is an error; otherwise it is left out,
    with a note. lost_nodes: whether running pods on unknown nodes are left out or become pending.

    Raises:
        InputError: a wrong path, text or object, with source, obj, field, value and rule.
    """
    cluster_paths, pod_paths = _paths(cluster), _paths(pods)
    if trace is not None:
        if cluster_paths or pod_paths:
            raise InputError("excludes cluster and pods", source=ARGUMENTS, field="trace")
        if trace_gpus not in ("amount", "devices"):
            rule = "must be amount or devices"
            raise InputError(
                rule, source=ARGUMENTS, field="trace_gpus", value=cut_short(trace_gpus)
            )
        are_devices = trace_gpus == "devices"
        return Cluster(load_trace(Path(trace), with_digests=True, gpus_are_devices=are_devices))
    if not cluster_paths:
        raise InputError("is required: it has the nodes", source=ARGUMENTS, field="cluster")
    if lost_nodes not in ("leave-out", "reschedule"):
        rule = "must be leave-out or reschedule"
        raise InputError(rule, source=ARGUMENTS, field="lost_nodes", value=cut_short(lost_nodes))
    from roadstead.inputs.manifest_inputs import load_manifests

    return Cluster(
        load_manifests(
            cluster_paths,
            pod_paths,
            with_digests=True,
            is_strict=strict,
            reschedules_lost=lost_nodes == "reschedule",
        )
    )


def load_config(
    config: Document | None = None, *, preset: str | None = None, plugin: Sequence[str] = ()
) -> dict[str, Json]:
    """Return the complete configuration, with every default, as `roadstead config` prints it.

    config: the path of a KubeSchedulerConfiguration, or its content; without config and preset,
    the default configuration. The result may be changed and passed to `Cluster.schedule`.
    Raises InputError.
    """
    check_not_both(config, preset)
    return dict(load_effective(config, preset, _plugins(plugin)).document)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Cluster:
    """Nodes and pods as they were read. A cluster never changes; each run starts from it.

    _moment: the moment of a simulated run whose fleet this cluster is; None if it was read.
    """

    _loaded: Loaded
    _moment: RunMoment | None = None

    def __repr__(self) -> str:
        inputs = self._loaded.inputs
        pods = f"{len(inputs.running):,} running pods, {len(inputs.pending):,} pending"
        return f"<Cluster {self.source}: {len(inputs.nodes):,} nodes, {pods}>"

    @property
    def source(self) -> str:
        """The paths from which the cluster was read."""
        return self._loaded.source

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what was left out of the manifests, and on what admission changed."""
        return self._loaded.notes

    @property
    def not_created(self) -> tuple[NotCreated, ...]:
        """Objects that admission refuses: kind, name, workload, source, reason."""
        return self._loaded.not_created

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(each.name for each in self._loaded.inputs.nodes)

    @property
    def running(self) -> dict[str, str]:
        """The node of each running pod, by `namespace/name`."""
        return {identity.key: node for identity, _, node in self._loaded.inputs.running}

    @property
    def pending(self) -> tuple[str, ...]:
        """The pods to schedule, `namespace/name`, in order."""
        return tuple(identity.key for identity, _ in self._loaded.inputs.pending)

    def schedule(
        self,
        *,
        config: Document | None = None,
        preset: str | None = None,
        plugin: Sequence[str] = (),
        settings: Document | None = None,
        seed: int | None = None,
        runtime: Runtime | None = None,
        progress: OnProgress | None = None,
    ) -> Result:
        """Schedule every pending pod, as `roadstead schedule` does.

        config: a KubeSchedulerConfiguration, its path or content. preset: the name of one that is
        included; it excludes config.
        plugin: your plugins, as `MODULE:CLASS` or `FILE.py`.
        settings: a `roadstead.yaml`, its path or content; seed and runtime override it.
        runtime: "inline" is this process (the default), "ray" a local Ray.
        progress: called with each `Progress` (phase, placed, pending, total, note).

        Raises:
            InputError: an argument or input that is wrong.
            RoadsteadError: the run failed.
        """
        watch, notes = Stopwatch(), list[str]()
        request = RunRequest(
            config, preset, _plugins(plugin), settings, seed, runtime, self._moment
        )
        plan, digests = request.plan(self._loaded.cluster, notes.append)
        loaded = self._loaded
        launcher = open_launcher()
        run = run_steps.schedule(launcher, loaded, plan, _with_notes(progress, notes), watch=watch)
        launcher.finish(plan)
        if plan.plugins:
            notes += failure_notes(run.pending, [*plan.user_plugins()])
        return Result(
            (*loaded.notes, *notes),
            run,
            plan,
            tuple(run_steps.reported_pods(loaded, run)),
            (*loaded.digests, *digests),
        )

    def explain(
        self,
        pod: str,
        *,
        after_run: bool = False,
        config: Document | None = None,
        preset: str | None = None,
        plugin: Sequence[str] = (),
        settings: Document | None = None,
        seed: int | None = None,
        runtime: Runtime | None = None,
        progress: OnProgress | None = None,
    ) -> PodExplanation:
        """Explain, node by node, where a pod can run and why, as `roadstead explain` does.

        pod: the name of a pod or of its workload, with or without the namespace, or the beginning
        of such a name: `web-0`, `shop/web-0`, `deploy/web`. after_run: schedule all other pending
        pods first. The other arguments and the errors are those of `schedule`.
        """
        plan_notes = list[str]()
        request = RunRequest(
            config, preset, _plugins(plugin), settings, seed, runtime, self._moment
        )
        plan, _ = request.plan(self._loaded.cluster, plan_notes.append)
        chosen = find_created(self._loaded, pod)
        notes = [*self._loaded.notes, *plan_notes, *([chosen.note] if chosen.note else [])]
        explanation = explain_steps.explain_pod(
            open_launcher(),
            self._loaded,
            plan,
            chosen.pod,
            _with_notes(progress, notes),
            after_run=after_run,
        )
        return PodExplanation(tuple(notes), explanation)

    def explain_pending(
        self,
        *,
        after_run: bool = False,
        config: Document | None = None,
        preset: str | None = None,
        plugin: Sequence[str] = (),
        settings: Document | None = None,
        seed: int | None = None,
        runtime: Runtime | None = None,
        progress: OnProgress | None = None,
    ) -> PendingReport:
        """Explain every pending pod, by workload and reason, as `explain --all-pending` does.

        after_run: schedule all of them first, and explain those that remain pending. The other
        arguments and the errors are those of `schedule`. `sections` has workload, state, reason and
        pods; `document()` is the JSON of the command.
        """
        request = RunRequest(
            config, preset, _plugins(plugin), settings, seed, runtime, self._moment
        )
        plan, _ = request.plan(self._loaded.cluster, _ignore)
        return explain_steps.explain_pending(
            open_launcher(), self._loaded, plan, progress or _ignore, after_run=after_run
        )

    def fit(
        self,
        *specs: str,
        total: bool = False,
        max_replicas: int | None = None,
        max_changes: int | None = None,
        config: Document | None = None,
        preset: str | None = None,
        plugin: Sequence[str] = (),
        settings: Document | None = None,
        seed: int | None = None,
        progress: OnProgress | None = None,
    ) -> FitResult:
        """Count how many more replicas of pods fit, as `roadstead fit` does.

        specs: pods or workloads, named as for `explain`; several are counted together, round robin,
        with a ratio as in `web=3`. total: count the pending pods of the specs, too. max_changes:
        how many changes are reported of which each would make the next replica fit; 0 for none. The
        other arguments and the errors are those of `schedule`. One scheduler in this process
        decides.
        """
        plan = self._single_scheduler_plan(config, preset, plugin, settings, seed)
        limits = what_if.FitLimits(total, max_replicas, max_changes)
        return what_if.fit_pods(self._loaded, plan, specs, limits, progress or _ignore)

    def grow(
        self,
        catalog: str | os.PathLike[str],
        *,
        max_runs: int | None = None,
        config: Document | None = None,
        preset: str | None = None,
        plugin: Sequence[str] = (),
        settings: Document | None = None,
        seed: int | None = None,
        progress: OnProgress | None = None,
    ) -> GrowResult:
        """Search the fewest or cheapest nodes with which all pods fit, as `roadstead grow` does.

        catalog: the path of a catalogue of node shapes. max_runs: scheduling runs of the search,
        by default 200. The other arguments and the errors are those of `schedule`.
        """
        plan = self._single_scheduler_plan(config, preset, plugin, settings, seed)
        path = Path(os.fspath(catalog))
        return what_if.grow_nodes(self._loaded, plan, path, progress or _ignore, max_runs)

    def shrink(
        self,
        *nodes: str,
        zone: Files = (),
        selector: str = "",
        max_runs: int | None = None,
        config: Document | None = None,
        preset: str | None = None,
        plugin: Sequence[str] = (),
        settings: Document | None = None,
        seed: int | None = None,
        progress: OnProgress | None = None,
    ) -> ShrinkResult:
        """Search the nodes that can go, as `roadstead grow --shrink` does.

        nodes, zone, selector: the nodes to consider, all nodes if none of the three is given.
        max_runs: how many nodes are tried, by default 2,000. The other arguments and the errors are
        those of `schedule`.
        """
        plan = self._single_scheduler_plan(config, preset, plugin, settings, seed)
        chosen = what_if.ChosenNodes(nodes, _paths(zone), selector)
        return what_if.shrink_nodes(self._loaded, plan, chosen, progress or _ignore, max_runs)

    def drain(
        self,
        *nodes: str,
        zone: Files = (),
        selector: str = "",
        force: bool = False,
        delete_emptydir_data: bool = False,
        config: Document | None = None,
        preset: str | None = None,
        plugin: Sequence[str] = (),
        settings: Document | None = None,
        seed: int | None = None,
        progress: OnProgress | None = None,
    ) -> DrainResult:
        """Return where the pods of nodes would go, as `roadstead drain` does.

        nodes: names of nodes, or of zones. zone: one or several. selector: as for `kubectl -l`.
        force, delete_emptydir_data: the flags of `kubectl drain`. The other arguments and the
        errors are those of `schedule`.
        """
        plan = self._single_scheduler_plan(config, preset, plugin, settings, seed)
        return what_if.drain_nodes(
            self._loaded,
            plan,
            what_if.ChosenNodes(nodes, _paths(zone), selector),
            progress or _ignore,
            force=force,
            delete_emptydir_data=delete_emptydir_data,
        )

    def _single_scheduler_plan(
        self,
        config: Document | None,
        preset: str | None,
        plugin: Sequence[str],
        settings: Document | None,
        seed: int | None,
    ) -> RunPlan:
        """Return the plan of a what-if question, which one scheduler in this process decides."""
        request = RunRequest(config, preset, _plugins(plugin), settings, seed, None, self._moment)
        return request.plan(self._loaded.cluster, _ignore)[0]


def _paths(files: Files) -> tuple[str, ...]:
    """Return the paths as a tuple; one may be given alone."""
    if isinstance(files, (str, os.PathLike)):
        return (os.fspath(files),)
    return tuple(os.fspath(each) for each in files)


def _plugins(plugin: Sequence[str]) -> tuple[str, ...]:
    """Return the plugins as a tuple; one may be given as a string."""
    return (plugin,) if isinstance(plugin, str) else tuple(plugin)


def _with_notes(progress: OnProgress | None, notes: list[str]) -> OnProgress:
    """Return a callback that collects the notes of a run and passes its progress on."""

    def on_progress(each: Progress) -> None:
        if each.note:
            notes.append(each.note)
        if progress is not None:
            progress(each)

    return on_progress


def _ignore(_: object) -> None:
    """Ignore progress: the default where the caller passes no callback."""
