"""A run: its inputs, plan, progress and outcome.

The command line makes `RunInputs` and a `RunPlan`; a `Launcher` executes the run (on actors, which
the core does not import).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from roadstead.config.model import SchedulerConfig, default_config
from roadstead.config.settings import Settings
from roadstead.cycle.explain import Explained, Explanation
from roadstead.cycle.node_search import NodeSearch
from roadstead.devices.gates import DeviceGates, gates_of
from roadstead.devices.state import DeviceState
from roadstead.extenders.caller import CallerOf
from roadstead.extenders.files import in_directory
from roadstead.extenders.sequence import Extenders
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.framework.members import GroupMembers
from roadstead.framework.plugin import Handle, Plugin
from roadstead.framework.profile import Profile
from roadstead.framework.registry import Registry, extension_points
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_classes, in_tree_registry
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.plain_data import DecodeLimits
from roadstead.report.concurrency import Concurrency
from roadstead.report.result import ClaimedDevice, PendingPod, PlacedPod, PreemptedPod
from roadstead.storage import BindingProfiles, StorageState

if TYPE_CHECKING:
    from roadstead.bench.metrics import BenchResult
    from roadstead.bench.script import Script
    from roadstead.config.load import LoadedConfig
    from roadstead.lab.lab_run import LabRun, LabSetup
    from roadstead.report.ray_nodes import CheckedNode, RayNodeUse
    from roadstead.sweeps.drivers import TaskDriver
    from roadstead.sweeps.tasks import Work


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Settings and configuration of a run; sent to every actor once, when it is created.

    config_text: the KubeSchedulerConfiguration as written, "" for the default one. config_source:
    its path or name, for errors. log_dir: folder of the actors' structured logs, "" for none.
    plugins: dotted paths of a user's plugins. Every process imports them itself, from the installed
    packages or from plugin_dir, and compares its module with plugin_digests (see `digests_of`).
    digest: of the inputs and settings that decide placements, for the journal; "" without one.
    resume: continue the run in the journal, or read its outcome if it ended. first_epoch: of all
    actors; higher than the epochs of earlier processes of the same run. directory: base of relative
    file names in the configuration, since actors have other working directories. marks: folder in
    which each process marks the plugin call that is running (`plugin_watch`); "" for none.
    workers_max: how many workers a run may have if CPUs of its Ray cluster become free; 0 for those
    of the settings only.
    """

    settings: Settings = field(default_factory=Settings)
    config_text: str = ""
    config_source: str = ""
    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    log_dir: str = ""
    plugins: tuple[str, ...] = ()
    plugin_dir: str = ""
    plugin_digests: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    resume: bool = False
    first_epoch: int = 1
    directory: str = ""
    marks: str = ""
    workers_max: int = 0

    @property
    def limits(self) -> DecodeLimits:
        """The limits of one message."""
        return DecodeLimits(max_bytes=self.settings.bounds.message_max_bytes)

    def config(self) -> SchedulerConfig:
        """Return the configuration. ConfigError if it is invalid."""
        if not self.config_text:
            return default_config()
        return self.loaded_config().config

    def loaded_config(self) -> LoadedConfig:
        """Return the configuration, and its content as a mapping. ConfigError if it is invalid."""
        classes = self.user_plugins().items()
        # Tuples, because the arguments of a cached function must be hashable.
        extra = tuple((name, tuple(sorted(extension_points(each)))) for name, each in classes)
        return _loaded(self.config_text, self.config_source, extra)

    def user_plugins(self) -> dict[str, type[Plugin]]:
        """Return the user's plugins by name. InputError for one that cannot be imported here."""
        if not self.plugins:
            return {}
        from roadstead.framework.user_plugins import check_digests, load_plugins

        loaded = load_plugins(self.plugins, self.plugin_dir)
        check_digests(self.plugin_digests, self.plugins)
        return loaded

    def plugin_classes(self) -> dict[str, type[Plugin]]:
        """Return in-tree and user's plugins by name. InputError as for `user_plugins`."""
        return {**in_tree_classes(), **self.user_plugins()}

    def storage_state(self) -> StorageState:
        """Return a new state of the cluster's claims, volumes and devices."""
        devices = DeviceState(self.cluster.devices, self.gates())
        return StorageState(self.cluster.storage, devices)

    def gates(self) -> DeviceGates:
        """Return the feature gates of devices."""
        return gates_of(self.settings.feature_gates.items())

    def binding_profiles(self) -> BindingProfiles:
        """Return the profiles that bind the claims of their pods."""
        classes = self.plugin_classes()
        reserving = (
            (profile.scheduler_name, [classes[ref.name] for ref in profile.at("reserve")])
            for profile in self.config().profiles
        )
        return BindingProfiles.of(
            (name, any(e.binds_volumes for e in plugins), any(e.binds_devices for e in plugins))
            for name, plugins in reserving
        )

    def registry(self) -> Registry:
        """Return the registry of in-tree and user's plugins."""
        registry = in_tree_registry()
        if not self.plugins:
            return registry
        from roadstead.framework.user_plugins import factories_of

        return registry.merged(factories_of(self.user_plugins()))


