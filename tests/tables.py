"""Tables of Parquet files, and their rows."""

from pathlib import Path
from typing import Any

from arro3.core import Table
from arro3.io import read_parquet


def read_table(path: Path) -> Table:
    return read_parquet(path).read_all()


def rows_of(table: Table) -> list[dict[str, Any]]:
    return list(table.to_struct_array().to_pylist())


def read_rows(path: Path) -> list[dict[str, Any]]:
    return rows_of(read_table(path))
