"""Rows of a table, with readers of cells that name file, line, column and value of a wrong one."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roadstead.fleet.trace import S_MS, TIME_MAX_S
from roadstead.protocol.errors import InputError, cut_short
from roadstead.traces.files import ProgressMeter, read_lines

AMOUNT_MAX = 1 << 53
"""The largest amount of a resource: 9 PB of memory. A thousand of them still fit into int64."""

_INTEGER = re.compile(r"[-+]?[0-9]{1,19}")
_REAL = re.compile(r"[-+]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?")


@dataclass(slots=True)
class Row:
    """One line of a table and its position. columns: the index of each column by name."""

    source: str
    line: int
    cells: Sequence[str]
    columns: Mapping[str, int]

    def error(self, column: str, problem: str) -> InputError:
        """Return an error that names the cell."""
        value = cut_short(self.text(column))
        return InputError(
            problem, source=self.source, obj=f"line {self.line}", field=column, value=value
        )

    def text(self, column: str) -> str:
        return self.cells[self.columns[column]].strip()

    def is_empty(self, column: str) -> bool:
        return not self.text(column)

    def integer(self, column: str) -> int:
        """Return a whole number within int64."""
        text = self.text(column)
        if not _INTEGER.fullmatch(text):
            raise self.error(column, "is not a whole number")
        value = int(text)
        if not -(1 << 63) <= value < 1 << 63:
            raise self.error(column, "is beyond int64")
        return value

    def real(self, column: str) -> float:
        """Return a finite number; NaN, infinity and words are errors."""
        text = self.text(column)
        if not _REAL.fullmatch(text):
            raise self.error(column, "is not a number")
        value = float(text)
        if not -1e300 < value < 1e300:
            raise self.error(column, "is too large")
        return value

    def time_ms(self, column: str, unit_s: float = 1) -> int:
        """Return a time in milliseconds; unit_s: seconds of the column's unit. May be negative."""
        seconds = self.real(column) * unit_s
        if not -TIME_MAX_S <= seconds <= TIME_MAX_S:
            raise self.error(column, "is more than 292 years (int64 nanoseconds)")
        return round(seconds * S_MS)

    def amount(self, column: str, unit: float = 1) -> int:
        """Return an amount of a resource. unit: the amount that is 1 in the column."""
        value = self.real(column) * unit
        if value < 0:
            raise self.error(column, "is negative")
        if value > AMOUNT_MAX:
            raise self.error(column, f"is more than {AMOUNT_MAX / unit:.6g}")
        return round(value)

    def count(self, column: str, maximum: int) -> int:
        """Return a whole number from 0 to `maximum`, which may be written as 3.0."""
        value = self.real(column)
        if value != int(value) or value < 0:
            raise self.error(column, "is not a whole number from 0")
        if value > maximum:
            raise self.error(column, f"is more than {maximum}")
        return int(value)


def read_table(
    path: Path, columns: Sequence[str], meter: ProgressMeter, *, delimiter: str = ","
) -> Iterator[Row]:
    """Yield the rows of a CSV file without a header, whose columns are known by their order.

    A first line that repeats the names of the columns is left out. Raises InputError for a line
    with another number of cells, and for text that is no CSV.
    """
    index_of = {name: index for index, name in enumerate(columns)}
    for line, cells in read_cells(path, meter, delimiter):
        if line == 1 and [cell.strip() for cell in cells] == list(columns):
            continue
        yield _row(str(path), line, cells, index_of)


def _row(source: str, line: int, cells: Sequence[str], index_of: Mapping[str, int]) -> Row:
    if len(cells) != len(index_of):
        problem = f"has {len(cells)} cells for {len(index_of)} columns"
        raise InputError(problem, source=source, obj=f"line {line}")
    return Row(source, line, cells, index_of)


def read_header_table(path: Path, meter: ProgressMeter, *, delimiter: str = ",") -> Iterator[Row]:
    """Yield the rows of a CSV file whose first line names the columns."""
    index_of: dict[str, int] = {}
    for line, cells in read_cells(path, meter, delimiter):
        if not index_of:
            index_of = _header(str(path), cells)
        else:
            yield _row(str(path), line, cells, index_of)


def read_numbered_table(path: Path, meter: ProgressMeter, *, delimiter: str = ",") -> Iterator[Row]:
    """Yield the rows of a CSV file without a header; columns are named by their number, from 1."""
    index_of: dict[str, int] = {}
    for line, cells in read_cells(path, meter, delimiter):
        index_of = index_of or {str(index + 1): index for index in range(len(cells))}
        yield _row(str(path), line, cells, index_of)


def _header(source: str, cells: Sequence[str]) -> dict[str, int]:
    names = [cell.strip() for cell in cells]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        problem = "is twice in the header"
        raise InputError(problem, source=source, obj="line 1", value=cut_short(twice))
    return {name: index for index, name in enumerate(names)}


def read_cells(
    path: Path, meter: ProgressMeter, delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of a CSV file; empty lines are left out."""
    # The reader refuses cells of more than 128 KiB, so a quote that is never closed ends early.
    reader = csv.reader((text for _, text in read_lines(path, meter)), delimiter=delimiter)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        position = f"line {reader.line_num}"
        raise InputError(f"is not CSV: {error}", source=str(path), obj=position) from error
