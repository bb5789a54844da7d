"""Parquet files: they contain the table, and a damaged file never ends the reading process."""

import random
import signal
import subprocess
from io import BytesIO
from pathlib import Path

import pytest
from arro3 import io

from roadstead.report import parquet
from roadstead.report.arrow import INT64, STRING, column, make_table
from roadstead.report.parquet import Decoder, write_parquet
from tests.tables import read_table, rows_of

OF_PYARROW = Path(__file__).parents[1] / "journal" / "format_1" / "run" / "placements.parquet"
"""Written by pyarrow, in an earlier release."""

PODS = ["a", "b", "a"]


@pytest.fixture
def decoder():
    with Decoder() as opened:
        yield opened


@pytest.fixture
def started(monkeypatch):
    """Return the processes that decoders start."""
    found, start = [], subprocess.Popen

    def record(*command, **how):
        found.append(start(*command, **how))
        return found[-1]

    monkeypatch.setattr(parquet.subprocess, "Popen", record)
    return found


@pytest.fixture
def table():
    return make_table({"pod": column(PODS, STRING), "nodes": column([3, None, 1], INT64)})


def test_columns_are_read_in_the_requested_order(decoder, tmp_path, table):
    write_parquet(tmp_path / "t.parquet", table)

    assert decoder.read(tmp_path / "t.parquet", ["nodes", "pod"]) == [[3, None, 1], PODS]
    assert rows_of(read_table(tmp_path / "t.parquet")) == rows_of(table)


def test_columns_are_read_in_batches_of_rows(decoder, tmp_path):
    table = make_table({"pod": column([f"p{number}" for number in range(10)], STRING)})
    write_parquet(tmp_path / "t.parquet", table)

    batches = [pods for (pods,) in decoder.stream(tmp_path / "t.parquet", ["pod"], 4)]

    assert [len(pods) for pods in batches] == [4, 4, 2]
    assert sum(batches, []) == [f"p{number}" for number in range(10)]  # noqa: RUF017


def test_a_file_that_is_not_read_to_its_end_leaves_no_process_and_nothing_for_the_next(
    decoder, started, tmp_path, table
):
    write_parquet(tmp_path / "t.parquet", table)
    batches = decoder.stream(tmp_path / "t.parquet", ["pod"], 1)
    assert next(batches) == [["a"]]

    batches.close()

    assert [child.returncode for child in started] == [-signal.SIGKILL]
    assert decoder.read(tmp_path / "t.parquet", ["nodes"]) == [[3, None, 1]]


def test_one_process_reads_several_files_and_ends_with_the_context(started, tmp_path, table):
    for name in ("one", "two"):
        write_parquet(tmp_path / name, table)

    with Decoder() as decoder:
        found = [decoder.read(tmp_path / name, ["pod"]) for name in ("one", "two")]

    assert found == [[PODS], [PODS]]
    assert [child.returncode for child in started] == [-signal.SIGKILL]


def test_a_file_after_a_damaged_one_is_read(decoder, tmp_path, table):
    write_parquet(tmp_path / "t.parquet", table)
    (tmp_path / "bad").write_bytes(b"PAR1")
    assert decoder.read(tmp_path / "t.parquet", ["pod"]) == [PODS]

    with pytest.raises(ValueError, match="not a Parquet file"):
        decoder.read(tmp_path / "bad", ["pod"])

    assert decoder.read(tmp_path / "t.parquet", ["pod"]) == [PODS]


def test_a_batch_that_expands_beyond_the_bound_is_refused(decoder, tmp_path, monkeypatch):
    table = make_table({"pod": column(["x" * 10_000] * 100, STRING)})
    write_parquet(tmp_path / "t.parquet", table)
    assert (tmp_path / "t.parquet").stat().st_size < 30_000, "the text is stored once"
    monkeypatch.setattr(parquet, "BATCH_MAX_BYTES", 100_000)

    with pytest.raises(ValueError, match="holds more than 100000 bytes in a batch of rows"):
        list(decoder.stream(tmp_path / "t.parquet", ["pod"]))


def test_a_file_written_by_pyarrow_is_read(decoder):
    pods, uids, nodes = decoder.read(OF_PYARROW, ["pod", "uid", "node"])

    assert len(pods) == len(set(uids)) == len(nodes) == 5


def test_a_missing_column_is_refused(decoder, tmp_path, table):
    write_parquet(tmp_path / "t.parquet", table)

    with pytest.raises(ValueError, match="not a Parquet file with columns pod, uid"):
        decoder.read(tmp_path / "t.parquet", ["pod", "uid"])


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + b"\xff" * 8 + b"PAR1"])
def test_a_file_that_is_not_parquet_is_refused(decoder, tmp_path, data):
    (tmp_path / "bad").write_bytes(data)

    with pytest.raises(ValueError, match="not a Parquet file"):
        decoder.read(tmp_path / "bad", ["pod"])


def test_damage_that_aborts_the_reader_is_a_python_error(decoder, tmp_path, table):
    file = BytesIO()
    io.write_parquet(table, file)
    # A page of dictionary indices begins with their width in bits, 1; at most 32 is legal.
    indices, damaged = b"\x06\x01\x01\x03\x02", b"\x06\x01\x6e\x03\x02"
    assert indices in file.getvalue()
    (tmp_path / "bad").write_bytes(file.getvalue().replace(indices, damaged, 1))

    with pytest.raises(ValueError, match="damaged"):
        decoder.read(tmp_path / "bad", ["pod"])


@pytest.mark.parametrize("seed", range(5))
def test_any_damage_gives_an_error_or_other_values(decoder, tmp_path, table, seed):
    path, rng = tmp_path / "t.parquet", random.Random(seed)
    write_parquet(path, table)
    data = bytearray(path.read_bytes())
    for _ in range(3):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)

    try:
        columns = decoder.read(path, ["pod", "nodes"])
    except ValueError as error:
        assert "damaged" in str(error)  # noqa: PT017
    else:
        assert len(columns) == 2


def test_an_unreadable_or_unwritable_file_is_an_os_error(decoder, tmp_path, table):
    with pytest.raises(FileNotFoundError):
        decoder.read(tmp_path / "none.parquet", ["pod"])
    with pytest.raises(FileNotFoundError):
        write_parquet(tmp_path / "none" / "t.parquet", table)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_an_os_error(table):
    with pytest.raises(OSError, match="No space left on device"):
        write_parquet(Path("/dev/full"), table)
