"""`roadstead trace`: its commands, and the import and display of openb."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.trace_import import IMPORT_COMMANDS
from roadstead.cli.trace_tools import TOOLS

if TYPE_CHECKING:
    from roadstead.fleet.trace import Trace

_PATH = click.Path(path_type=Path)
LINE_CHARS: Final = 80
"""Width of a usual terminal."""


@click.group("trace")
def trace_group() -> None:
    """Import, show and change traces.

    A trace is a file with a fleet of nodes and a sequence of pods that arrive and run for a time,
    in a compact format of Roadstead.

    \b
    Examples:
      roadstead trace import openb data/openb -o openb.trace
      roadstead trace stats openb.trace
      roadstead trace scale openb.trace --by 2 -o twice.trace
      roadstead schedule --trace openb.trace
    """


@trace_group.group("import")
def import_group() -> None:
    """Make a trace from the files of a published trace.

    \b
    Examples:
      roadstead trace import openb data/openb -o openb.trace
      roadstead trace import google-2011 clusterdata-2011-2 --sample 0.01 \\
        -o google.trace
      roadstead trace import table jobs.csv --mapping jobs.yaml -o jobs.trace
    """


for _command in IMPORT_COMMANDS:
    import_group.add_command(_command)
for _command in TOOLS:
    trace_group.add_command(_command)


@import_group.command("openb", cls=ReportingCommand)
@click.argument("folder", metavar="DIR", type=_PATH)
@click.option(
    "-o", "--output", "path", metavar="PATH", type=_PATH, required=True, help="Output file."
)
@click.option(
    "--pods-list",
    metavar="NAME",
    default="default",
    show_default=True,
    help="List of pods: the file openb_pod_list_NAME.csv.",
)
@click.option(
    "--manifests",
    metavar="PATH",
    type=_PATH,
    help="Also write the trace as Kubernetes manifests: JSON for *.json, else YAML.",
)
def openb_command(folder: Path, path: Path, pods_list: str, manifests: Path | None) -> None:
    """Make a trace from the openb CSV files in DIR.

    openb is a production GPU cluster of 1,523 nodes and 8,152 pods, published with "Beware of
    Fragmentation" (USENIX ATC'23). Roadstead does not ship it: download
    openb_node_list_all_node.csv and openb_pod_list_default.csv, or another openb_pod_list_*.csv,
    into a folder DIR from

    \b
    https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023/csv

    GPU shares become the resource alibabacloud.com/gpu-milli, GPU models become a node label and a
    required node affinity, and qos becomes a pod label. Creation and deletion times are kept.

    \b
    Examples:
      roadstead trace import openb data/openb -o openb.trace
      roadstead trace import openb data/openb -o gpu.trace --pods-list gpuspec33
      roadstead trace import openb data/openb -o openb.trace \\
        --manifests openb.yaml
    """
    from roadstead.cli.schedule_run import write_text
    from roadstead.fleet.openb import import_openb
    from roadstead.fleet.trace_file import write_trace

    trace = import_openb(folder, pods_list)
    digest = write_trace(path, trace)
    if manifests is not None:
        from roadstead.fleet.manifests import manifests_text

        write_text(manifests, manifests_text(trace, _form_of(manifests)))
    click.echo(_facts(trace, digest))


def _form_of(path: Path) -> Literal["json", "yaml"]:
    return "json" if path.suffix == ".json" else "yaml"


@trace_group.command("show", cls=ReportingCommand, short_help="Print the totals of a trace.")
@click.argument("path", metavar="PATH", type=_PATH)
def show_command(path: Path) -> None:
    """Print the contents of a trace: counts, time span, and amounts of each resource.

    \b
    Examples:
      roadstead trace show openb.trace
    """
    from roadstead.fleet.trace_file import read_trace, trace_digest

    trace = read_trace(path)
    click.echo(_facts(trace, trace_digest(trace)))


def _facts(trace: Trace, digest: str) -> str:
    """Return the contents of a trace as lines: counts, time span, amounts, digest."""
    from roadstead.cli.trace_facts import trace_facts

    rows = [*trace_facts(trace), ("content sha256", digest)]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {text}" for name, text in rows]
    # A digest is not broken; with long names it is on a line of its own.
    return "\n".join(
        line if len(line) <= LINE_CHARS else f"{name}\n  {text}"
        for line, (name, text) in zip(lines, rows, strict=True)
    )
