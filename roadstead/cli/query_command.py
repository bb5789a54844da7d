"""`roadstead query`: SQL over the tables of simulated runs."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import QueryFormat, check_run_is_first


@click.command("query", cls=ReportingCommand)
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("sql", metavar="SQL")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(get_args(QueryFormat)),
    default="table",
    show_default=True,
    help="Output format. json: an array with an object for each row.",
)
@click.option(
    "--rows",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of rows of a table; 0 prints all. csv and json always have all.",
)
def query_command(folder: Path, sql: str, output_format: QueryFormat, rows: int) -> None:
    """Query the tables of simulated runs with SQL (duckdb).

    RUN is the folder of roadstead simulate, or that of one run, also of roadstead sweep --tables.
    The tables are pods, classes, attempts, events, nodes, samples, class_samples, devices and
    allocations; with several runs each begins with the columns config and seed. Times are
    microseconds from the start of the scenario. A statement is one SELECT, FROM, WITH, DESCRIBE
    or SUMMARIZE, or EXPLAIN of one; it reads these tables and no other file, and uses at most 2 GB
    of memory.

    \b
    Examples:
    How long did pods wait, by owner?
      roadstead query small.run "SELECT owner, count(*) AS pods,
        quantile_disc(waited_us, 0.5) / 1e6 AS p50_s,
        quantile_disc(waited_us, 0.99) / 1e6 AS p99_s
        FROM pods GROUP BY owner ORDER BY owner"
    Why were pods not placed?
      roadstead query small.run "SELECT plugins, count(DISTINCT pod) AS pods,
        count(*) AS attempts FROM attempts WHERE outcome = 'pending'
        GROUP BY plugins ORDER BY pods DESC"
    Which reasons refused how many nodes?
      roadstead query small.run "SELECT reason, sum(nodes) AS nodes FROM
        (SELECT unnest(reasons) AS reason, unnest(reason_nodes) AS nodes
        FROM attempts) GROUP BY reason ORDER BY nodes DESC"
    How did pods end, by hour?
      roadstead query small.run "SELECT ended_us // 3600000000 AS hour,
        ending, count(*) AS pods FROM pods WHERE ending IS NOT NULL
        GROUP BY ALL ORDER BY ALL"
    What share of the CPU was requested, by zone?
      roadstead query small.run "SELECT zone,
        sum(value) FILTER (metric = 'requested') /
        sum(value) FILTER (metric = 'allocatable') AS share
        FROM samples WHERE resource = 'cpu' GROUP BY zone ORDER BY zone"
    Which seeds had the longest waits?
      roadstead query small.run "SELECT config, seed, max(waited_us) / 1e6 AS
        longest_s FROM pods GROUP BY ALL ORDER BY longest_s DESC"
    How often was each device allocated?
      roadstead query small.run "SELECT pool, device, count(*) AS times
        FROM allocations WHERE what = 'allocated' GROUP BY ALL ORDER BY ALL"
    Which columns are there?
      roadstead query small.run "DESCRIBE pods"

    Exit status: 0 done, 2 an invalid statement or folder.
    """
    from roadstead.cli.query_run import print_answer, query

    check_run_is_first(folder, sql, "SQL")
    answer = query(folder, sql)
    print_answer(answer, output_format, rows or None)
