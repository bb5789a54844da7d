"""Parquet files: write a table, read columns.

Run as a program (`python -m roadstead.report.parquet COLUMN ...`), it reads a file from standard
input and writes the columns as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from arro3 import io
from arro3.core import Table

from roadstead.isolation import HOME, child_environment, python_command
from roadstead.report.arrow import CHUNK_ROWS

MODULE = "roadstead.report.parquet"
COMPRESSION = "zstd(1)"


def write_parquet(path: Path, table: Table) -> None:
    """Write the table to a file. Raises OSError if it cannot be written."""
    # arro3 panics on a full disk. It writes to memory, and Python writes the file and raises.
    path.write_bytes(encode_parquet(table))


def encode_parquet(table: Table) -> bytes:
    """Return the bytes of a file with the table; equal tables give equal bytes."""
    file = BytesIO()
    io.write_parquet(table, file, compression=COMPRESSION)
    return file.getvalue()


def read_columns(path: Path, names: Sequence[str]) -> list[list[object]]:
    """Return the values of the named columns; strings and numbers only.

    Raises OSError if the file cannot be read, ValueError if it is damaged or lacks a column.
    """
    # arro3 panics on damaged files and sometimes aborts the process (decision 41), so a child
    # process decodes them.
    done = subprocess.run(  # noqa: S603
        python_command(MODULE, names),
        input=path.read_bytes(),
        env=os.environ | child_environment(),
        cwd=HOME,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise ValueError(f"damaged, or not a Parquet file with columns {', '.join(names)}")
    columns: list[list[object]] = json.loads(done.stdout)
    return columns


def main(names: Sequence[str]) -> None:
    """Decode standard input, and write the named columns to standard output."""
    # No core dump if the reader aborts.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    reader = io.read_parquet(BytesIO(sys.stdin.buffer.read()), batch_size=CHUNK_ROWS)
    table = reader.read_all()
    # json.dump takes four times as long.
    sys.stdout.write(json.dumps([table.column(name).to_pylist() for name in names]))


if __name__ == "__main__":
    main(sys.argv[1:])