@lru_cache(maxsize=2)
def _loaded(
    text: str, source: str, extra_plugins: tuple[tuple[str, tuple[str, ...]], ...]
) -> LoadedConfig:
    """Load a configuration, once for a process.

    extra_plugins: (name, extension points) of each of the user's plugins.
    """
    # The schema and YAML take a third of a second: only a run with a configuration needs them.
    from roadstead.config.load import load_config

    return load_config(text, source=source, extra_plugins=dict(extra_plugins))


def build_profiles(
    plan: RunPlan, classes: PodClasses, members: GroupMembers | None = None
) -> dict[str, Profile]:
    """Build the profiles of a plan, by scheduler name, for one process.

    members: the pods of gangs, if this process counts them.
    """
    registry = plan.registry()
    # What the constructor of each plugin receives.
    handle = Handle(classes, plan.cluster, members=members or GroupMembers(), gates=plan.gates())
    return {each.scheduler_name: Profile(each, registry, handle) for each in plan.config().profiles}


def check_schedulers(plan: RunPlan) -> None:
    """Check the setting of schedulers by profile: it names every profile, and no unknown one.

    InputError if it does not.
    """
    served = dict.fromkeys(plan.settings.scheduler_profiles)
    # "" is a scheduler that serves all profiles.
    if "" in served:
        return
    profiles = [each.scheduler_name for each in plan.config().profiles]
    for name in (*profiles, *served):
        if name not in served:
            problem = f"names no scheduler for it: its pods would wait for ever; add {name}: 1"
        elif name not in profiles:
            problem = f"there is no such profile (there is {', '.join(profiles)})"
        else:
            continue
        raise InputError(
            problem, source="settings", obj=f"Profile {cut_short(name)}", field="schedulers"
        )


def build_node_search(plan: RunPlan, caller_of: CallerOf | None = None) -> NodeSearch | None:
    """Return sampling and extenders of a plan; None without either, so all nodes are evaluated.

    caller_of: makes the callers of extenders; over HTTP by default. InputError for an extender that
    cannot be reached as configured.
    """
    config = plan.config()
    percentages = config.sampling_percentages() if plan.settings.score_nodes == "config" else {}
    if not percentages and not config.extenders:
        return None
    if caller_of is None:
        # Few runs have extenders; HTTP and TLS take time to import.
        from roadstead.extenders.http import HttpCaller

        caller_of = HttpCaller
    # With file names relative to the directory of the run.
    extenders = [in_directory(each, plan.directory) for each in config.extenders]
    try:
        return NodeSearch(percentages, Extenders.build(extenders, caller_of))
    except InputError as bad:
        raise bad.at(source=plan.config_source) from bad


