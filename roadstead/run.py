"""A run: what goes in, how it is carried out, and what comes out.

The command line makes `RunInputs` and a `RunPlan`; a `Launcher` (the actors, which the core does
not know) carries it out.
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
from roadstead.extenders.caller import CallerOf
from roadstead.extenders.chain import Extenders
from roadstead.extenders.files import in_directory
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.framework.members import GroupMembers
from roadstead.framework.plugin import Handle, Plugin
from roadstead.framework.profile import Profile
from roadstead.framework.registry import Registry, extension_points
from roadstead.lab.trial import LabSetup, Trial
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_classes, in_tree_registry
from roadstead.protocol.codec import Limits
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.concurrency import Concurrency
from roadstead.report.result import PendingPod, Placement, PreemptedPod

if TYPE_CHECKING:
    from roadstead.bench.figures import Benched
    from roadstead.bench.script import Script
    from roadstead.config.load import LoadedConfig


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How a run is carried out; travels to every actor once, when it is built.

    config_text: the KubeSchedulerConfiguration as written, "" for the default one.
    log_dir: folder of the actors' structured logs, "" for none.
    plugins: dotted paths of a user's plugins, and plugin_dir where their modules may lie beside
    the installed packages: every process imports them by itself.
    digest: of the inputs and of what decides placements, for the journal; "" where there is none.
    resume: go on with the run in the journal, or read what came of it where it ended.
    first_epoch: of all actors; beyond those of earlier processes of the same run.
    directory: where relative file names in the configuration belong: actors work elsewhere.
    marks: folder in which processes mark which plugin they call; "" where none does.
    """

    settings: Settings = field(default_factory=Settings)
    config_text: str = ""
    config_source: str = ""
    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    log_dir: str = ""
    plugins: tuple[str, ...] = ()
    plugin_dir: str = ""
    digest: str = ""
    resume: bool = False
    first_epoch: int = 1
    directory: str = ""
    marks: str = ""

    @property
    def limits(self) -> Limits:
        """Bounds of one message."""
        return Limits(max_bytes=self.settings.bounds.message_max_bytes)

    def config(self) -> SchedulerConfig:
        """The configuration. ConfigError where it is wrong."""
        if not self.config_text:
            return default_config()
        return self.loaded_config().config

    def loaded_config(self) -> LoadedConfig:
        """The configuration as written, with its document. ConfigError where it is wrong."""
        kinds = self.user_plugins().items()
        points = tuple((name, tuple(sorted(extension_points(kind)))) for name, kind in kinds)
        return _loaded(self.config_text, self.config_source, points)

    def user_plugins(self) -> dict[str, type[Plugin]]:
        """The user's plugins by name. InputError for one that cannot be imported here."""
        if not self.plugins:
            return {}
        from roadstead.framework.user_plugins import load_plugins

        return load_plugins(self.plugins, self.plugin_dir)

    def plugin_classes(self) -> dict[str, type[Plugin]]:
        """The in-tree plugins and the user's by name. InputError as `user_plugins` has it."""
        return {**in_tree_classes(), **self.user_plugins()}

    def binding_profiles(self) -> frozenset[str]:
        """Scheduler names of the profiles whose pods have their claims bound where they go."""
        kinds = self.plugin_classes()
        return frozenset(
            profile.scheduler_name
            for profile in self.config().profiles
            if any(kinds[ref.name].binds_volumes for ref in profile.at("reserve"))
        )

    def registry(self) -> Registry:
        """The in-tree plugins and the user's."""
        registry = in_tree_registry()
        if not self.plugins:
            return registry
        from roadstead.framework.user_plugins import factories_of

        return registry.merged(factories_of(self.user_plugins()))


@lru_cache(maxsize=2)
def _loaded(
    text: str, source: str, points_of_plugins: tuple[tuple[str, tuple[str, ...]], ...]
) -> LoadedConfig:
    """A configuration, read once for all parts of a process that ask for it."""
    # The schema and YAML take a third of a second: only a run with a configuration needs them.
    from roadstead.config.load import load_config

    return load_config(text, source=source, extra_plugins=dict(points_of_plugins))


