"""`roadstead config`: what a configuration means once defaults and multiPoint are applied."""

from __future__ import annotations

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import PRESETS, plugin_option


@click.command("config", cls=ReportingCommand)
@click.option(
    "--config",
    "path",
    metavar="FILE",
    help="KubeSchedulerConfiguration, YAML or JSON, or an older Policy; - reads standard input.",
)
@click.option("--preset", metavar="NAME", help=f"Included configuration: {PRESETS}.")
@plugin_option
@click.option(
    "--output-format",
    "--format",
    "-o",
    "output_format",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="Output format; with --effective, yaml prints a table.",
)
@click.option(
    "--effective",
    is_flag=True,
    help="Print the plugins of each extension point, in order, with their score weights.",
)
@click.option(
    "--notes",
    is_flag=True,
    help="Print only the notes on the translation of each part of an older document.",
)
def config_command(
    path: str | None,
    preset: str | None,
    plugin: tuple[str, ...],
    output_format: str,
    effective: bool,
    notes: bool,
) -> None:
    """Print the configuration in effect.

    Reads a KubeSchedulerConfiguration (by default kube-scheduler's own defaults), fills in every
    default, merges the plugin lists, and prints the whole document as
    `kube-scheduler --write-config-to` would. A configuration that kube-scheduler would refuse is an
    error that names the field, with exit status 2, so the command also serves as a check.

    Older documents are translated: a Policy (apiVersion v1), and KubeSchedulerConfiguration
    v1beta3, v1beta2 and v1alpha1. A note on each translated part is printed on standard
    error.

    \b
    Examples:
      roadstead config                     # the defaults, in full
      roadstead config --config mine.yaml  # mine, with defaults filled in
      roadstead config --config mine.yaml --effective
                                           # plugins by extension point
      roadstead config --config policy.json > mine.yaml
                                           # an older document as v1
      roadstead config --config policy.json --notes --output-format json
                                           # the translation of each part
      roadstead config --preset binpack > mine.yaml
                                           # a base for my own
      roadstead config --plugin my_plugins:Mine > mine.yaml
                                           # with a plugin of my own
      kubectl -n kube-system get cm scheduler -o jsonpath='{.data.config}' \\
        | roadstead config --config - --output-format json
    """
    if path is not None and preset is not None:
        raise click.UsageError("--config and --preset exclude each other")
    if notes and effective:
        raise click.UsageError("--notes and --effective exclude each other")
    from roadstead.api.config_source import config_notes, load_effective
    from roadstead.cli import config_text
    from roadstead.cli.notes import echo_note

    loaded = load_effective(path, preset, plugin)
    if notes:
        text = config_text.notes_text(loaded, output_format)
        # Without notes, nothing is printed; JSON is then an empty list.
        click.echo(text, nl=output_format == "json" or bool(loaded.notes))
        return
    for note in config_notes(loaded):
        echo_note(note)
    format_text = config_text.effective_text if effective else config_text.document_text
    click.echo(format_text(loaded, output_format))
