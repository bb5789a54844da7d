"""Parquet files: write a table, read columns.

As a program (`python -m roadstead.report.parquet FILE ROWS COLUMN ...`), it writes the columns as
JSON lines of ROWS rows each.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

from arro3 import io
from arro3.core import Table

from roadstead.isolation import PACKAGE_PARENT, child_environment, python_command
from roadstead.report.arrow import CHUNK_ROWS

MODULE = "roadstead.report.parquet"
COMPRESSION = "zstd(1)"
BATCH_ROWS = 8192
BATCH_MAX_BYTES = 1 << 28
"""Maximum length of the JSON line of one batch."""

MEMORY_MAX_BYTES = 2 << 30
"""Maximum address space of the child process that decodes a file."""


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
    columns: list[list[object]] = [[] for _ in names]
    for batch in stream_columns(path, names, CHUNK_ROWS):
        for column, values in zip(columns, batch, strict=True):
            column += values
    return columns


def stream_columns(
    path: Path, names: Sequence[str], batch_rows: int = BATCH_ROWS
) -> Iterator[list[list[object]]]:
    """Yield the values of the named columns, `batch_rows` rows at a time; timestamps as strings.

    Raises OSError if the file cannot be read, ValueError if it is damaged, lacks a column, or holds
    more than `BATCH_MAX_BYTES` in one batch.
    """
    with path.open("rb"):
        pass
    # arro3 panics on damaged files and sometimes aborts the process (decision 41), so a child
    # process decodes them.
    arguments = [str(path.absolute()), str(batch_rows), *names]
    with subprocess.Popen(  # noqa: S603
        python_command(MODULE, arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | child_environment(),
        cwd=PACKAGE_PARENT,
    ) as child:
        assert child.stdout is not None, "a pipe"
        try:
            while line := child.stdout.readline(BATCH_MAX_BYTES + 1):
                if len(line) > BATCH_MAX_BYTES:
                    raise ValueError(f"holds more than {BATCH_MAX_BYTES} bytes in a batch of rows")
                # A batch whose end is missing is the last output of a child that aborted.
                if line.endswith(b"\n"):
                    yield json.loads(line)
            status = child.wait()
        finally:
            child.kill()
    if status:
        raise ValueError(f"damaged, or not a Parquet file with columns {', '.join(names)}")


def main(path: str, batch_rows: int, names: Sequence[str]) -> None:
    """Decode a file, and write a line with the named columns of each batch to standard output."""
    # No core dump if the reader aborts.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        # A page of a few bytes may expand to any size.
        hard_limit = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, hard_limit))
    reader = io.read_parquet(path, batch_size=batch_rows)
    for name in names:
        reader.schema.field(name)
    for batch in reader:
        table = Table.from_batches([batch])
        # json.dump takes four times as long.
        values = [table.column(name).to_pylist() for name in names]
        sys.stdout.write(json.dumps(values, default=str) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
