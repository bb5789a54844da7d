"""Printing the answers of queries."""

from __future__ import annotations

import csv
import json
import sys
from itertools import islice
from pathlib import Path

import click

from roadstead.api.run_query import QueryResult, RunQuery, Value
from roadstead.cli.options import QueryFormat
from roadstead.protocol.errors import printable

CELL_MAX_CHARS = 200


def query(folder: Path, sql: str) -> QueryResult:
    """Return the answer of a statement. Raises InputError."""
    return RunQuery(folder).execute(sql)


def print_answer(answer: QueryResult, output_format: QueryFormat, rows_max: int | None) -> None:
    """Print an answer as it is read. rows_max: maximum number of rows of a table; None for all."""
    if output_format == "json":
        _print_json(answer)
    elif output_format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
    else:
        _print_table(answer, rows_max)


def _print_json(answer: QueryResult) -> None:
    # Row by row: the whole answer may be large.
    before = "[\n"
    for row in answer.rows:
        named = dict(zip(answer.columns, row, strict=True))
        click.echo(f"{before}  {json.dumps(named, default=str)}", nl=False)
        before = ",\n"
    click.echo("[]" if before == "[\n" else "\n]")


def _print_table(answer: QueryResult, rows_max: int | None) -> None:
    from roadstead.report.text_table import Column, print_table, text_column, wide_console

    rows = list(islice(answer.rows, rows_max))
    is_more = next(answer.rows, None) is not None
    is_figure = [
        any(_is_number(row[at]) for row in rows)
        and all(row[at] is None or _is_number(row[at]) for row in rows)
        for at in range(len(answer.columns))
    ]
    columns = [
        Column(printable(name)) if figure else text_column(printable(name))
        for name, figure in zip(answer.columns, is_figure, strict=True)
    ]
    left_out = "… and more; --rows 0 prints all" if is_more else ""
    cells = [[_cell(value) for value in row] for row in rows]
    print_table(wide_console(), "", columns, cells, left_out=left_out)


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Value) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    shown = printable(str(value))
    return f"{shown[:CELL_MAX_CHARS]}…" if len(shown) > CELL_MAX_CHARS else shown
