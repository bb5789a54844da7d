"""All known plugins: their origin, and the profiles that enable them."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console

from roadstead.cli.options import OutputFormat, RunOptions
from roadstead.cli.plan import read_config
from roadstead.cli.result_forms import print_json
from roadstead.config.intree import IN_TREE_POINTS, OPTIONAL_POINTS
from roadstead.config.model import ProfileConfig
from roadstead.config.settings import Settings
from roadstead.framework.plugin import EXTENSION_POINTS, Plugin
from roadstead.framework.registry import extension_points
from roadstead.framework.user_plugins import installed_plugins, load_plugin_class
from roadstead.protocol.errors import InputError, printable
from roadstead.report.text_table import Cells, Column, print_table, text_column
from roadstead.run import RunPlan

IN_TREE = "in-tree"


@dataclass(frozen=True, slots=True)
class EnabledIn:
    """A profile that enables a plugin.

    profile: its scheduler name. points: the extension points at which it enables the plugin.
    weight: of the plugin's scores; None if it does not score there.
    """

    profile: str
    points: tuple[str, ...]
    weight: int | None


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """A plugin.

    origin: in-tree, or MODULE:CLASS. file: the file that defines the class, "" for an in-tree one.
    points: the extension points that it implements. enabled: one entry for each profile that
    enables it.
    """

    name: str
    origin: str
    file: str
    points: tuple[str, ...]
    enabled: tuple[EnabledIn, ...]


def known_plugins(options: RunOptions) -> list[KnownPlugin]:
    """Return the in-tree plugins, the installed ones, and those of the options, in this order.

    Profiles enable them as in a run with these options. Raises InputError for a wrong option.
    """
    config = read_config(options)
    plan = RunPlan(
        Settings(),
        config.text,
        config.source,
        plugins=config.plugins,
        plugin_dir=config.plugin_dir,
    )
    profiles, user_plugins = plan.config().profiles, plan.user_plugins()
    # OPTIONAL_POINTS: in-tree plugins that kube-scheduler 1.34 lacks, which are off by default.
    known = [
        KnownPlugin(name, IN_TREE, "", in_running_order(points), _enabling(profiles, name))
        for name, points in {**IN_TREE_POINTS, **OPTIONAL_POINTS}.items()
    ]
    for path in installed_plugins().values():
        if path not in config.plugins and (plugin_class := _load_installed(path)) is not None:
            # A profile can enable only the plugins of the configuration.
            known.append(_user_plugin(plugin_class, path, enabled=()))
    for (name, plugin_class), path in zip(user_plugins.items(), config.plugins, strict=True):
        known.append(_user_plugin(plugin_class, path, _enabling(profiles, name)))
    return known


def in_running_order(points: Container[str]) -> tuple[str, ...]:
    """Sort extension points by the order in which they run for a pod."""
    return tuple(point for point in EXTENSION_POINTS if point in points)


def _load_installed(path: str) -> type[Plugin] | None:
    """Load an installed plugin. None, with a note, if it cannot be imported."""
    try:
        return load_plugin_class(path)
    except InputError as error:
        click.echo(printable(f"Left out: {error}"), err=True)
        return None


def _user_plugin(
    plugin_class: type[Plugin], path: str, enabled: tuple[EnabledIn, ...]
) -> KnownPlugin:
    return KnownPlugin(
        plugin_class.name,
        path,
        _file(plugin_class),
        in_running_order(extension_points(plugin_class)),
        enabled,
    )


def _file(plugin_class: type[Plugin]) -> str:
    """Return the file of a class, relative to the working directory for a file below that."""
    file = getattr(sys.modules.get(plugin_class.__module__), "__file__", None) or ""
    path, folder = Path(file), Path.cwd()
    return str(path.relative_to(folder)) if folder in path.parents else file


def _enabling(profiles: Iterable[ProfileConfig], name: str) -> tuple[EnabledIn, ...]:
    """Return the profiles that enable the plugin of this name."""
    enabling: list[EnabledIn] = []
    for profile in profiles:
        refs = {
            point: ref
            for point in EXTENSION_POINTS
            for ref in profile.at(point)
            if ref.name == name
        }
        if refs:
            weight = refs["score"].weight if "score" in refs else None
            enabling.append(EnabledIn(profile.scheduler_name, tuple(refs), weight))
    return tuple(enabling)


def print_plugins(plugins: Sequence[KnownPlugin], output_format: OutputFormat) -> None:
    """Print plugins as a table, or as one JSON document."""
    if output_format == "json":
        print_json({"plugins": [asdict(each) for each in plugins]})
        return
    console = Console()
    _print_group(console, "In-tree plugins", [each for each in plugins if each.origin == IN_TREE])
    if yours := [each for each in plugins if each.origin != IN_TREE]:
        _print_group(console, "Your plugins", yours)


def _print_group(console: Console, title: str, plugins: Sequence[KnownPlugin]) -> None:
    columns = [
        text_column("plugin"),
        text_column("extension points"),
        Column("weight"),
        text_column("enabled in"),
    ]
    has_origins = any(each.origin != IN_TREE for each in plugins)
    rows: list[Cells] = []
    for each in plugins:
        # One line of the cell for each profile.
        weights = "\n".join("" if e.weight is None else str(e.weight) for e in each.enabled)
        profiles = "\n".join(_profile_text(each, enabled) for enabled in each.enabled) or "–"
        origin = [printable(f"{each.origin}\n{each.file}")] if has_origins else []
        rows.append([printable(each.name), ", ".join(each.points), weights, profiles, *origin])
    print_table(console, title, [*columns, *([text_column("from")] if has_origins else [])], rows)


def _profile_text(plugin: KnownPlugin, enabled: EnabledIn) -> str:
    """Return the profile; with extension points, unless it enables all that the plugin has."""
    if enabled.points == plugin.points:
        return enabled.profile
    return f"{enabled.profile} ({', '.join(enabled.points)})"