@dataclass(frozen=True, slots=True)
class RunInputs:
    """Nodes as the API server would list them, running pods with their nodes, and pending pods."""

    nodes: Sequence[NodeFacts]
    running: tuple[tuple[PodIdentity, PodFacts, str], ...] = ()
    pending: tuple[Pod, ...] = ()

    def check_identities(self) -> None:
        """Raise InputError if a running pod is also pending: it could not be placed or wait."""
        running = {identity.uid for identity, _, _ in self.running}
        for identity, _ in self.pending:
            if identity.uid in running:
                raise InputError(
                    "is also the UID of a running pod: a UID must be unique",
                    obj=f'Pod "{identity.key}"',
                    field="metadata.uid",
                    value=cut_short(identity.uid),
                )


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run.

    phase: what is being done, in a few words. unit: what is counted, if not pods that are placed or
    pending. note: a line for the user; such a report has no counts.
    """

    phase: str = ""
    placed: int = 0
    pending: int = 0
    total: int = 0
    note: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Decisions of a run.

    scheduling_s: from the first submitted pod to the last decision. ray_nodes: the nodes of a Ray
    cluster that was joined, with the processes at the end of the run.
    """

    placements: tuple[PlacedPod, ...]
    pending: tuple[PendingPod, ...]
    scheduling_s: float
    timings_s: Mapping[str, float]
    preempted: tuple[PreemptedPod, ...] = ()
    devices: tuple[ClaimedDevice, ...] = ()
    concurrency: Concurrency | None = None
    ray_nodes: tuple[RayNodeUse, ...] = ()


class Launcher(Protocol):
    """Execute runs on actors."""

    def prepare(self, settings: Settings, log_dir: str) -> None:
        """Start the runtime in the background, before inputs are read; a run need not follow."""
        ...

    def room_for_workers(self, settings: Settings) -> int | None:
        """Return how many workers fit on the cluster that `prepare` joined; None on one machine."""
        ...

    def run(
        self, inputs: RunInputs, plan: RunPlan, progress: Callable[[Progress], None]
    ) -> RunOutcome:
        """Schedule all inputs and return the outcome. RoadsteadError if the run fails."""
        ...

    def finish(self, plan: RunPlan) -> None:
        """Mark that the outcome of `run` is written; until then, the run can be resumed."""
        ...

    def run_lab(self, inputs: RunInputs, plan: RunPlan, lab: LabSetup) -> LabRun:
        """Schedule all inputs and measure the run, for `roadstead stress` on the product."""
        ...

    def explain(
        self, inputs: RunInputs, plan: RunPlan, pod: Pod, progress: Callable[[Progress], None]
    ) -> Explanation:
        """Schedule the pending pods of the inputs, then explain `pod` on the result."""
        ...

    def explain_pending(
        self,
        inputs: RunInputs,
        plan: RunPlan,
        pods: Sequence[Pod],
        progress: Callable[[Progress], None],
    ) -> tuple[Explained, ...]:
        """Schedule the pending pods of the inputs, then explain those of `pods` not placed.

        Equal pods that are refused alike share one explanation.
        """
        ...

    def open_tasks(
        self, work: Work, settings: Settings, jobs: int | None, announce: Callable[[str], None]
    ) -> TaskDriver:
        """Start processes for tasks of a sweep, on the Ray of the settings; return their driver.

        work: the tasks, and what they have in common. jobs: how many tasks run at a time; None for
        as many as a cluster has free CPUs. announce: receives messages for the user. RoadsteadError
        if none can be started.
        """
        ...

    def bench(
        self,
        script: Script,
        plan: RunPlan,
        progress: Callable[[Progress], None],
        *,
        timeout_s: float,
        profiles: bool = False,
    ) -> BenchResult:
        """Execute a benchmark's script and measure it. timeout_s: how long to wait for pods."""
        ...

    def check_cluster(self, settings: Settings) -> tuple[str, tuple[CheckedNode, ...]]:
        """Check each node of a Ray cluster; return the address of its head, and the results."""
        ...
