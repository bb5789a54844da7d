"""The workload of a scenario: sources of arrivals, and controllers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roadstead.config.scenario import distributions
from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.workload import (
    ControllerEntry,
    DaemonSetWorkload,
    DeploymentWorkload,
    JobWorkload,
    PodsWorkload,
    ReplicaSetWorkload,
    StatefulSetWorkload,
    TraceWorkload,
    WorkloadEntry,
)
from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.fleet.trace import Trace
from roadstead.protocol.names import subdomain_errors
from roadstead.protocol.objects import ObjectMeta, Pod
from roadstead.scenario.arrival_times import (
    ActiveWindow,
    ArrivalTimes,
    BurstTimes,
    DiurnalTimes,
    ListedTimes,
    PoissonTimes,
    RegularTimes,
)
from roadstead.scenario.arrivals import DrawnArrivals, PodChoice, TraceArrivals
from roadstead.scenario.columns import read_times
from roadstead.scenario.controllers import ControllerCompiler
from roadstead.scenario.durations import (
    DurationsBase,
    EmpiricalTimes,
    ExponentialTimes,
    FixedTimes,
    LognormalTimes,
    UniformTimes,
    WeibullTimes,
)
from roadstead.scenario.templates import KeyPath, Templates
from roadstead.simulator.scenario import ArrivalSource, ControllerKind, ControllerPlan
from roadstead.simulator.times import NEVER_US

PODS_MAX: Final = 1_000_000_000
"""Maximum number of pods that one source may be expected to create before the horizon."""


@dataclass(slots=True)
class WorkloadCompiler:
    """Compile the entries of the workload in order.

    trace_at: returns the trace that the key at a path names. has_groups: some configuration has a
    plugin that places the pods of a gang all or none. sources: of arrivals, compiled so far. plans:
    of controllers, compiled so far; names: (kind, namespace, name) of each. traces: number of
    entries with a trace.
    """

    file: ScenarioFile
    templates: Templates
    controllers: ControllerCompiler
    trace_at: Callable[[KeyPath, str], Trace]
    has_groups: bool
    sources: list[ArrivalSource] = field(default_factory=list)
    plans: list[ControllerPlan] = field(default_factory=list)
    names: set[tuple[ControllerKind, str, str]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    traces: int = 0

    def compile(self) -> None:
        """Compile all entries. Raises InputError."""
        for number, entry in enumerate(self.file.scenario.workload):
            at = ("workload", number)
            if isinstance(entry, TraceWorkload):
                self._add(self._trace(entry, number, at), at)
            elif isinstance(entry, PodsWorkload):
                self._add(self._pods(entry, number, at), at)
            else:
                self._controller(entry, at)

    def _add(self, source: ArrivalSource, at: KeyPath) -> None:
        _, pods = source.expected(self.file.scenario.horizon)
        if pods > PODS_MAX:
            raise self.file.error(at, f"creates more than {PODS_MAX:,} pods before the horizon")
        if not pods:
            self.notes.append(f"{source.name}: no pod arrives before the horizon.")
        self.sources.append(source)

    def _trace(self, entry: TraceWorkload, number: int, at: KeyPath) -> TraceArrivals:
        trace = _unbound(self.trace_at((*at, "trace"), entry.trace))
        self.traces += 1
        source = TraceArrivals(
            index=len(self.sources),
            name=entry.name or f"workload[{number}] trace",
            trace=trace,
            lifecycles=tuple(map(self.templates.lifecycle_of_facts, trace.pod_classes)),
            rate=entry.rate,
            sample=entry.sample,
            start_from_us=entry.start_from,
            shift_us=entry.shift,
            # Names of several traces, or of one trace that is used twice, may be equal.
            suffix="" if self.traces == 1 else f"-{number}",
        )
        if not len(trace.creation_ms):
            raise self.file.error((*at, "trace"), "has no pods")
        if not len(source.order):
            raise self.file.error((*at, "start_from"), "is after the last pod of the trace")
        return source

    def _pods(self, entry: PodsWorkload, number: int, at: KeyPath) -> DrawnArrivals:
        arrivals = entry.arrivals
        # The key by which the kind of arrivals was chosen, such as `poisson`.
        kind_keys = set(type(arrivals).model_fields) - set(distributions.ArrivalWindow.model_fields)
        choices = (
            self._choice(each.template, each.weight, each.gang, number, (*at, "pods", index))
            for index, each in enumerate(entry.pods)
        )
        until_us = NEVER_US if arrivals.until is None else arrivals.until
        return DrawnArrivals(
            index=len(self.sources),
            name=entry.name or f"workload[{number}] {min(kind_keys)}",
            times=self._times(arrivals, (*at, "arrivals")),
            window=ActiveWindow(arrivals.start, until_us, arrivals.count),
            durations=self.durations(entry.duration, (*at, "duration")),
            choices=tuple(choices),
        )

    def _choice(
        self, entry: str | dict[str, object], weight: float, gang: int, number: int, at: KeyPath
    ) -> PodChoice:
        parsed = self.templates.read((*at, "template"), entry)
        prefix = f"{parsed.name}-{number}"
        # The longest name that an arrival's pods can have (`PodChoice.pods`).
        if rules := subdomain_errors(f"{prefix}-g{PODS_MAX}-{gang}"):
            raise self.file.error((*at, "template"), f"makes names of pods: {'; '.join(rules)}")
        meta, template = parsed.manifest.metadata, parsed.template
        pod_meta = ObjectMeta(
            name=prefix,
            namespace=meta.namespace or DEFAULT_NAMESPACE,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
        )
        self.controllers.objects.namespaces.add(pod_meta.namespace)
        facts, lifecycle = self.templates.compile(
            Pod(metadata=pod_meta, spec=template.spec), parsed
        )
        is_group = gang > 1 and self.has_groups
        if gang > 1 and not is_group:
            self.notes.append(
                f"{parsed.name}: no configuration has a plugin that places gangs: the {gang:,} "
                "pods of a gang arrive at one time, and each is placed alone."
            )
        return PodChoice(prefix, facts, lifecycle, weight, gang, is_group)

    def _controller(self, entry: WorkloadEntry, at: KeyPath) -> None:
        kind, key, controller = controller_of(entry)
        where = (*at, key)
        duration = getattr(controller, "duration", None)
        durations = self.durations(duration, (*where, "duration")) if duration else None
        plan = self.controllers.plan(len(self.plans), kind, controller, where, durations)
        name = (kind, plan.namespace, plan.name)
        if name in self.names:
            problem = f"is also the name of another {kind} of the namespace {plan.namespace}"
            raise self.file.error((*where, "name"), problem, plan.name)
        self.names.add(name)
        self.plans.append(plan)

    def _times(self, entry: distributions.Arrivals, at: KeyPath) -> ArrivalTimes:
        match entry:
            case distributions.PoissonArrivals():
                return PoissonTimes(entry.poisson.per_hour)
            case distributions.RegularArrivals():
                return RegularTimes(entry.every)
            case distributions.BurstArrivals():
                return BurstTimes(entry.burst.size, entry.burst.every or 0, entry.burst.over)
            case distributions.DiurnalArrivals():
                rate = entry.diurnal
                return DiurnalTimes(rate.per_hour, rate.swing, rate.period, rate.peak)
            case distributions.FileArrivals():
                return ListedTimes(np.sort(self._column(entry.file, (*at, "file"))))

    def durations(self, entry: distributions.Duration | None, at: KeyPath) -> DurationsBase:
        """Return a distribution; pods without one run until they are deleted."""
        match entry:
            case None:
                return FixedTimes()
            case distributions.FixedDuration():
                return FixedTimes(entry.fixed)
            case distributions.ExponentialDuration():
                return ExponentialTimes(entry.exponential.mean)
            case distributions.LognormalDuration():
                return LognormalTimes(entry.lognormal.median, entry.lognormal.p99)
            case distributions.WeibullDuration():
                return WeibullTimes(entry.weibull.scale, entry.weibull.shape)
            case distributions.UniformDuration():
                return UniformTimes(entry.uniform.min, entry.uniform.max)
            case distributions.EmpiricalDuration():
                return EmpiricalTimes(self._column(entry.empirical, (*at, "empirical")))

    def _column(self, entry: distributions.FileColumn, at: KeyPath) -> NDArray[np.int64]:
        path = self.file.existing_file((*at, "path"), entry.path)
        return read_times(path, entry.column, entry.unit)


def _unbound(trace: Trace) -> Trace:
    """Return a trace whose pods have no nodes: the scheduler places them when they arrive."""
    if not any(facts.node_name for facts in trace.pod_classes):
        return trace
    classes = tuple(replace(facts, node_name="") for facts in trace.pod_classes)
    return replace(trace, pod_classes=classes)


def controller_of(entry: WorkloadEntry) -> tuple[ControllerKind, str, ControllerEntry]:
    """Return the kind of a controller, its key in the entry, and the value of the key."""
    match entry:
        case DeploymentWorkload():
            return "Deployment", "deployment", entry.deployment
        case ReplicaSetWorkload():
            return "ReplicaSet", "replicaSet", entry.replica_set
        case StatefulSetWorkload():
            return "StatefulSet", "statefulSet", entry.stateful_set
        case DaemonSetWorkload():
            return "DaemonSet", "daemonSet", entry.daemon_set
        case JobWorkload():
            return "Job", "job", entry.job
    raise AssertionError(f"{type(entry).__name__} is no entry of a controller")
