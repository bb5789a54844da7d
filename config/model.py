"""The configuration as queue and schedulers read it: checked, defaulted, multiPoint expanded.

Upstream: pkg/scheduler/apis/config/types.go after framework construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Final

from roadstead.config.intree import DEFAULT_MULTI_POINT, EXTENSION_POINTS, IN_TREE_POINTS
from roadstead.config.plugin_args import DEFAULT_ARGS, PluginArgs

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin at an extension point. `weight` is used at `score` only and is 1 elsewhere."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class ProfileConfig:
    """One profile: the plugins for pods whose `spec.schedulerName` is `scheduler_name`.

    `plugins` has every extension point as key (names as upstream: preEnqueue, queueSort, …), its
    plugins in execution order. `args` has the enabled plugins that take arguments, and the plugins
    that the user configured; use `DEFAULT_ARGS` for one that is absent.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    plugins: Mapping[str, tuple[PluginRef, ...]]
    args: Mapping[str, PluginArgs]

    def at(self, extension_point: str) -> tuple[PluginRef, ...]:
        """Return the plugins at a point, in execution order; KeyError for an unknown point."""
        return self.plugins[extension_point]


@dataclass(frozen=True, slots=True)
class ExtenderTLS:
    """TLS of an extender: files, or PEM in base64, which a repr never shows."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = field(default="", repr=False)
    key_data: str = field(default="", repr=False)
    ca_data: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ExtenderConfig:
    """An HTTP extender (upstream pkg/scheduler/extender.go). An empty verb is not called.

    managed_resources: names of the extended resources that it manages.
    """

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    tls: ExtenderTLS | None = None
    http_timeout_s: float = 5.0
    node_cache_capable: bool = False
    managed_resources: tuple[str, ...] = ()
    ignorable: bool = False


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """The parts of a configuration that decisions depend on.

    percentage_of_nodes_to_score: 0 means adaptive. percentage_is_set: the document sets it.
    The other fields of the document (leader election, client connection, parallelism, profiling)
    are read, checked as upstream, and printed; nothing here depends on them.
    """

    profiles: tuple[ProfileConfig, ...]
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_s: int = 1
    pod_max_backoff_s: int = 10
    extenders: tuple[ExtenderConfig, ...] = ()
    percentage_is_set: bool = False

    def sampling_percentages(self) -> dict[str, int]:
        """Return percentageOfNodesToScore of the profiles that sample nodes, by scheduler name.

        0 is adaptive. A profile without a percentage has that of the document. Every node is
        scored at 100, or if neither sets one.
        """
        of_document = self.percentage_of_nodes_to_score if self.percentage_is_set else 100
        by_profile = {p.scheduler_name: p.percentage_of_nodes_to_score for p in self.profiles}
        percentages = {
            name: of_document if each is None else each for name, each in by_profile.items()
        }
        return {name: percentage for name, percentage in percentages.items() if percentage < 100}

    def profile(self, scheduler_name: str) -> ProfileConfig | None:
        """Return the profile of this name; None if its pods belong to another scheduler."""
        return next((p for p in self.profiles if p.scheduler_name == scheduler_name), None)


@cache
def default_config() -> SchedulerConfig:
    """Return what an empty KubeSchedulerConfiguration means, without reading a document."""
    plugins = {
        point: tuple(
            _default_refs(point, (n for n in IN_TREE_POINTS if point in IN_TREE_POINTS[n]))
        )
        for point in EXTENSION_POINTS
    }
    profile = ProfileConfig(DEFAULT_SCHEDULER_NAME, None, MappingProxyType(plugins), DEFAULT_ARGS)
    return SchedulerConfig(profiles=(profile,))


def _default_refs(point: str, names: Iterable[str]) -> Iterable[PluginRef]:
    weights = dict(DEFAULT_MULTI_POINT) if point == "score" else {}
    return (PluginRef(name, weights.get(name) or 1) for name in names)
