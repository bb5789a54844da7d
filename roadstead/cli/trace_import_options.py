"""Options of all imports of traces but openb, and the import itself with progress and report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from roadstead.cli.options import OutputFormat, format_option, options_as

if TYPE_CHECKING:
    from roadstead.traces.files import ProgressMeter
    from roadstead.traces.machines import MachineSpec
    from roadstead.traces.sink import TraceSink

PATH = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """Values of the options of every import. path: of the trace that is written."""

    path: Path
    on_error: Literal["stop", "skip"]
    sample: float
    seed: int
    output_format: OutputFormat


_COMMON_OPTIONS = (
    click.option(
        "-o", "--output", "path", metavar="PATH", type=PATH, required=True, help="Output file."
    ),
    click.option(
        "--on-error",
        type=click.Choice(["stop", "skip"]),
        default="stop",
        show_default=True,
        help="What to do with a row that has a wrong cell or the name of an earlier row: stop with "
        "an error, or leave it out and count it.",
    ),
    click.option(
        "--sample",
        type=click.FloatRange(0, 1, min_open=True),
        default=1.0,
        show_default=True,
        metavar="SHARE",
        help="Share of the jobs to import, whole jobs, chosen by a hash of seed and id.",
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of --sample."
    ),
    format_option,
)
cpu_option = click.option(
    "--node-cpu",
    type=click.FloatRange(0.001, 1_000_000),
    default=64,
    show_default=True,
    metavar="CORES",
    help="Cores of a node. If the trace has shares of a machine: the cores of a share of 1.0.",
)
memory_option = click.option(
    "--node-memory",
    default="256Gi",
    show_default=True,
    metavar="QUANTITY",
    help="Memory of a node. If the trace has shares of a machine: the memory of a share of 1.0.",
)
nodes_option = click.option(
    "--nodes",
    type=click.IntRange(0, 5_000_000),
    metavar="N",
    help="Number of nodes, for a trace that does not state it.",
)


common_options = options_as("common", CommonOptions, _COMMON_OPTIONS)
"""Decorator: adds the options of every import, which the command receives as `common`."""


def machine_spec(node_cpu: float, node_memory: str, nodes: int | None = None) -> MachineSpec:
    """Return the machines that the options describe; InputError for a wrong memory.

    nodes: their number; None if the trace states it.
    """
    from roadstead.protocol.errors import InputError, cut_short
    from roadstead.protocol.quantity import QuantityError, parse_quantity
    from roadstead.traces.machines import MachineSpec
    from roadstead.traces.rows import AMOUNT_MAX

    try:
        memory = parse_quantity(node_memory).value()
    except QuantityError as error:
        value = cut_short(node_memory)
        raise InputError(str(error), field="--node-memory", value=value) from None
    if not 0 < memory <= AMOUNT_MAX:
        problem = f"is not a number of bytes up to {AMOUNT_MAX}"
        raise InputError(problem, field="--node-memory", value=cut_short(node_memory))
    return MachineSpec(round(node_cpu * 1000), memory, nodes)


def run_import(
    name: str,
    common: CommonOptions,
    read: Callable[[TraceSink, ProgressMeter], None],
    *,
    namespace: str,
) -> None:
    """Import a trace with progress, and print the report.

    name: of its source, for the report. read: passes nodes and pods of the source to the sink,
    which writes the trace, and reports to the meter how much of the files it has read. namespace:
    of its pods.
    """
    from rich.console import Console

    from roadstead.cli.trace_progress import shown_steps
    from roadstead.traces.import_report import import_json, print_import
    from roadstead.traces.importing import ImportOptions, import_trace

    options = ImportOptions(common.on_error, common.sample, common.seed)
    with shown_steps() as report:
        result = import_trace(name, namespace, read, common.path, options, report)
    if common.output_format == "json":
        click.echo(import_json(result))
    else:
        print_import(Console(), result)
