"""Plugin names of v1beta2 and v1beta3 that v1 has replaced.

Upstream: removedPluginsByVersion of pkg/scheduler/apis/config/validation/validation.go (1.22 to
1.29). Upstream refuses some plugins of v1beta1 in v1beta2 and v1beta3. Here a v1beta2 document may
name those that Roadstead has; a v1beta3 document may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from roadstead.config.errors import Problem, invalid
from roadstead.config.legacy.notes import Notes
from roadstead.config.schema import PluginSet, V1Plugin

OLD_LIMITS: Final = frozenset({"EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"})
"""Plugins that counted volumes of one kind; NodeVolumeLimits counts them all."""

VOLUME_LIMITS: Final = "NodeVolumeLimits"
FIT: Final = "NodeResourcesFit"

STRATEGY_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "NodeResourcesLeastAllocated": "LeastAllocated",
        "NodeResourcesMostAllocated": "MostAllocated",
        "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    }
)
"""Score plugin of v1beta1 → the strategy of NodeResourcesFit that replaces it."""

# Plugins that v1beta2 removed and Roadstead still has.
_UNCHANGED: Final = frozenset({"NodeLabel", "ServiceAffinity", "NodePreferAvoidPods"})
_REMOVED: Final = _UNCHANGED | set(STRATEGY_OF)
_REMOVED_RULE: Final = 'was removed in version "kubescheduler.config.k8s.io/v1beta2"'


def removal_problem(version: str, where: str, name: str) -> Problem | None:
    """Return why a document of this version cannot name a plugin; None if it can."""
    if version != "v1beta3" or name not in _REMOVED:
        return None
    document = f'(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/{version}")'
    return invalid(where, name, f"{_REMOVED_RULE} {document}")


class Renaming:
    """Rename the plugins of one profile, and collect notes on that for the user, and problems.

    strategy: the strategy of NodeResourcesFit that replaces score plugins; "" for none.
    """

    def __init__(self, version: str, notes: Notes, problems: list[Problem]) -> None:
        self.version, self.notes, self.problems = version, notes, problems
        self.strategy = ""

    def rename(
        self, point: str, plugin_set: PluginSet, path: str, *, has_limits: bool
    ) -> PluginSet:
        """Return a plugin set of an extension point in current names.

        has_limits: NodeVolumeLimits is already enabled at this point, by default or by multiPoint.
        """
        enabled_names = {plugin.name for plugin in plugin_set.enabled or ()}
        has_limits |= VOLUME_LIMITS in enabled_names
        if point == "score":
            self._check_strategies(enabled_names, path)
        enabled: list[V1Plugin] = []
        for i, plugin in enumerate(plugin_set.enabled or ()):
            where = f"{path}.enabled[{i}]"
            if plugin.name in OLD_LIMITS:
                if has_limits:
                    text = f"{plugin.name} dropped: {VOLUME_LIMITS} counts its volumes"
                    self.notes.add(where, text)
                    continue
                self.notes.add(where, f"{plugin.name} → {VOLUME_LIMITS}")
                has_limits = True
                enabled.append(plugin.model_copy(update={"name": VOLUME_LIMITS}))
            else:
                enabled.append(self._rename_enabled(point, plugin, where))
        disabled = list(self._current_disabled(plugin_set.disabled or (), path))
        return PluginSet(enabled=enabled or None, disabled=disabled or None)

    def _rename_enabled(self, point: str, plugin: V1Plugin, where: str) -> V1Plugin:
        name = plugin.name
        problem = removal_problem(self.version, where, name)
        if problem is not None:
            self.problems.append(problem)
        elif name in STRATEGY_OF and point == "score":
            self.strategy = STRATEGY_OF[name]
            text = (
                f"{name} → {FIT} with the strategy {self.strategy}, in place of its default "
                "score: the plugin filters as before and has one strategy and one weight"
            )
            self.notes.add(where, text)
            return plugin.model_copy(update={"name": FIT})
        elif name in _UNCHANGED:
            text = f"{name} as in v1beta1: kube-scheduler's own v1beta2 refused it"
            self.notes.add(where, text)
        elif name == "SelectorSpread":
            self.notes.add(where, f"{name} is no plugin of v1: here it is Roadstead's own")
        return plugin

    def _current_disabled(self, disabled: Iterable[V1Plugin], path: str) -> Iterable[V1Plugin]:
        """Yield the disabled plugins, without those that v1 replaced."""
        for i, plugin in enumerate(disabled):
            where = f"{path}.disabled[{i}]"
            if plugin.name in OLD_LIMITS:
                text = (
                    f"{plugin.name} dropped: {VOLUME_LIMITS} counts its volumes, and can only be "
                    "disabled as a whole"
                )
                self.notes.add(where, text)
            elif plugin.name in _REMOVED:
                text = f"{plugin.name} dropped: it was not on by default in {self.version}"
                self.notes.add(where, text)
            else:
                yield plugin

    def _check_strategies(self, enabled_names: set[str], path: str) -> None:
        scoring = [name for name in (*STRATEGY_OF, FIT) if name in enabled_names]
        if len(scoring) > 1 and self.version == "v1beta2":
            reason = f"{' and '.join(scoring)} conflict: {FIT} scores once, by one strategy"
            self.problems.append(Problem(f"{path}.enabled", reason))
