"""`roadstead plugin`: writing, testing and listing plugins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from roadstead.cli.errors import FAILED, ReportingCommand
from roadstead.cli.options import (
    Form,
    PlanOptions,
    SourceOptions,
    config_parameters,
    fleet_parameters,
    format_option,
    gathered,
)

SEEDS, SEEDS_MAX = 3, 100
NODES, NODES_MAX = 40, 5_000


@click.group("plugin")
def plugin_group() -> None:
    """Write, test and list plugins.

    A plugin is a Python class: about fifteen lines over a table of all nodes, or node by node. It
    is named on the command line with --plugin MODULE:CLASS (or FILE.py, for all plugins of a file
    in the working directory) or offered by an installed package under the entry point group
    roadstead.plugins; never by a manifest.

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
@click.option("--per-node", is_flag=True, help="Node by node: simpler, and slower.")
@click.option(
    "--output",
    "directory",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Where to write it [default: the working directory].",
)
@click.option("--force", is_flag=True, help="Write over files that are there.")
def new_command(name: str, per_node: bool, directory: Path, force: bool) -> None:
    """Write a plugin NAME that works, to be changed, and its test.

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
        click.echo(f"Kept {path}, which is there already (--force writes over it)", err=True)
    where = "" if directory == Path() else f"cd {directory} && "
    click.echo(f"Try it: {where}roadstead plugin test {written.path}")


@plugin_group.command("test", cls=ReportingCommand)
@click.argument("path", metavar="MODULE:CLASS")
@click.option("--args", "args_text", metavar="JSON", help="Its arguments, as in pluginConfig.")
@gathered("source", SourceOptions, fleet_parameters)
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
    help="Warnings fail, too; so does a field of a pod that Kubernetes does not have.",
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
    form: Form,
) -> None:
    """Try a plugin on a fleet: see what it changes, and check what the scheduler relies on.

    The fleet is the one that --cluster and --pods describe (the manifests that roadstead schedule
    reads), or a trace; without them fleets are generated, one per seed. The plugin is tried beside
    the default plugins, with weight 1. Nothing is sent anywhere.

    What it does on the fleet: how many nodes it refuses, whether its scores differ between nodes,
    how many pods go elsewhere than without it, and how often its other hooks are called. What the
    scheduler relies on: it decides the same in one process and with 1 and 5 workers, answers the
    same when asked again, leaves the table alone, reads no more than it says, scores from 0 to
    100, and signs rightly: pods of equal signature get equal answers.

    A warning says that a check had nothing to decide, and what to give: a filter that refused no
    node, scores that are the same for all nodes, a hook that was never called. A plugin that fails
    is named with file, line and pod.

    Exit status: 0 if no check failed, warnings or not; 1 if a check failed, with --strict also if
    one warned; 2 if the plugin, its arguments or the fleet cannot be read.

    \b
    Examples:
      roadstead plugin test few_pods:FewPods
      roadstead plugin test few_pods:FewPods --cluster cluster.yaml --pods app/
                                           # on a fleet of my own
      roadstead plugin test few_pods:FewPods --args '{"maxPods": 20}' --seeds 10
      roadstead plugin test few_pods.py --cluster ci/ --pods pods.yaml --strict
                                         # in CI: a check without work fails, too
      roadstead plugin test few_pods:FewPods --format json | jq .checks
    """
    is_given = source != SourceOptions()
    if is_given:
        if seeds is not None or nodes is not None:
            raise click.UsageError("--seeds and --nodes are for generated fleets")
        source.check()
    from roadstead.cli.plugin.outcome import Outcome
    from roadstead.cli.plugin.report import print_checks, read_args
    from roadstead.cli.plugin.trial import on_given_fleet, on_sample_fleets

    args = read_args(args_text)
    if is_given:
        trial = on_given_fleet(path, args, replace(source, strict=is_strict))
    else:
        trial = on_sample_fleets(path, args, seeds or SEEDS, nodes or NODES)
    print_checks(path, trial, form)
    outcomes = {check.outcome for check in trial.checks}
    if Outcome.FAILED in outcomes or (is_strict and Outcome.WARNING in outcomes):
        ctx.exit(FAILED)


@plugin_group.command("list", cls=ReportingCommand)
@gathered("plan", PlanOptions, config_parameters)
@format_option
def list_command(*, plan: PlanOptions, form: Form) -> None:
    """List the plugins that are known here, and where a configuration enables them.

    The in-tree plugins, those that installed packages offer, and those of --plugin: each with the
    file that defines it, the extension points that it implements, and the profiles that enable it
    with the weight of its scores. The configuration is that of --config or --preset; without one
    it is the default one, which the plugins of --plugin join, as in roadstead schedule.

    \b
    Examples:
      roadstead plugin list
      roadstead plugin list --plugin few_pods.py
      roadstead plugin list --plugin few_pods:FewPods --config mine.yaml
      roadstead plugin list --plugin few_pods:FewPods --format json
    """
    plan.check()
    from roadstead.cli.plugin.listing import known_plugins, print_plugins

    print_plugins(known_plugins(plan), form)
