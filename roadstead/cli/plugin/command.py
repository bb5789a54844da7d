"""`roadstead plugin`: writing, testing and listing plugins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from roadstead.cli.errors import FAILED, ReportingCommand
from roadstead.cli.options import (
    OutputFormat,
    RunOptions,
    SourceOptions,
    config_parameters,
    fleet_parameters,
    format_option,
    options_as,
)

SEEDS, SEEDS_MAX = 3, 100
NODES, NODES_MAX = 40, 5_000
"""Default and maximum of the options for generated fleets."""


@click.group("plugin")
def plugin_group() -> None:
    """Write, test and list plugins.

    A plugin is a Python class of about fifteen lines; it answers for a table of all nodes, or node
    by node. The command line names it with --plugin MODULE:CLASS (or FILE.py, for all plugins of a
    file in the working directory), or an installed package offers it in the entry point group
    roadstead.plugins. A manifest cannot name code.

    \b
    Examples:
      roadstead plugin new FewPods         # few_pods.py and its test
      roadstead plugin test few_pods:FewPods
      roadstead plugin test few_pods:FewPods --cluster cluster.yaml --pods app/
      roadstead schedule --trace openb.trace --plugin few_pods:FewPods
      roadstead plugin list
    """


@plugin_group.command("new", cls=ReportingCommand)
@click.argument("name", metavar="NAME")
@click.option("--per-node", is_flag=True, help="Answer node by node: simpler, and slower.")
@click.option(
    "--output",
    "directory",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Folder for the files [default: the working directory].",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def new_command(name: str, per_node: bool, directory: Path, force: bool) -> None:
    """Write a working plugin NAME and its test.

    \b
    Examples:
      roadstead plugin new FewPods
      roadstead plugin new FewPods --per-node --output plugins
    """
    from roadstead.cli.plugin.files import write_plugin

    written = write_plugin(name, directory, per_node=per_node, force=force)
    for path in written.files:
        click.echo(f"Wrote {path}")
    for path in written.kept:
        click.echo(f"Kept {path}, which exists (--force overwrites it)", err=True)
    where = "" if directory == Path() else f"cd {directory} && "
    click.echo(f"Try it: {where}roadstead plugin test {written.path}")


@plugin_group.command("test", cls=ReportingCommand)
@click.argument("path", metavar="MODULE:CLASS")
@click.option(
    "--args", "args_text", metavar="JSON", help="Arguments of the plugin, as in pluginConfig."
)
@options_as("source", SourceOptions, fleet_parameters)
@click.option(
    "--seeds",
    type=click.IntRange(1, SEEDS_MAX),
    metavar="N",
    help=f"Number of generated fleets [default: {SEEDS}].",
)
@click.option(
    "--nodes",
    type=click.IntRange(2, NODES_MAX),
    metavar="N",
    help=f"Nodes of each generated fleet, which has three times as many pods [default: {NODES}].",
)
@click.option(
    "--strict",
    "is_strict",
    is_flag=True,
    help="Fail also on a warning, and on a field of a pod that Kubernetes does not have.",
)
@format_option
@click.pass_context
def test_command(
    ctx: click.Context,
    *,
    path: str,
    args_text: str | None,
    source: SourceOptions,
    seeds: int | None,
    nodes: int | None,
    is_strict: bool,
    output_format: OutputFormat,
) -> None:
    """Check a plugin on a fleet, and show what it changes.

    The fleet is that of --cluster and --pods (the manifests that roadstead schedule reads), or a
    trace. Without these options, fleets are generated, one for each seed. The plugin runs with the
    default plugins, with weight 1. Nothing is sent to a cluster.

    Effects that are shown: the nodes that the plugin refuses, whether its scores differ between
    nodes, the pods that are placed on another node than without the plugin, and the calls of its
    other hooks.

    Rules that are checked: decisions are the same without workers and with 1 and 5 of them, a
    second call returns the same answers, the plugin does not change the table, it reads no more
    than it declares, scores are from 0 to 100, and pods of equal signature have equal answers.

    A warning means that a check had nothing to decide: a filter refused no node, all scores were
    equal, or a hook was not called. Its text names the pods or nodes to add. A failure of the
    plugin is reported with file, line and pod.

    Exit status: 0 no check failed, with or without warnings; 1 a check failed, or with --strict a
    check warned; 2 the plugin, its arguments or the fleet cannot be read.

    \b
    Examples:
      roadstead plugin test few_pods:FewPods
      roadstead plugin test few_pods:FewPods --cluster cluster.yaml --pods app/
                                           # on a fleet of my own
      roadstead plugin test few_pods:FewPods --args '{"maxPods": 20}' --seeds 10
      roadstead plugin test few_pods.py --cluster ci/ --pods pods.yaml --strict
                                         # in CI: warnings fail, too
      roadstead plugin test few_pods:FewPods --format json | jq .checks
    """
    has_source = source != SourceOptions()
    if has_source:
        if seeds is not None or nodes is not None:
            raise click.UsageError("--seeds and --nodes exclude --cluster, --pods and --trace")
        source.check()
    from roadstead.cli.plugin.outcome import CheckOutcome
    from roadstead.cli.plugin.report import print_checks, read_args
    from roadstead.cli.plugin.testing import on_sample_fleets, on_users_fleet

    args = read_args(args_text)
    if has_source:
        test = on_users_fleet(path, args, replace(source, strict=is_strict))
    else:
        test = on_sample_fleets(path, args, seeds or SEEDS, nodes or NODES)
    print_checks(path, test, output_format)
    outcomes = {check.outcome for check in test.checks}
    if CheckOutcome.FAILED in outcomes or (is_strict and CheckOutcome.WARNING in outcomes):
        ctx.exit(FAILED)


@plugin_group.command("list", cls=ReportingCommand)
@options_as("options", RunOptions, config_parameters)
@format_option
def list_command(*, options: RunOptions, output_format: OutputFormat) -> None:
    """List plugins, and the profiles that enable them.

    The list contains the in-tree plugins, those of installed packages, and those of --plugin. Each
    row has the file that defines the plugin, the extension points that it implements, and the
    profiles that enable it, with the weight of its scores. The configuration is that of --config
    or --preset; by default it is the default configuration with the plugins of --plugin added, as
    in roadstead schedule.

    \b
    Examples:
      roadstead plugin list
      roadstead plugin list --plugin few_pods.py
      roadstead plugin list --plugin few_pods:FewPods --config mine.yaml
      roadstead plugin list --plugin few_pods:FewPods --format json
    """
    options.check()
    from roadstead.cli.plugin.listing import known_plugins, print_plugins

    print_plugins(known_plugins(options), output_format)
