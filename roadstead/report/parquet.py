"""Parquet files: write a table, read columns.

Run as a program (`python -m roadstead.report.parquet`), it decodes one file per line of standard
input, a JSON list of path, number of rows and columns. It writes the columns as JSON, as many rows
on each line as asked for, and an empty line after each file.
"""

from __future__ import annotations

import contextlib
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

END = b"\n"
"""What the program writes after the batches of a file."""


def write_parquet(path: Path, table: Table) -> None:
    """Write the table to a file. Raises OSError if it cannot be written."""
    # arro3 panics on a full disk. It writes to memory, and Python writes the file and raises.
    path.write_bytes(encode_parquet(table))


def encode_parquet(table: Table) -> bytes:
    """Return the bytes of a file with the table; equal tables give equal bytes."""
    file = BytesIO()
    io.write_parquet(table, file, compression=COMPRESSION)
    return file.getvalue()


class Decoder:
    """A process that decodes Parquet files, one after another; a context that ends it.

    arro3 panics on damaged files and sometimes aborts its process (decision 41). The process starts
    with the first file, and again with the next one after a file that ended it.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def read(self, path: Path, names: Sequence[str]) -> list[list[object]]:
        """Return the values of the named columns; strings and numbers only.

        Raises OSError if the file cannot be read, ValueError if it is damaged or lacks a column.
        """
        columns: list[list[object]] = [[] for _ in names]
        for batch in self.stream(path, names, CHUNK_ROWS):
            for column, values in zip(columns, batch, strict=True):
                column += values
        return columns

    def stream(
        self, path: Path, names: Sequence[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[list[list[object]]]:
        """Yield the values of the named columns, `batch_rows` rows at a time; times become texts.

        Raises OSError if the file cannot be read, ValueError if it is damaged, lacks a column, or
        holds more than `BATCH_MAX_BYTES` in one batch.
        """
        with path.open("rb"):
            pass
        request = json.dumps([str(path.absolute()), batch_rows, *names])
        is_finished = False
        try:
            for line in self._lines(request.encode() + b"\n"):
                if len(line) > BATCH_MAX_BYTES:
                    raise ValueError(f"holds more than {BATCH_MAX_BYTES} bytes in a batch of rows")
                if line == END:
                    is_finished = True
                    return
                # A batch whose end is missing is the last output of a child that aborted.
                if line.endswith(b"\n"):
                    yield json.loads(line)
        finally:
            # The rest of a file that is not read to its end is not the next file.
            if not is_finished:
                self._end()
        raise ValueError(f"damaged, or not a Parquet file with columns {', '.join(names)}")

    def _lines(self, request: bytes) -> Iterator[bytes]:
        """Send a request; yield what the child writes from then on, until it ends."""
        child = self._child = self._child or _start()
        assert child.stdin is not None, "a pipe"
        assert child.stdout is not None, "a pipe"
        # A child that could not start has closed its input.
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(request)
            child.stdin.flush()
        while line := child.stdout.readline(BATCH_MAX_BYTES + 1):
            yield line

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            # Closes the pipes, and waits.
            child.communicate()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        python_command(MODULE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | child_environment(),
        cwd=PACKAGE_PARENT,
    )


def main() -> None:
    """Decode the files that standard input names; the first that cannot be decoded ends it."""
    # No core dump if the reader aborts.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        # A compressed page of a few bytes may decompress to any size.
        hard_limit = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, hard_limit))
    for request in sys.stdin:
        path, batch_rows, *names = json.loads(request)
        _write_batches(path, batch_rows, names)
        sys.stdout.write(END.decode())
        sys.stdout.flush()


def _write_batches(path: str, batch_rows: int, names: Sequence[str]) -> None:
    reader = io.read_parquet(path, batch_size=batch_rows)
    for name in names:
        reader.schema.field(name)
    for batch in reader:
        table = Table.from_batches([batch])
        # json.dump takes four times as long.
        values = [table.column(name).to_pylist() for name in names]
        sys.stdout.write(json.dumps(values, default=str) + "\n")


if __name__ == "__main__":
    main()
