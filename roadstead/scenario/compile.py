"""Compilation of a scenario: its files are read once, and everything is checked before it runs."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from roadstead.config.files import MAX_TEXT_BYTES, read_bytes
from roadstead.config.load import load_config
from roadstead.config.presets import preset_text
from roadstead.config.reader import join_path
from roadstead.config.scenario.fleet import GeneratedFleet, ManifestFleet, TraceFleet
from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.schema import MeasuredTime
from roadstead.devices.gates import DeviceGates, gates_of
from roadstead.facts.devices import DevicesFacts, SliceFacts
from roadstead.facts.node import NodeFacts
from roadstead.fleet.gpu_devices import with_gpu_devices
from roadstead.fleet.trace import Trace
from roadstead.fleet.trace_file import read_trace
from roadstead.framework.plugin import Plugin
from roadstead.framework.registry import extension_points
from roadstead.framework.user_plugins import check_arguments
from roadstead.inputs.manifest_inputs import served_resources
from roadstead.manifests import Manifests, read_manifests
from roadstead.plugins.in_tree import in_tree_classes
from roadstead.protocol.errors import InputError
from roadstead.scenario.cluster import compile_cluster_part, manifest_nodes
from roadstead.scenario.controllers import ControllerCompiler, ControllerObjects
from roadstead.scenario.durations import FixedTimes
from roadstead.scenario.nodes import NodeCompiler
from roadstead.scenario.templates import KeyPath, Templates
from roadstead.scenario.workload_compiler import WorkloadCompiler
from roadstead.simulator.limits import MIB_BYTES
from roadstead.simulator.scenario import (
    CompiledScenario,
    ControllerTimings,
    DecisionDelay,
    Limits,
    SchedulerConfigText,
)

NO_PLUGINS: Final[Mapping[str, type[Plugin]]] = MappingProxyType({})


def compile_scenario(
    file: ScenarioFile,
    plugins: Mapping[str, type[Plugin]] = NO_PLUGINS,
    configs: Sequence[SchedulerConfigText] | None = None,
) -> CompiledScenario:
    """Compile a scenario that was read. Raises InputError with file, line, path and rule.

    plugins: those of users that configurations may name. A scenario itself names no module, because
    modules are imported. configs: in place of those of the scenario.
    """
    texts = tuple(config_texts(file) if configs is None else configs)
    return _Compilation(file, plugins, texts).plan()


def config_texts(file: ScenarioFile) -> Iterator[SchedulerConfigText]:
    """Yield the configurations of a scenario: files, then presets. InputError if one is missing."""
    chosen = file.scenario.scheduler
    for number, name in enumerate(chosen.config):
        path = file.existing_file(("scheduler", "config", number), name)
        text = read_bytes(path, MAX_TEXT_BYTES).decode(errors="replace")
        yield SchedulerConfigText(path.stem, str(path), text)
    for number, name in enumerate(chosen.preset):
        try:
            text = preset_text(name)
        except InputError as error:
            raise file.error(("scheduler", "preset", number), error.rule, name) from error
        yield SchedulerConfigText(name, f"preset {name}", text)


def manifest_paths(file: ScenarioFile) -> list[str]:
    """Return the files, folders and globs of the fleet. InputError for one that does not exist."""
    return [path for _, paths in manifest_places(file) for path in paths]


def manifest_places(file: ScenarioFile) -> Iterator[tuple[str, list[str]]]:
    """Yield (place in the document, files, folders and globs). Raises as `manifest_paths`."""
    for number, entry in enumerate(file.scenario.fleet):
        if isinstance(entry, ManifestFleet):
            at, names = ("fleet", number, "manifests"), entry.manifests
            place = join_path("", at)
            # The scenario of an earlier run is read with the copies of its files.
            if place in file.copies:
                yield place, [str(path) for path in file.copies[place]]
                continue
            paths = []
            for name in [names] if isinstance(names, str) else names:
                path = file.file(at, name)
                if not os.path.exists(path) and not set("*?[") & set(name):
                    raise file.error(at, "does not exist", name)
                paths.append(str(path))
            yield place, paths


@dataclass(slots=True)
class _Compilation:
    """The state of one compilation.

    plugins: those of users, by name. traces: by resolved path, each read once. devices: by the same
    paths, of traces whose GPUs are devices. slices: of the nodes that the fleet takes from traces.
    """

    file: ScenarioFile
    plugins: Mapping[str, type[Plugin]]
    configs: tuple[SchedulerConfigText, ...]
    traces: dict[Path, Trace] = field(default_factory=dict)
    devices: dict[Path, DevicesFacts] = field(default_factory=dict)
    slices: list[SliceFacts] = field(default_factory=list)

    def plan(self) -> CompiledScenario:
        scenario = self.file.scenario
        manifests = self._manifests()
        nodes = NodeCompiler(self.file)
        at_start = self._fleet(nodes, manifests)
        if not at_start:
            raise self.file.error(("fleet",), "has no nodes")
        # A list, since each call also checks its configuration.
        places_gangs = [self._places_gangs(each) for each in self.configs]
        templates = Templates(
            self.file,
            manifests,
            grace_us=scenario.termination_grace,
            tolerated_us=scenario.controllers.default_toleration,
            served=served_resources(manifests) if self._has_served_resources() else frozenset(),
        )
        added = ControllerObjects()
        workload = WorkloadCompiler(
            file=self.file,
            templates=templates,
            controllers=ControllerCompiler(self.file, templates, added),
            trace_at=self.trace_at,
            has_groups=any(places_gangs),
        )
        workload.compile()
        node_events, failures = nodes.events()
        namespaces = [pair for trace in self.traces.values() for pair in trace.namespaces]
        cluster = compile_cluster_part(
            manifests, added, namespaces, at_start, templates, self._trace_devices()
        )
        return CompiledScenario(
            name=scenario.metadata.name,
            nodes=at_start,
            horizon_us=scenario.horizon,
            sample_us=scenario.sample,
            start_delay_us=scenario.start_delay,
            timings=self._timings(),
            limits=Limits(
                scenario.limits.pods, scenario.limits.rows, scenario.limits.memory_mib * MIB_BYTES
            ),
            cluster=cluster.facts,
            pods=cluster.pods,
            sources=tuple(workload.sources),
            controllers=tuple(workload.plans),
            node_events=node_events,
            failures=failures,
            budgets=cluster.budgets,
            configs=self.configs,
            settings=scenario.scheduler.settings.model_dump(mode="json", exclude_unset=True),
            decision=self._decision(workload),
            seeds=tuple(scenario.seeds),
            notes=(*templates.notes, *workload.notes, *cluster.notes),
        )

    def _has_served_resources(self) -> bool:
        """Whether claims of devices are created for the extended resources that pods request.

        Such a resource is *served* by devices: a DeviceClass names it.
        """
        # Without the gate such pods have no claims, and pods without claims are decided faster.
        return self._gates().extended_resource

    def _gates(self) -> DeviceGates:
        return gates_of(self.file.scenario.scheduler.settings.feature_gates.items())

    def _manifests(self) -> Manifests:
        """Read the manifests of all entries of the fleet together, each file once."""
        paths = manifest_paths(self.file)
        return read_manifests(paths, stdin=io.BytesIO(b"")) if paths else Manifests()

    def _fleet(self, compiler: NodeCompiler, manifests: Manifests) -> tuple[NodeFacts, ...]:
        nodes: list[NodeFacts] = []
        has_manifests = False
        for number, entry in enumerate(self.file.scenario.fleet):
            at = ("fleet", number)
            if isinstance(entry, GeneratedFleet):
                nodes += compiler.generate(entry.generate, (*at, "generate"))
            elif isinstance(entry, TraceFleet):
                trace = self.trace_at((*at, "trace"), entry.trace)
                nodes += compiler.register(trace.nodes(), (*at, "trace"))
                path = self.file.existing_file((*at, "trace"), entry.trace).resolve()
                self.slices += self.devices[path].slices if path in self.devices else ()
            elif not has_manifests:
                has_manifests = True
                nodes += compiler.register(manifest_nodes(manifests), (*at, "manifests"))
        return tuple(nodes)

    def trace_at(self, at: KeyPath, name: str) -> Trace:
        """Read the trace that a path names, once. Raises InputError."""
        path = self.file.existing_file(at, name).resolve()
        if path not in self.traces:
            trace = read_trace(path)
            if self.file.scenario.trace_gpus == "devices":
                try:
                    trace, self.devices[path] = with_gpu_devices(trace)
                except InputError as error:
                    raise error.at(source=str(path)) from error
            self.traces[path] = trace
        return self.traces[path]

    def _trace_devices(self) -> DevicesFacts:
        """Return the devices of traces, for the fleet. InputError if their feature gate is off."""
        classes = {each.name: each for found in self.devices.values() for each in found.classes}
        templates = dict(pair for found in self.devices.values() for pair in found.templates)
        if templates and not self._gates().consumable_capacity:
            rule = "needs the feature gate DRAConsumableCapacity (scheduler.settings.featureGates)"
            raise self.file.error(("trace_gpus",), rule, "devices")
        return DevicesFacts(
            slices=tuple(self.slices),
            classes=tuple(classes.values()),
            templates=tuple(templates.items()),
        )

    def _places_gangs(self, config: SchedulerConfigText) -> bool:
        """Check a configuration; return whether it has a Permit plugin that places gangs.

        A gang is a number of pods of which all are placed, or none.
        """
        points = {name: extension_points(each) for name, each in self.plugins.items()}
        loaded = load_config(config.text, source=config.source, extra_plugins=points)
        check_arguments(self.plugins, loaded.document, config.source)
        classes = {**in_tree_classes(), **self.plugins}
        return any(
            classes[ref.name].places_gangs
            for profile in loaded.config.profiles
            for ref in profile.at("permit")
        )

    def _timings(self) -> ControllerTimings:
        times = self.file.scenario.controllers
        return ControllerTimings(
            node_monitor_grace_us=times.node_monitor_grace_period,
            eviction_per_s=times.node_eviction_rate,
            secondary_eviction_per_s=times.secondary_node_eviction_rate,
            unhealthy_zone_basis_points=round(times.unhealthy_zone_threshold * 10_000),
            large_cluster_nodes=times.large_cluster_size_threshold,
        )

    def _decision(self, workload: WorkloadCompiler) -> DecisionDelay:
        entry = self.file.scenario.decision_time
        if isinstance(entry, MeasuredTime):
            return DecisionDelay(is_measured=True)
        durations = workload.durations(entry, ("decision_time",))
        if isinstance(durations, FixedTimes):
            return DecisionDelay(pod_us=durations.fixed_us)
        return DecisionDelay(durations=durations)
