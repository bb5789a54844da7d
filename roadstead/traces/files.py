"""Files of published traces as bytes and lines, decompressed within bounds.

gzip, zip and tar are recognized. The size of a decompressed file is bounded by `EXPANDED_MAX_BYTES`
and by `RATIO_MAX` times the compressed bytes read so far, so that a small file cannot fill memory
or disk.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

from roadstead.protocol.errors import InputError

EXPANDED_MAX_BYTES = 1 << 40
RATIO_MAX = 200
RATIO_FREE_BYTES = 64 << 20
"""Up to this size a file may expand by any ratio, as text of one repeated line does."""

LINE_MAX_BYTES = 1 << 20
FILES_MAX = 100_000

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_TAR_ENDS = (".tar", ".tar.gz", ".tgz")
_BUFFER_BYTES = 1 << 18
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile, tarfile.TarError)


@dataclass(slots=True)
class ProgressMeter:
    """Count what is read of the files of a trace, for its progress.

    report: called after every `_BUFFER_BYTES` read with (bytes read, bytes of all files).
    """

    report: Callable[[int, int], None] = lambda done, total: None
    done_bytes: int = 0
    total_bytes: int = 0

    def expect(self, paths: Sequence[Path]) -> None:
        """Add the sizes of files that will be read."""
        self.total_bytes += sum(path.stat().st_size for path in paths if path.exists())

    def count(self, read_bytes: int) -> None:
        self.done_bytes += read_bytes
        self.report(self.done_bytes, self.total_bytes)


@dataclass(slots=True)
class _Counted(io.RawIOBase):
    """A file that counts the bytes that are read from it."""

    file: BinaryIO
    meter: ProgressMeter
    read_bytes: int = 0

    def readinto(self, buffer: object) -> int:
        count = self.file.readinto(buffer)  # type: ignore[attr-defined]
        self.read_bytes += count
        self.meter.count(count)
        return int(count)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.file.seekable()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()


@dataclass(slots=True)
class _Bounded(io.RawIOBase):
    """A decompressed file with bounded content.

    compressed: the file that it is read from. source: its name, for errors.
    """

    file: IO[bytes]
    compressed: _Counted
    source: str
    expanded_bytes: int = 0

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            content = self.file.read(len(buffer))
        except _DAMAGED as error:
            raise InputError(f"is damaged or cut short: {error}", source=self.source) from None
        buffer[: len(content)] = content
        self.expanded_bytes += len(content)
        self._check()
        return len(content)

    def readable(self) -> bool:
        return True

    def _check(self) -> None:
        if self.expanded_bytes > EXPANDED_MAX_BYTES:
            problem = f"expands to more than {EXPANDED_MAX_BYTES} bytes"
            raise InputError(problem, source=self.source)
        allowed_bytes = max(RATIO_FREE_BYTES, RATIO_MAX * self.compressed.read_bytes)
        if self.expanded_bytes > allowed_bytes:
            problem = (
                f"expands to more than {RATIO_MAX} times its size ({self.expanded_bytes} bytes)"
            )
            raise InputError(problem, source=self.source)


@contextmanager
def open_bytes(path: Path, meter: ProgressMeter) -> Iterator[BinaryIO]:
    """Open a file, decompressed: from a zip, its only file; from NAME.tar, its first file NAME.*.

    Raises InputError if it cannot be read, or is damaged, cut short or larger than is allowed, also
    while it is read.
    """
    source = str(path)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            magic = file.read(4)
            file.seek(0)
            counted = _Counted(cast("BinaryIO", file), meter)
            raw = io.BufferedReader(counted, _BUFFER_BYTES)
            plain: IO[bytes] = raw
            if magic.startswith(_GZIP):
                plain = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=raw)))
            elif magic == _ZIP:
                plain = stack.enter_context(_zip_member(raw, source))
            if magic.startswith((_GZIP, _ZIP)):
                bounded = _Bounded(plain, counted, source)
                plain = io.BufferedReader(bounded, _BUFFER_BYTES)
            if path.name.endswith(_TAR_ENDS):
                member = _tar_member(plain, path, source)
                plain = io.BufferedReader(_Bounded(member, counted, source), _BUFFER_BYTES)
        except _DAMAGED as error:
            raise InputError(f"is damaged or cut short: {error}", source=source) from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", source=source) from error
        yield cast("BinaryIO", plain)


def _zip_member(raw: IO[bytes], source: str) -> IO[bytes]:
    archive = zipfile.ZipFile(raw)
    members = [each for each in archive.infolist() if not each.is_dir()]
    if len(members) != 1:
        raise InputError(f"holds {len(members)} files; unpack it", source=source)
    if members[0].flag_bits & 1:
        raise InputError("is encrypted", source=source)
    try:
        return archive.open(members[0])
    except NotImplementedError as error:
        # Python reads neither Deflate64, with which Windows packs large files, nor Zstandard.
        raise InputError(f"cannot be unpacked here ({error}); unpack it", source=source) from None


def _tar_member(plain: IO[bytes], path: Path, source: str) -> IO[bytes]:
    stem = path.name.partition(".")[0]
    # A stream: closing it would not close `plain`, which its owner closes.
    archive = tarfile.open(fileobj=plain, mode="r|")  # noqa: SIM115
    for count, member in enumerate(archive):
        if count > FILES_MAX:
            raise InputError(f"holds more than {FILES_MAX} files", source=source)
        if member.isfile() and Path(member.name).name.partition(".")[0] == stem:
            file = archive.extractfile(member)
            assert file is not None, "a regular file"
            return file
    raise InputError(f"holds no file {stem}.*", source=source)


def read_lines(path: Path, meter: ProgressMeter) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of a text file. InputError for long lines and for text not in UTF-8."""
    with open_bytes(path, meter) as file:
        number = 0
        while line := file.readline(LINE_MAX_BYTES + 1):
            number += 1
            if len(line) > LINE_MAX_BYTES:
                problem = f"is longer than {LINE_MAX_BYTES} bytes"
                raise InputError(problem, source=str(path), obj=f"line {number}")
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise InputError(
                    "is not UTF-8 text", source=str(path), obj=f"line {number}"
                ) from None


def table_file(folder: Path, stem: str) -> Path | None:
    """Return the file `stem`.csv of a folder, compressed or not; None if there is none."""
    ends = (".csv", ".csv.gz", ".tar.gz", ".tgz", ".csv.zip", ".zip", "")
    return next((path for end in ends if (path := folder / f"{stem}{end}").is_file()), None)


def required_file(folder: Path, stem: str) -> Path:
    """Return the file of `table_file`; InputError if there is none."""
    path = table_file(folder, stem)
    if path is None:
        problem = f"has no file {stem}.csv, {stem}.csv.gz or {stem}.tar.gz"
        raise InputError(problem, source=str(folder))
    return path


def shard_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files that match a pattern, which are parts of one table; InputError if none does.

    They are sorted by name.
    """
    paths = sorted(path for path in folder.glob(pattern) if path.is_file())
    if not paths:
        raise InputError(f"has no files {pattern}", source=str(folder))
    return paths
