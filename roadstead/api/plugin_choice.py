"""Choosing a run's plugins: those of --plugin, and installed ones that a configuration names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from roadstead.config.intree import IN_TREE_POINTS, OPTIONAL_POINTS
from roadstead.config.load import LoadedConfig, load_config
from roadstead.framework.plugin import Plugin
from roadstead.framework.registry import extension_points
from roadstead.framework.user_plugins import (
    check_arguments,
    installed_plugins,
    load_plugins,
    plugins_of_file,
)
from roadstead.protocol.errors import InputError, cut_short

PLUGIN_OPTION = "--plugin"
"""The option, and the source in errors of a configuration that is made from it."""

_EMPTY_CONFIG: Final[dict[str, object]] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}


@dataclass(frozen=True, slots=True)
class ChosenPlugins:
    """Loaded plugins.

    paths: MODULE:CLASS of each. directory: searched for their modules, besides the installed
    packages; "" for none. types: plugin name → class.
    """

    paths: tuple[str, ...] = ()
    directory: str = ""
    types: dict[str, type[Plugin]] = field(default_factory=dict)

    def points(self) -> dict[str, frozenset[str]]:
        """Return the extension points of each plugin, by plugin name."""
        return {name: extension_points(each) for name, each in self.types.items()}

    def as_config(self, args: object = None) -> str:
        """Return a configuration that adds the plugins to the default ones; "" without plugins.

        args: arguments that every plugin gets, as in `pluginConfig`.
        """
        if not self.types:
            return ""
        points = self.points()
        # A profile has one QueueSort plugin, so a chosen one replaces the default one.
        sorting = [name for name in points if points[name] == {"queueSort"}]
        plugins: dict[str, object] = {
            "multiPoint": {"enabled": _plugin_references(points.keys() - sorting)}
        }
        if sorting:
            plugins["queueSort"] = {
                "disabled": [{"name": "*"}],
                "enabled": _plugin_references(sorting),
            }
        profile: dict[str, object] = {"plugins": plugins}
        if args is not None:
            profile["pluginConfig"] = [{"name": name, "args": args} for name in points]
        return json.dumps(_EMPTY_CONFIG | {"profiles": [profile]})

    def unused_in(self, text: str) -> tuple[str, ...]:
        """Names of the plugins that a configuration does not name."""
        return tuple(name for name in self.types if not _is_named(name, text))


def choose_plugins(options: Sequence[str], text: str = "", directory: str = "") -> ChosenPlugins:
    """Load the plugins of the options, and the installed plugins that a configuration names.

    options: MODULE:CLASS, FILE.py:CLASS, or FILE.py for all plugins of the file. text: the
    configuration. directory: of the files and modules; by default the working directory. Raises
    InputError for a plugin that cannot be loaded, or that has the name of an in-tree plugin.
    """
    directory = (directory or str(Path.cwd())) if options else ""
    installed = _installed_in(text) if text else {}
    from_options = [path for each in options for path in _plugin_paths(each, directory)]
    paths = tuple(dict.fromkeys([*from_options, *installed.values()]))
    types = load_plugins(paths, directory)
    # OPTIONAL_POINTS: plugins that Roadstead has, and kube-scheduler 1.34 lacks.
    for name in types.keys() & (IN_TREE_POINTS.keys() | OPTIONAL_POINTS.keys()):
        raise InputError(
            "is the name of an in-tree plugin: choose another name", obj="plugin", value=f'"{name}"'
        )
    for name, path in installed.items():
        if name not in types:
            raise InputError(
                f'must have the name of its entry point, "{name}"',
                obj="plugin",
                value=path,
            )
    return ChosenPlugins(paths, directory, types)


def _plugin_paths(option: str, directory: str) -> tuple[str, ...]:
    """Return MODULE:CLASS of each plugin in a --plugin value. Raises InputError for a bare word."""
    file, _, class_name = option.partition(":")
    if not file.endswith(".py"):
        if not {":", "."} & set(option):
            rule = "must be MODULE:CLASS, or FILE.py for all plugins of a file"
            raise InputError(rule, obj="plugin", value=cut_short(option))
        return (option,)
    all_of_file = plugins_of_file(file, directory)
    return (f"{Path(file).stem}:{class_name}",) if class_name else all_of_file


def _plugin_references(names: Iterable[str]) -> list[dict[str, str]]:
    return [{"name": name} for name in sorted(names)]


def load_with(chosen: ChosenPlugins, text: str | bytes, source: str) -> LoadedConfig:
    """Load a configuration that may name these plugins, and check arguments. Raises ConfigError."""
    loaded = load_config(text, source=source, extra_plugins=chosen.points())
    check_arguments(chosen.types, loaded.document, source)
    return loaded


def _installed_in(text: str) -> dict[str, str]:
    """Return the installed plugins that a configuration names: name → MODULE:CLASS."""
    return {name: path for name, path in installed_plugins().items() if _is_named(name, text)}


def _is_named(name: str, text: str) -> bool:
    """Whether the text has the name as a whole word.

    The text is not parsed: that needs the plugins. A name in a comment only imports a plugin.
    """
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text) is not None
