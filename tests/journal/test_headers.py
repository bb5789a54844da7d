"""The first bytes of a file, and the files of a folder that belong to a journal."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.journal.headers import (
    FORMAT_1_HEADER_BYTES,
    HEADER_BYTES,
    Header,
    find_files,
    header_of,
    segment_name,
    snapshot_name,
)
from tests.journal.simulated_disk import SimulatedDisk

HEADER = Header(epoch=3, first_lsn=7, fields_checksum=11, number=5, digest_before=13)
WRITTEN = bytes.fromhex(
    "52534a4f55524e3102000000030000000000000007000000000000000b00000026f5d9af"
    "05000000000000000d000000000000004a5389ee"
)


def of_format(number):
    """The part of a header that all formats have."""
    data = bytearray(WRITTEN[:FORMAT_1_HEADER_BYTES])
    struct.pack_into("<I", data, 8, number)
    struct.pack_into("<I", data, 32, zlib.crc32(data[:32]))
    return bytes(data)


def test_a_header_has_the_same_bytes_as_in_earlier_releases():
    assert HEADER.encode() == WRITTEN
    assert header_of(memoryview(WRITTEN)) == HEADER
    assert HEADER.size_bytes == HEADER_BYTES == len(WRITTEN)


@pytest.mark.parametrize("number", [1, 3])
def test_any_release_can_read_the_format_from_the_first_bytes(number):
    found = header_of(memoryview(of_format(number)))

    assert found == Header(epoch=3, first_lsn=7, fields_checksum=11, format=number)
    assert found.size_bytes == (FORMAT_1_HEADER_BYTES if number == 1 else HEADER_BYTES)
    assert (found.number, found.digest_before) == (0, 0)


@pytest.mark.parametrize("data", [WRITTEN, of_format(1)])
def test_cut_or_changed_bytes_are_no_header(data):
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0xFF
        assert header_of(memoryview(data)[:place]) is None
        assert header_of(memoryview(changed)) is None


def disk_with(*names):
    disk = SimulatedDisk()
    disk.contents = dict.fromkeys(names, b"")
    return disk


def test_a_folder_without_a_journal_has_no_files_of_one():
    found = find_files(disk_with("lock", "finished", "segment.new", "journal-1.segment"))

    assert (found.snapshot, found.snapshot_lsn, found.segments) == ("", 0, ())


@given(
    st.sets(st.integers(0, 12), max_size=3),
    st.sets(st.integers(1, 12), max_size=5),
)
def test_the_newest_snapshot_counts_with_the_segments_from_its_own_on(lsns, firsts):
    disk = disk_with(*map(snapshot_name, lsns), *map(segment_name, firsts), "lock")

    found = find_files(disk)

    assert found.snapshot == (snapshot_name(max(lsns)) if lsns else "")
    assert found.snapshot_lsn == max(lsns, default=0)
    next_lsn = found.snapshot_lsn + 1
    with_it = max((first for first in firsts if first <= next_lsn), default=0)
    kept = sorted(first for first in firsts if first >= with_it)
    assert found.segments == tuple((segment_name(first), first) for first in kept)
