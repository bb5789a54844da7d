"""`roadstead config`: what a configuration means once defaults and multiPoint are applied."""

from __future__ import annotations

import json
import re
import sys
from typing import Final

import click
import yaml

from roadstead.cli.config_notes import tell_config_notes
from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import config_bytes, plugin_option
from roadstead.cli.plugin_choice import SOURCE_OF_FLAGS, choose_plugins, load_with
from roadstead.config.load import LoadedConfig
from roadstead.config.model import ProfileConfig
from roadstead.config.presets import list_presets, preset_text

# The order in which a pod meets them.
_POINTS_OF_A_CYCLE: Final = (
    *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind"),
)

# Beyond what PyYAML quotes by itself: words and numbers of Go's YAML that PyYAML takes for texts.
_READ_OTHERWISE: Final = re.compile(r"[yYnN]|[-+.0-9][-+.0-9a-fA-FxXoO_]*")


class _GoDumper(yaml.SafeDumper):
    """YAML as Go prints it: a text that Go would read as anything else stands in double quotes."""

    def ignore_aliases(self, data: object) -> bool:
        """Never an alias: the document is for people."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """A text, quoted where it has to be."""
        style = '"' if _READ_OTHERWISE.fullmatch(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_GoDumper.add_representer(str, _GoDumper.represent_text)


@click.command("config", cls=ReportingCommand)
@click.option(
    "--config",
    "path",
    metavar="FILE",
    help="A KubeSchedulerConfiguration, YAML or JSON, or an older Policy; - reads standard input.",
)
@click.option("--preset", metavar="NAME", help=f"One that ships: {', '.join(list_presets())}.")
@plugin_option
@click.option(
    "--output-format",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="How to print the document; with --effective, yaml stands for a table.",
)
@click.option(
    "--effective",
    is_flag=True,
    help="Print which plugins run at which extension point, in order, with their score weights.",
)
@click.option(
    "--notes",
    is_flag=True,
    help="Print only what became of each part of an older document.",
)
def config_command(
    path: str | None,
    preset: str | None,
    plugin: tuple[str, ...],
    output_format: str,
    effective: bool,
    notes: bool,
) -> None:
    """Print the configuration that is really in effect.

    Reads a KubeSchedulerConfiguration (by default kube-scheduler's own defaults), fills in every
    default, merges the plugin lists, and prints the whole document as
    `kube-scheduler --write-config-to` would. A configuration that kube-scheduler would refuse is
    refused here with the field at fault and exit status 2, so the command also serves as a check.

    Older documents are translated: a Policy (apiVersion v1), and KubeSchedulerConfiguration
    v1beta3, v1beta2 and v1alpha1. What became of each part is told on standard error.

    \b
    Examples:
      roadstead config                     # the defaults, in full
      roadstead config --config mine.yaml  # mine, with defaults filled in
      roadstead config --config mine.yaml --effective
                                           # which plugin runs where and when
      roadstead config --config policy.json > mine.yaml
                                           # an older document, in today's words
      roadstead config --config policy.json --notes --output-format json
                                           # what each part of it became
      roadstead config --preset binpack > mine.yaml
                                           # a start for one of my own
      roadstead config --plugin my_plugins:Mine > mine.yaml
                                           # with a plugin of my own
      kubectl -n kube-system get cm scheduler -o jsonpath='{.data.config}' \\
        | roadstead config --config - --output-format json
    """
    if path is not None and preset is not None:
        raise click.UsageError("--config and --preset exclude each other")
    if notes and effective:
        raise click.UsageError("--notes and --effective exclude each other")
    loaded = _load(path, preset, plugin)
    if notes:
        click.echo(_notes(loaded, output_format), nl=output_format == "json" or bool(loaded.notes))
        return
    tell_config_notes(loaded)
    click.echo(_effective(loaded, output_format) if effective else _document(loaded, output_format))


def _load(path: str | None, preset: str | None, plugins: tuple[str, ...]) -> LoadedConfig:
    if path is not None:
        content, source = config_bytes(path)
    elif preset is None and plugins:
        content, source = choose_plugins(plugins).as_config().encode(), SOURCE_OF_FLAGS
    else:
        preset = preset or "default"
        content, source = preset_text(preset).encode(), f"preset {preset}"
    chosen = choose_plugins(plugins, content.decode(errors="replace"))
    return load_with(chosen, content, source)


def _document(loaded: LoadedConfig, output_format: str) -> str:
    if output_format == "json":
        return json.dumps(loaded.document, indent=2, ensure_ascii=False)
    text: str = yaml.dump(
        dict(loaded.document),
        Dumper=_GoDumper,
        sort_keys=True,
        allow_unicode=True,
        width=sys.maxsize,
    )
    return text.rstrip("\n")


def _notes(loaded: LoadedConfig, output_format: str) -> str:
    if output_format == "json":
        notes = [note.document() for note in loaded.notes]
        return json.dumps(notes, indent=2, ensure_ascii=False)
    return "\n".join(map(str, loaded.notes))


def _effective(loaded: LoadedConfig, output_format: str) -> str:
    if output_format == "json":
        return json.dumps(loaded.effective(), indent=2, ensure_ascii=False)
    return "\n\n".join(_table(profile) for profile in loaded.config.profiles)


def _table(profile: ProfileConfig) -> str:
    width = max(map(len, _POINTS_OF_A_CYCLE))
    lines = [f"profile {profile.scheduler_name}"]
    for point in _POINTS_OF_A_CYCLE:
        names = [
            f"{ref.name} (weight {ref.weight})" if point == "score" else ref.name
            for ref in profile.plugins[point]
        ] or ["-"]
        lines.append(f"  {point:<{width}}  {names[0]}")
        lines += [f"  {'':<{width}}  {name}" for name in names[1:]]
    return "\n".join(lines)
