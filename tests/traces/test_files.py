"""Files of traces: what packs them is recognized, and what they expand to is bounded."""

import gzip
import io
import tarfile
import zipfile

import pytest

from roadstead.protocol.errors import InputError
from roadstead.traces import files
from roadstead.traces.files import ProgressMeter, read_lines, required_file, shard_files, table_file

TEXT = "".join(f"line {number}, of some length\n" for number in range(2_000))


def lines_of(path, meter=None):
    return [text for _, text in read_lines(path, meter or ProgressMeter())]


def refusal_of(path):
    with pytest.raises(InputError) as caught:
        lines_of(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


def tar_bytes(mode, **members):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:
        for name, text in members.items():
            entry = tarfile.TarInfo(f"data/{name}.csv")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return content.getvalue()


def zip_bytes(*members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in members:
            archive.writestr(name, TEXT)
    return content.getvalue()


def deflate64_bytes():
    """Return a zip whose file states the method 9 in both headers."""
    content = bytearray(zip_bytes("t.csv"))
    content[8] = 9
    content[content.index(b"PK\x01\x02") + 10] = 9
    return bytes(content)


PARTS = (TEXT[:99].encode(), TEXT[99:].encode())
PACKED = {
    "plain": ("t.csv", TEXT.encode()),
    "gzip": ("t.csv.gz", gzip.compress(TEXT.encode())),
    "gzip of two parts": ("t.gz", b"".join(map(gzip.compress, PARTS))),
    "gzip by another name": ("t.csv", gzip.compress(TEXT.encode())),
    "tar": ("t.tar", tar_bytes("w", other="no", t=TEXT)),
    "tar.gz": ("t.tar.gz", tar_bytes("w:gz", other="no", t=TEXT)),
    "zip": ("t.zip", zip_bytes("t.csv")),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content"), PACKED.values(), ids=PACKED)
def test_the_same_lines_are_read_however_a_file_is_packed(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert "".join(lines_of(tmp_path / name)) == TEXT


@pytest.mark.parametrize("name", ["gzip", "tar.gz", "zip"])
def test_an_archive_cut_short_anywhere_is_refused(tmp_path, name):
    file_name, content = PACKED[name]
    path = tmp_path / file_name
    for length in range(4, len(content) - 1, 197):
        path.write_bytes(content[:length])
        assert "damaged" in refusal_of(path) or "holds no file" in refusal_of(path)


def test_damage_within_an_archive_is_refused(tmp_path):
    content = bytearray(PACKED["gzip"][1])
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "t.gz").write_bytes(content)
    assert "is damaged or cut short" in refusal_of(tmp_path / "t.gz")


@pytest.mark.parametrize("suffix", [".gz", ".zip"])
def test_an_archive_that_expands_too_much_is_read_only_up_to_the_bound(
    tmp_path, monkeypatch, suffix
):
    monkeypatch.setattr(files, "RATIO_FREE_BYTES", 1 << 20)
    path = tmp_path / f"bomb{suffix}"
    text = b"0\n" * (32 << 20)
    if suffix == ".gz":
        path.write_bytes(gzip.compress(text))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.csv", text)
    lines = read_lines(path, ProgressMeter())
    read = 0
    with pytest.raises(InputError, match="expands to more than 200 times its size"):
        read = sum(2 for _ in lines)
    assert read < 300 * path.stat().st_size, "it stops soon after the bound"


def test_a_file_that_expands_beyond_all_bounds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "EXPANDED_MAX_BYTES", 1000)
    (tmp_path / "t.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert "expands to more than 1000 bytes" in refusal_of(tmp_path / "t.gz")


def test_a_line_beyond_the_bound_is_refused_by_number(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LINE_MAX_BYTES", 100)
    (tmp_path / "t.csv").write_text(f"short\n{'x' * 101}\n")
    assert refusal_of(tmp_path / "t.csv").endswith("line 2: is longer than 100 bytes")


def test_a_line_that_is_no_text_is_refused_with_its_number(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a\n\xff\xfe\n")
    assert refusal_of(tmp_path / "t.csv").endswith("line 2: is not UTF-8 text")


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("t.zip", zip_bytes("a.csv", "b.csv"), "holds 2 files; unpack it"),
        ("t.zip", deflate64_bytes(), "cannot be unpacked here"),
        ("t.tar", tar_bytes("w", other="x"), "holds no file t.*"),
        ("t.tar.gz", gzip.compress(b"no tar at all" * 99), "is damaged or cut short"),
    ],
    ids=("zip", "Deflate64", "tar", "tar.gz"),
)
def test_archives_without_the_file_are_refused(tmp_path, name, content, text):
    (tmp_path / name).write_bytes(content)
    assert text in refusal_of(tmp_path / name)


def test_a_missing_file_is_refused_by_name(tmp_path):
    assert refusal_of(tmp_path / "none").endswith("cannot be read: No such file or directory")


def test_progress_counts_the_bytes_of_the_file_not_of_its_content(tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    seen = []
    meter = ProgressMeter(lambda done, total: seen.append((done, total)))
    meter.expect([path])
    lines_of(path, meter)
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_tables_are_found_by_name_packed_or_not(tmp_path):
    (tmp_path / "a.tar.gz").touch()
    (tmp_path / "b.csv").touch()
    (tmp_path / "b.csv.gz").touch()
    assert table_file(tmp_path, "a") == tmp_path / "a.tar.gz"
    assert required_file(tmp_path, "b") == tmp_path / "b.csv"
    assert table_file(tmp_path, "c") is None
    with pytest.raises(InputError, match=r"has no file c\.csv"):
        required_file(tmp_path, "c")


def test_shards_are_sorted_by_name(tmp_path):
    for name in ("part-2.csv", "part-10.csv", "part-1.csv.gz", "other"):
        (tmp_path / name).touch()
    found = [path.name for path in shard_files(tmp_path, "part-*.csv*")]
    assert found == ["part-1.csv.gz", "part-10.csv", "part-2.csv"]
    with pytest.raises(InputError, match=r"has no files x-\*"):
        shard_files(tmp_path, "x-*")
