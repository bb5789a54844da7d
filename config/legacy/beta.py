"""Translation of KubeSchedulerConfiguration v1beta2 and v1beta3 to v1.

v1beta3 is v1 with other names for volume limits and with SelectorSpread. v1beta2 has no
multiPoint: its default lists are merged with the profile's and written out, multiPoint off. Every
change is noted for the user (`Notes`).

NodeVolumeLimits replaces four plugins of v1beta2 and v1beta3 (`OLD_LIMITS`), and may be on a list
only once. So `has_limits` says whether it is enabled at a point even without a plugin that becomes
it: by default (`limits_by_default`), or by multiPoint (`limits_everywhere`).
Upstream: pkg/scheduler/apis/config/v1beta2/{default_plugins,defaults}.go, v1beta3 alike.
"""

from __future__ import annotations

from typing import Any, Final

from roadstead.config.errors import Problem
from roadstead.config.go_struct import API_VERSION
from roadstead.config.intree import EXTENSION_POINTS
from roadstead.config.legacy.beta_args import BetaArgs
from roadstead.config.legacy.beta_defaults import BETA2_DEFAULTS, GAINED_POINTS
from roadstead.config.legacy.beta_names import OLD_LIMITS, VOLUME_LIMITS, Renaming
from roadstead.config.legacy.beta_schema import (
    Beta2Configuration,
    Beta2Profile,
    Beta3Configuration,
    Beta3Profile,
)
from roadstead.config.legacy.notes import ADDRESSES, Notes
from roadstead.config.merge import merge_set
from roadstead.config.schema import Plugins, PluginSet, PointSets, V1Plugin

GROUP: Final = "kubescheduler.config.k8s.io"
BETA2: Final = f"{GROUP}/v1beta2"
BETA3: Final = f"{GROUP}/v1beta3"

MULTI_POINT: Final = "multiPoint"


def translate_beta2(
    document: dict[str, Any], config: Beta2Configuration, notes: Notes, problems: list[Problem]
) -> dict[str, Any]:
    """Translate a v1beta2 document to v1. config: the document, decoded."""
    notes.add("apiVersion", f"v1beta2 → {API_VERSION}")
    notes.drop_addresses(document)
    profiles = config.profiles or [Beta2Profile()]
    text = "v1beta2's default plugins and weights are written out, multiPoint is off"
    notes.add("profiles", text)
    translated = [
        _beta2_profile(profile, f"profiles[{i}]", notes, problems)
        for i, profile in enumerate(profiles)
    ]
    unchanged = {key: value for key, value in document.items() if key not in ADDRESSES}
    return {**unchanged, "apiVersion": API_VERSION, "profiles": translated}


def translate_beta3(
    document: dict[str, Any], config: Beta3Configuration, notes: Notes, problems: list[Problem]
) -> dict[str, Any]:
    """Translate a v1beta3 document to v1. config: the document, decoded."""
    notes.add("apiVersion", f"v1beta3 → {API_VERSION}")
    text = "the default plugins are v1's: DynamicResources is newer than v1beta3"
    notes.add("profiles", text)
    translated = [
        _beta3_profile(profile, f"profiles[{i}]", notes, problems)
        for i, profile in enumerate(config.profiles or ())
    ]
    return {**document, "apiVersion": API_VERSION, "profiles": translated}


def _beta2_profile(
    profile: Beta2Profile, path: str, notes: Notes, problems: list[Problem]
) -> dict[str, Any]:
    renaming = Renaming("v1beta2", notes, problems)
    written_sets = (profile.plugins or PointSets()).sets()
    sets: dict[str, PluginSet] = {}
    for point in EXTENSION_POINTS:
        plugin_set = written_sets[point]
        listed = [V1Plugin(name=n, weight=w) for n, w in BETA2_DEFAULTS.get(point, ())]
        has_limits = point == "filter" and _has_limits(plugin_set)
        where = f"{path}.plugins.{point}"
        custom = renaming.rename(point, plugin_set, where, has_limits=has_limits)
        merged = merge_set(PluginSet(enabled=listed), custom)
        sets[point] = PluginSet(enabled=merged.enabled)
    _add_gained_points(sets, path, notes)
    plugins = {
        point: _set_document(plugin_set) for point, plugin_set in sets.items() if plugin_set.enabled
    }
    plugins[MULTI_POINT] = {"disabled": [{"name": "*"}]}
    # renaming.strategy: that of NodeResourcesFit, in place of score plugins; "" for none.
    args = BetaArgs(BETA2, renaming.strategy, notes, problems)
    configs = args.to_v1(profile.plugin_config or (), path)
    return _profile_document(profile.scheduler_name, plugins, configs)


def _beta3_profile(
    profile: Beta3Profile, path: str, notes: Notes, problems: list[Problem]
) -> dict[str, Any]:
    renaming = Renaming("v1beta3", notes, problems)
    written_sets = (profile.plugins or Plugins()).sets()
    multi = written_sets[MULTI_POINT]
    limits_by_default = _has_limits(multi)
    # Whether NodeVolumeLimits is on at each extension point of its own that does not disable it.
    limits_everywhere = limits_by_default or bool(
        _enabled_names(multi) & {VOLUME_LIMITS, *OLD_LIMITS}
    )
    plugins: dict[str, Any] = {}
    for point, plugin_set in written_sets.items():
        if point == MULTI_POINT:
            has_limits = limits_by_default
        else:
            has_limits = limits_everywhere and _has_limits(plugin_set)
        where = f"{path}.plugins.{point}"
        renamed = renaming.rename(point, plugin_set, where, has_limits=has_limits)
        if renamed.enabled or renamed.disabled:
            plugins[point] = _set_document(renamed)
    configs = BetaArgs(BETA3, strategy="", notes=notes, problems=problems).to_v1(
        profile.plugin_config or (), path
    )
    return _profile_document(profile.scheduler_name, plugins, configs)


def _add_gained_points(sets: dict[str, PluginSet], path: str, notes: Notes) -> None:
    """Enable plugins at the extension points that they have gained since v1beta2."""
    # older_point: the point at which v1beta2 runs the plugin already.
    for point, older_point, name in GAINED_POINTS:
        if name in _enabled_names(sets[older_point]) and name not in _enabled_names(sets[point]):
            enabled = [*(sets[point].enabled or ()), V1Plugin(name=name)]
            sets[point] = PluginSet(enabled=enabled)
            notes.add(f"{path}.plugins.{point}", f"{name} is added: v1 runs it at this point, too")


def _has_limits(plugin_set: PluginSet) -> bool:
    """Whether a set does not disable NodeVolumeLimits, which is enabled by default."""
    return not {plugin.name for plugin in plugin_set.disabled or ()} & {"*", VOLUME_LIMITS}


def _enabled_names(plugin_set: PluginSet) -> set[str]:
    """Return the enabled plugins of a set."""
    return {plugin.name for plugin in plugin_set.enabled or ()}


def _set_document(plugin_set: PluginSet) -> dict[str, Any]:
    lists = {"enabled": plugin_set.enabled, "disabled": plugin_set.disabled}
    return {key: [_plugin(each) for each in plugins] for key, plugins in lists.items() if plugins}


def _plugin(plugin: V1Plugin) -> dict[str, Any]:
    weight = {"weight": plugin.weight} if plugin.weight else {}
    return {"name": plugin.name, **weight}


def _profile_document(
    name: str | None, plugins: dict[str, Any], configs: list[dict[str, Any]]
) -> dict[str, Any]:
    name_entry = {} if name is None else {"schedulerName": name}
    return {**name_entry, "plugins": plugins, "pluginConfig": configs}