def build_profiles(
    plan: RunPlan, classes: PodClasses, members: GroupMembers | None = None
) -> dict[str, Profile]:
    """The profiles of a plan by scheduler name, built for one process.

    members: the gangs' pods, where this process keeps count of them.
    """
    registry = plan.registry()
    handle = Handle(classes, plan.cluster, members=members or GroupMembers())
    return {each.scheduler_name: Profile(each, registry, handle) for each in plan.config().profiles}


def check_schedulers(plan: RunPlan) -> None:
    """InputError where schedulers are told by profile and a profile has none, or is not there."""
    served = dict.fromkeys(plan.settings.scheduler_profiles)
    if "" in served:
        return
    profiles = [each.scheduler_name for each in plan.config().profiles]
    for name in (*profiles, *served):
        if name not in served:
            rule = f"names no scheduler for it: its pods would wait for ever. Say {name}: 1"
        elif name not in profiles:
            rule = f"there is no such profile (there is {', '.join(profiles)})"
        else:
            continue
        raise InputError(
            rule, source="settings", obj=f"Profile {cut_short(name)}", field="schedulers"
        )


def build_node_search(plan: RunPlan, caller_of: CallerOf | None = None) -> NodeSearch | None:
    """Sampling and extenders of a plan; None where every feasible node is scored.

    caller_of: reaches extenders, over HTTP unless told otherwise. InputError for an extender that
    cannot be reached as configured.
    """
    config = plan.config()
    shares = config.shares() if plan.settings.score_nodes == "config" else {}
    if not shares and not config.extenders:
        return None
    if caller_of is None:
        # TLS and HTTP take time to import that few runs need.
        from roadstead.extenders.http import HttpCaller

        caller_of = HttpCaller
    extenders = [in_directory(each, plan.directory) for each in config.extenders]
    try:
        return NodeSearch(shares, Extenders.build(extenders, caller_of))
    except InputError as bad:
        raise bad.at(source=plan.config_source) from bad


@dataclass(frozen=True, slots=True)
class RunInputs:
    """Nodes as the API server would list them, pods that run (with their node), pods that wait."""

    nodes: Sequence[NodeFacts]
    running: tuple[tuple[PodIdentity, PodFacts, str], ...] = ()
    pending: tuple[Pod, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; phase is a few words. note: a line of its own, and nothing but that."""

    phase: str = ""
    placed: int = 0
    pending: int = 0
    total: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run decided. scheduling_s: first pod submitted to last one decided."""

    placements: tuple[Placement, ...]
    pending: tuple[PendingPod, ...]
    scheduling_s: float
    timings_s: Mapping[str, float]
    preempted: tuple[PreemptedPod, ...] = ()
    concurrency: Concurrency | None = None


class Launcher(Protocol):
    """Carries out runs on actors."""

    def prepare(self, settings: Settings, log_dir: str) -> None:
        """Begins what takes long to start, while inputs are read; a run may come or not."""
        ...

    def run(
        self, inputs: RunInputs, plan: RunPlan, progress: Callable[[Progress], None]
    ) -> RunOutcome:
        """Schedules everything. RoadsteadError with a clear text if it cannot be ended."""
        ...

    def finish(self, plan: RunPlan) -> None:
        """The outcome of `run` is written: until this is called, the run can be resumed."""
        ...

    def trial(self, inputs: RunInputs, plan: RunPlan, lab: LabSetup) -> Trial:
        """Schedules everything and measures it, set up as the conflict lab says."""
        ...

    def explain(
        self, inputs: RunInputs, plan: RunPlan, pod: Pod, progress: Callable[[Progress], None]
    ) -> Explanation:
        """Schedules all pending pods but `pod`, then explains `pod` on what is left."""
        ...

    def explain_pending(
        self,
        inputs: RunInputs,
        plan: RunPlan,
        pods: Sequence[Pod],
        progress: Callable[[Progress], None],
    ) -> tuple[Explained, ...]:
        """Schedules the pending pods of the inputs, then explains those of `pods` not placed."""
        ...

    def bench(
        self,
        script: Script,
        plan: RunPlan,
        progress: Callable[[Progress], None],
        *,
        timeout_s: float,
        profiles: bool = False,
    ) -> Benched:
        """Carries out a benchmark's script and measures it. timeout_s: how long pods may take."""
        ...
