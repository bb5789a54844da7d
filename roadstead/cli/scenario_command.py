"""`roadstead scenario`: write and check scenarios."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import OutputFormat, format_option, plugin_option

EXAMPLES: Final = ("day", "gpu", "openb", "small", "zone-loss")
_PATH = click.Path(path_type=Path)


@click.group("scenario")
def scenario_group() -> None:
    """Write and check scenarios.

    A scenario describes a fleet, the arrivals and durations of pods, the events of nodes, the
    configurations of the scheduler, the time that is played, and the seeds.

    \b
    Examples:
      roadstead scenario init -o small.yaml
      roadstead scenario check small.yaml
    """


@scenario_group.command("check", cls=ReportingCommand)
@click.argument("path", metavar="FILE", type=_PATH)
@plugin_option
@format_option
def check_command(path: Path, plugin: tuple[str, ...], output_format: OutputFormat) -> None:
    """Check a scenario and print its figures, without playing it.

    Reads all files that it names: manifests, templates, traces, configurations. An unknown key, an
    impossible value or a missing file is an error with file, line, path and rule, and exit
    status 2.

    \b
    Examples:
      roadstead scenario check small.yaml
      roadstead scenario check small.yaml --format json | jq .sources
      roadstead scenario check small.yaml --plugin my_plugins:Mine
    """
    from roadstead.api.scenario_plan import load_scenario_plan
    from roadstead.scenario.summary import summarize

    plan, _ = load_scenario_plan(path, plugin)
    summary = summarize(plan)
    if output_format == "json":
        click.echo(json.dumps(summary.as_json(), indent=2))
        return
    from roadstead.cli.notes import wrapped
    from roadstead.cli.scenario_table import summary_lines
    from roadstead.protocol.errors import printable

    text = printable("\n".join(summary_lines(summary)))
    click.echo(wrapped(text) if sys.stdout.isatty() else text)


@scenario_group.command("init", cls=ReportingCommand)
@click.argument(
    "name", metavar="[NAME]", type=click.Choice(EXAMPLES), default="small", required=False
)
@click.option("-o", "--output", "path", metavar="FILE", type=_PATH, help="Output file.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def init_command(name: str, path: Path | None, force: bool) -> None:
    """Print or write a scenario with comments, as a base for your own.

    \b
    small      20 nodes, pods that come and go, a deployment, drained nodes
    zone-loss  four zones, of which one is lost
    day        a day of a fleet that loses a zone (roadstead demo --live)
    openb      the openb trace; needs roadstead trace import openb first
    gpu        training and inference on GPUs, gangs, a fleet that grows

    \b
    Examples:
      roadstead scenario init > small.yaml
      roadstead scenario init zone-loss -o zone-loss.yaml
    """
    from roadstead.config.scenario.examples import example_text

    text = example_text(name)
    if path is None:
        click.echo(text, nl=False)
        return
    from roadstead.cli.schedule_run import write_text
    from roadstead.protocol.errors import InputError

    if path.exists() and not force:
        raise InputError("exists already (--force replaces it)", source=str(path))
    write_text(path, text)
    click.echo(f"{path}: check it with roadstead scenario check {path}")
