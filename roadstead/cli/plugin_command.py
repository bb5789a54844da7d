"""`roadstead plugin`: writing, testing and listing plugins."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.errors import FAILED, ReportingCommand
from roadstead.cli.options import Form, format_option, plugin_option

SEEDS_MAX, NODES_MAX = 100, 5_000


@click.group("plugin")
def plugin_group() -> None:
    """Write, test and list plugins.

    A plugin is a Python class: about fifteen lines over a table of all nodes, or node by node. It
    is named on the command line with --plugin MODULE:CLASS or offered by an installed package
    under the entry point group roadstead.plugins; never by a manifest.

    \b
    Examples:
      roadstead plugin new FewPods         # few_pods.py and its test
      roadstead plugin test few_pods:FewPods
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
    from roadstead.cli.plugin_files import write_plugin

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
@click.option(
    "--seeds",
    type=click.IntRange(1, SEEDS_MAX),
    default=3,
    show_default=True,
    metavar="N",
    help="How many fleets to try it on.",
)
@click.option(
    "--nodes",
    type=click.IntRange(2, NODES_MAX),
    default=40,
    show_default=True,
    metavar="N",
    help="Nodes of each; three times as many pods.",
)
@format_option
@click.pass_context
def test_command(
    ctx: click.Context, path: str, args_text: str | None, seeds: int, nodes: int, form: Form
) -> None:
    """Try a plugin on sample fleets, and check what the scheduler relies on.

    Generated fleets, one per seed, on which pods are placed and deleted. Checks that the plugin
    decides the same in one process and with 1 and 5 workers; answers the same when asked again;
    leaves the table alone; reads no more than it says; scores from 0 to 100; and signs rightly:
    pods of equal signature get equal answers. Exit status 1 if a check fails.

    \b
    Examples:
      roadstead plugin test few_pods:FewPods
      roadstead plugin test few_pods:FewPods --args '{"maxPods": 20}' --seeds 10
      roadstead plugin test few_pods:FewPods --format json | jq .checks
    """
    from roadstead.cli.plugin_advice import left_out
    from roadstead.cli.plugin_checks import Outcome, run_checks
    from roadstead.cli.plugin_choice import choose_plugins
    from roadstead.cli.plugin_report import print_checks, read_args
    from roadstead.cli.plugin_samples import sample_fleet
    from roadstead.cli.plugin_subject import subject_of
    from roadstead.config.settings import Deadlines
    from roadstead.plugin_watch import watched

    subject = subject_of(choose_plugins([path]), read_args(args_text))
    fleets = [sample_fleet(seed, nodes, 3 * nodes) for seed in range(seeds)]
    with watched(Deadlines().plugin_s):
        checks = run_checks(subject, fleets)
        failed = any(check.outcome is Outcome.FAILED for check in checks)
        if subject.is_asked and not failed and (advice := left_out(subject, fleets)) is not None:
            checks.append(advice)
    print_checks(path, subject, checks, form)
    if failed:
        ctx.exit(FAILED)


@plugin_group.command("list", cls=ReportingCommand)
@plugin_option
@format_option
def list_command(plugin: tuple[str, ...], form: Form) -> None:
    """List all plugins that are known here, with their extension points.

    The in-tree ones, those that installed packages offer, and those of --plugin.

    \b
    Examples:
      roadstead plugin list
      roadstead plugin list --plugin few_pods:FewPods --format json
    """
    from roadstead.cli.plugin_report import known_plugins, print_plugins

    print_plugins(known_plugins(plugin), form)
