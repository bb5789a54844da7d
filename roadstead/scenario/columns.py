"""Times in a column of a CSV file."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roadstead.config.files import read_text
from roadstead.config.scenario.values import LONGEST_US
from roadstead.protocol.errors import InputError, cut_short

FILE_MAX_BYTES: Final = 1 << 28
ROWS_MAX: Final = 10_000_000
UNITS_US: Final = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}

_NUMBER = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))?", re.ASCII)


def read_times(path: Path, column: str, unit: str) -> NDArray[np.int64]:
    """Read the times of a column as microseconds: int64[rows], in the file's order.

    unit: of the numbers in the file, a key of UNITS_US. Digits beyond microseconds are cut. Raises
    InputError with file, line and column for a file that is no such table or has no rows, and for
    anything but a number from 0 to 100 years.
    """
    source = str(path)
    reader = csv.reader(io.StringIO(read_text(path, FILE_MAX_BYTES), newline=""), strict=True)
    times: list[int] = []
    try:
        header = next(reader, [])
        if header.count(column) != 1:
            problem = f"must be once in the header ({cut_short(','.join(header))})"
            raise InputError(problem, source=source, obj="line 1", field=column)
        place = header.index(column)
        for cells in reader:
            if not cells:
                continue
            where = f"line {reader.line_num}"
            if len(cells) != len(header):
                problem = f"has {len(cells)} cells for {len(header)} columns"
                raise InputError(problem, source=source, obj=where)
            if len(times) >= ROWS_MAX:
                raise InputError(f"is past the limit of {ROWS_MAX} rows", source=source, obj=where)
            times.append(_micros(cells[place], unit, source, where, column))
    except csv.Error as error:
        where = f"line {reader.line_num}"
        raise InputError(f"is not CSV: {error}", source=source, obj=where) from error
    if not times:
        raise InputError("has no rows", source=source, field=column)
    return np.array(times, dtype=np.int64)


def _micros(text: str, unit: str, source: str, where: str, column: str) -> int:
    number = _NUMBER.fullmatch(text.strip())
    problem = f'is not a number of {unit} (want e.g. "90", "1.5")'
    if number is not None:
        whole, fraction = number.groups(default="")
        scale = UNITS_US[unit]
        micros: int = int(whole) * scale + int(fraction or 0) * scale // 10 ** len(fraction)
        if micros <= LONGEST_US:
            return micros
        problem = f"is more than 100 years in {unit}"
    raise InputError(problem, source=source, obj=where, field=column, value=cut_short(text))
