"""Merge custom plugin sets with the default ones, then expand multiPoint.

Order at an extension point: first the plugins listed there that multiPoint also enables (in the
listed order), then the rest of multiPoint, then the others listed there. A weight given at `score`
overrides the one given at multiPoint.
Upstream: v1/default_plugins.go (mergePlugins), framework/runtime/framework.go
(updatePluginList, expandMultiPointPlugins, getScoreWeights).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from roadstead.config.intree import DEFAULT_MULTI_POINT, EXTENSION_POINTS, INTERFACE_NAMES
from roadstead.config.schema import Plugins, PluginSet, V1Plugin

ALL: Final = "*"
"""Name that disables every default plugin of an extension point."""


class ExpansionError(ValueError):
    """The plugins of a profile cannot be put together; the text is upstream's."""

    def __init__(self, message: str, point: str) -> None:
        self.point = point
        super().__init__(message)


def default_plugins() -> Plugins:
    """The default profile: every in-tree plugin at multiPoint."""
    enabled = [V1Plugin(name=name, weight=weight) for name, weight in DEFAULT_MULTI_POINT]
    return Plugins(multi_point=PluginSet(enabled=enabled))


def enabled_names(plugins: Plugins) -> list[str]:
    """Return every plugin that is enabled anywhere, sorted."""
    return sorted({p.name for each in plugins.sets().values() for p in each.enabled or ()})


def merge_plugins(default: Plugins, custom: Plugins | None) -> Plugins:
    """Override the default sets by the profile's; an absent weight becomes 0, as upstream."""
    overrides = custom or Plugins()
    merged = {
        name: merge_set(getattr(default, name), getattr(overrides, name))
        for name in Plugins.model_fields
    }
    return Plugins(**merged)


def merge_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Override the default set of one extension point by the custom one."""
    disabled = {plugin.name for plugin in custom.disabled or ()}
    overrides = {plugin.name: plugin for plugin in custom.enabled or ()}
    not_disabled = [] if ALL in disabled else default.enabled or []
    not_disabled = [plugin for plugin in not_disabled if plugin.name not in disabled]
    replaced = {plugin.name for plugin in not_disabled} & set(overrides)
    enabled = [overrides.get(plugin.name, plugin) for plugin in not_disabled]
    # Of a name listed twice only the later entry replaces the default; the earlier one is added,
    # so that `expand` refuses the name, as upstream does.
    last_index = {plugin.name: i for i, plugin in enumerate(custom.enabled or ())}
    for i, plugin in enumerate(custom.enabled or ()):
        if not (plugin.name in replaced and last_index[plugin.name] == i):
            enabled.append(plugin)
    disabled_plugins = [V1Plugin(name=plugin.name, weight=0) for plugin in custom.disabled or ()]
    enabled_plugins = [
        plugin.model_copy(update={"weight": plugin.weight or 0}) for plugin in enabled
    ]
    return PluginSet(enabled=enabled_plugins or None, disabled=disabled_plugins or None)


def expand(plugins: Plugins, points_of: Mapping[str, frozenset[str]]) -> dict[str, tuple[str, ...]]:
    """Return extension point → plugin names in execution order.

    `points_of`: plugin → the extension points it implements, for every existing plugin.
    Raises ExpansionError for an unknown plugin, one that lacks the point, or one listed twice.
    """
    sets = plugins.sets()
    for point in EXTENSION_POINTS:
        _check_plugins_listed(point, sets[point].enabled or (), points_of)
    return {point: _order(point, sets[point], plugins, points_of) for point in EXTENSION_POINTS}


def _check_plugins_listed(
    point: str, listed: Iterable[V1Plugin], points_of: Mapping[str, frozenset[str]]
) -> None:
    earlier_names: set[str] = set()
    for plugin in listed:
        points = points_of.get(plugin.name)
        if points is None:
            raise _unknown_plugin_error(point, plugin.name)
        if point not in points:
            text = f'plugin "{plugin.name}" does not extend {INTERFACE_NAMES[point]} plugin'
            raise ExpansionError(text, point)
        if plugin.name in earlier_names:
            raise _listed_twice_error(point, plugin.name)
        earlier_names.add(plugin.name)


def _order(
    point: str, plugin_set: PluginSet, plugins: Plugins, points_of: Mapping[str, frozenset[str]]
) -> tuple[str, ...]:
    """Return the plugins at a point in execution order; see the module's docstring."""
    listed = [plugin.name for plugin in plugin_set.enabled or ()]
    disabled = {plugin.name for plugin in plugin_set.disabled or ()}
    if ALL in disabled:
        return tuple(listed)
    # Of `listed`, those that multiPoint also enables.
    overridden: set[str] = set()
    expanded: list[str] = []
    for plugin in plugins.multi_point.enabled or ():
        if plugin.name not in points_of:
            raise _unknown_plugin_error(point, plugin.name)
        if point not in points_of[plugin.name] or plugin.name in disabled:
            continue
        if plugin.name in listed:
            overridden.add(plugin.name)
        elif plugin.name in expanded:
            raise _listed_twice_error(point, plugin.name)
        else:
            expanded.append(plugin.name)
    overriding = [name for name in listed if name in overridden]
    return (*overriding, *expanded, *(name for name in listed if name not in overridden))


def score_weights(plugins: Plugins) -> dict[str, int]:
    """Return plugin → weight: the first one at `score`, else at multiPoint; 0 means 1."""
    weights: dict[str, int] = {}
    for plugin in (*(plugins.score.enabled or ()), *(plugins.multi_point.enabled or ())):
        weights.setdefault(plugin.name, plugin.weight or 1)
    return weights


def _unknown_plugin_error(point: str, name: str) -> ExpansionError:
    return ExpansionError(f'{INTERFACE_NAMES[point]} "{name}" does not exist', point)


def _listed_twice_error(point: str, name: str) -> ExpansionError:
    return ExpansionError(
        f'plugin "{name}" already registered as "{INTERFACE_NAMES[point]}"', point
    )
