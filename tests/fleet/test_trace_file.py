"""Trace files: a written trace is read back, and only complete, valid traces are read."""

import hashlib
import random
import zlib
from dataclasses import replace

import numpy as np
import pytest

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.fleet import trace_file, trace_reader, trace_writer
from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.trace import NEVER_S, TraceBuilder
from roadstead.fleet.trace_file import read_trace, trace_digest, write_trace
from roadstead.fleet.trace_frames import (
    FRAME_MAX_ROWS,
    MAGIC_LINE,
    SIZES,
    NodesFrame,
    PodsFrame,
    TracePods,
)
from roadstead.fleet.trace_reader import open_trace
from roadstead.protocol.codec import to_wire
from roadstead.protocol.errors import InputError
from roadstead.protocol.plain_data import pack, unpack
from tests.ten_shapes import ten_shapes


@pytest.fixture
def path(tmp_path):
    return tmp_path / "small.trace"


def small_trace():
    builder = TraceBuilder("test", {"default": (("team", "a"),)})
    builder.add_node(NodeFacts(name="n-0", allocatable=(("cpu", 4000),), allocatable_pods=10))
    builder.add_pod("p-0", "u-0", PodFacts(requests=(("cpu", 100),)), creation_s=5, deletion_s=9)
    builder.add_pod("p-1", "u-1", PodFacts(requests=(("cpu", 100),)), creation_s=6)
    return builder.build()


def frames_of(path):
    """Return (frame_type, uncompressed content) of every frame of a file."""
    data, at, found = path.read_bytes()[len(MAGIC_LINE) :], 0, []
    while at < len(data):
        compressed_bytes, _ = SIZES.unpack(data[at + 1 : at + 1 + SIZES.size])
        start = at + 1 + SIZES.size
        found.append((data[at : at + 1], zlib.decompress(data[start : start + compressed_bytes])))
        at = start + compressed_bytes
    return found


def content_of(frames):
    """Return a file of these frames, with a correct digest if the last one is an end frame."""
    digest, parts = hashlib.sha256(), [MAGIC_LINE]
    for frame_type, content in frames:
        if frame_type == b"E":
            nodes, pods, _ = unpack(content)
            content = pack([nodes, pods, digest.digest()])
        digest.update(frame_type + content)
        packed = zlib.compress(content)
        parts += [frame_type, SIZES.pack(len(packed), len(content)), packed]
    return b"".join(parts)


def refusal_of(path):
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("make", [generate_fleet, ten_shapes])
def test_a_written_trace_is_read_back_completely(path, make):
    trace = make(20, 100, 1)
    write_trace(path, trace)
    again = read_trace(path)
    assert again.nodes() == trace.nodes()
    assert list(again.pods()) == list(trace.pods())
    assert again.creation_s.tolist() == trace.creation_s.tolist()
    assert again.deletion_s.tolist() == trace.deletion_s.tolist()
    assert (again.source, again.namespaces) == (trace.source, trace.namespaces)


def test_an_empty_trace_is_read_back_too(path):
    write_trace(path, generate_fleet(0, 0, 0))
    assert read_trace(path).nodes() == []


def test_pods_of_one_class_share_their_facts_after_reading(path):
    write_trace(path, small_trace())
    (_, first), (_, second) = read_trace(path).pods()
    assert first is second


def test_the_digest_is_that_of_the_content(path):
    trace = small_trace()
    digest = write_trace(path, trace)
    assert digest == trace_digest(trace) == trace_digest(read_trace(path))
    assert digest != trace_digest(replace(trace, source="another"))


def test_the_same_trace_has_the_same_digest_on_every_machine():
    assert trace_digest(TraceBuilder("test").build()) == (
        "a074a2d68adde64d2369f5c168e03daa5d2c48f00f346b4f7c2744f3ee630bf4"
    )


def test_a_file_of_a_million_pods_of_a_few_shapes_is_little_more_than_their_names(path):
    write_trace(path, generate_fleet(10, 20_000, 0))
    assert path.stat().st_size < 20_000 * 16


def test_an_existing_file_is_replaced_and_no_other_file_is_left(path):
    path.write_text("old")
    write_trace(path, small_trace())
    assert len(read_trace(path).pod_names) == 2
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    path.write_text("old")

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trace_writer.os, "replace", full)
    with pytest.raises(InputError, match=r"small\.trace: cannot be written: No space left"):
        write_trace(path, small_trace())
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot be written: No such file"):
        write_trace(tmp_path / "gone" / "a.trace", small_trace())


def test_durations_are_independent_of_the_recorded_ends(path):
    builder = TraceBuilder("test")
    builder.add_pod("p-0", "u-0", PodFacts(), creation_s=5, deletion_s=9, duration_s=1.25)
    builder.add_pod("p-1", "u-1", PodFacts(), creation_s=0.5, duration_s=0)
    builder.add_pod("p-2", "u-2", PodFacts(), deletion_s=7.001)
    write_trace(path, builder.build())

    trace = read_trace(path)

    assert trace.creation_s.tolist() == [5, 0.5, 0]
    assert trace.deletion_s.tolist() == [9, NEVER_S, 7.001]
    assert trace.duration_s.tolist() == [1.25, 0, 7.001]


def test_a_trace_of_several_chunks_is_read_chunk_by_chunk(path):
    builder = TraceBuilder("test")
    for index in range(FRAME_MAX_ROWS + 3):
        builder.add_pod(f"p-{index}", f"default/p-{index}", PodFacts(priority=index % 5), index)
    trace = builder.build()
    digest = write_trace(path, trace)

    with open_trace(path) as stream:
        chunks = list(stream.chunks())

    assert [len(chunk) for chunk in chunks] == [FRAME_MAX_ROWS, 3]
    assert chunks[0].uids == (), "UIDs of namespace and name are not stored"
    again = read_trace(path)
    assert (again.pod_names, again.pod_uids) == (trace.pod_names, trace.pod_uids)
    assert trace_digest(again) == digest


def test_a_whole_trace_is_copied_once(path, monkeypatch):
    builder = TraceBuilder("test")
    for index in range(50):
        builder.add_pod(f"p-{index}", f"other/{index}", PodFacts(priority=index % 5), index)
    copied, rows = [], TracePods.rows
    monkeypatch.setattr(
        TracePods, "rows", lambda pods, at: copied.append(len(at)) or rows(pods, at)
    )
    monkeypatch.setattr(trace_writer, "FRAME_MAX_ROWS", 4)

    write_trace(path, builder.build())

    assert sum(copied) == 50
    with open_trace(path) as stream:
        assert [len(chunk) for chunk in stream.chunks()] == [4] * 12 + [2]


def test_more_pods_than_memory_is_to_hold_are_refused(path, monkeypatch):
    write_trace(path, small_trace())
    monkeypatch.setattr(trace_file, "PODS_MAX", 1)
    assert "more than 1 pods; make it smaller by `roadstead trace sample`" in refusal_of(path)


@pytest.mark.parametrize("module", [trace_reader, trace_writer])
def test_a_frame_past_the_size_limit_is_neither_written_nor_read(path, monkeypatch, module):
    write_trace(path, small_trace())
    monkeypatch.setattr(module, "FRAME_MAX_BYTES", 50)
    with pytest.raises(InputError, match=r"has a frame of more than 50 bytes"):
        (read_trace if module is trace_reader else write_trace)(
            path, *(() if module is trace_reader else (small_trace(),))
        )


def test_more_classes_than_the_limit_are_refused(path, monkeypatch):
    write_trace(path, generate_fleet(3, 50, 0))
    monkeypatch.setattr(trace_reader, "CLASSES_MAX", 2)
    assert "has more than 2 distinct pods" in refusal_of(path)
    monkeypatch.setattr(trace_writer, "CLASSES_MAX", 2)
    with pytest.raises(InputError, match=r"has more than 2 distinct pods"):
        write_trace(path, generate_fleet(3, 50, 0))


def test_a_missing_file_is_refused_by_name(path):
    assert refusal_of(path).endswith("small.trace: cannot be read: No such file or directory")


HEAD, END = pack(["test", []]), pack([0, 0, b""])
HOSTILE_FILES = {
    "empty": (b"", "is not a trace"),
    "text": (b"apiVersion: v1\nkind: List\n", "is not a trace"),
    "another version": (
        b"roadstead-trace 9\n",
        'trace of version "9"; this release reads',
    ),
    "absurd version": (b"roadstead-trace " + b"9" * 10_000, "is a trace of version"),
    "header only": (MAGIC_LINE, "is cut short or goes on after its end"),
    "no compression": (MAGIC_LINE + b"H" + SIZES.pack(4, 9) + b"body", "does not decompress"),
    "frame of absurd size": (MAGIC_LINE + b"H" + b"\xff" * 8, "has a frame of more than 268435456"),
    "frame larger than stated": (
        MAGIC_LINE
        + b"H"
        + SIZES.pack(len(zlib.compress(bytes(500))), 5)
        + zlib.compress(bytes(500)),
        "is cut short or goes on after its end",
    ),
    "frame smaller than stated": (
        MAGIC_LINE + b"H" + SIZES.pack(len(zlib.compress(b"ab")), 5) + zlib.compress(b"ab"),
        "a frame does not have the size that it states",
    ),
    "no head": (content_of([(b"E", END)]), "no HeadFrame"),
    "no end": (content_of([(b"H", HEAD)]), "is cut short or goes on after its end"),
    "more after the end": (content_of([(b"H", HEAD), (b"E", END)]) + b"x", "goes on after its end"),
    "pods before nodes": (
        content_of(
            [(b"H", HEAD), (b"P", pack([[], [], [], *[b""] * 4])), (b"N", b"x"), (b"E", END)]
        ),
        "no EndFrame",
    ),
    "other counts": (content_of([(b"H", HEAD), (b"E", pack([1, 0, b""]))]), "match its digest"),
    "no msgpack": (content_of([(b"H", b"\xc1")]), "not msgpack"),
    "another shape": (content_of([(b"H", pack({"nodes": []}))]), "not of this release"),
    "nested too deep": (content_of([(b"H", b"\x91" * 100_000 + b"\xc0")]), "nested deeper"),
    "list of absurd length": (content_of([(b"H", b"\xdd\xff\xff\xff\xff")]), "not of this release"),
    "half a surrogate": (content_of([(b"H", b"\xa3\xed\xa0\x80")]), "not of this release"),
}


@pytest.mark.parametrize(("content", "text"), HOSTILE_FILES.values(), ids=HOSTILE_FILES)
def test_anything_but_a_complete_trace_is_refused(path, content, text):
    path.write_bytes(content)
    assert text in refusal_of(path)


def test_a_compression_bomb_is_read_only_up_to_the_size_that_it_states(path):
    bomb = zlib.compress(bytes(200 << 20))
    path.write_bytes(MAGIC_LINE + b"H" + SIZES.pack(len(bomb), 1000) + bomb)
    assert "is damaged" in refusal_of(path)


NODES = {name: index for index, name in enumerate(NodesFrame.__dataclass_fields__)}
PODS = {name: index for index, name in enumerate(PodsFrame.__dataclass_fields__)}


def packed(kind, *values):
    return np.array(values, kind).tobytes()


BROKEN_FRAMES = {
    "names missing": (b"N", {"names": []}, "nodes.class: has 1 entries for 0 nodes"),
    "half an entry": (
        b"P",
        {"pod_class": b"\0\0\0"},
        "pods.class: is no whole number of 4-byte entries",
    ),
    "class unknown": (
        b"P",
        {"pod_class": packed("<i4", 0, 7)},
        "pods.class: 7 is not one of the 1 classes",
    ),
    "node with path parts": (
        b"N",
        {"names": ["../n"]},
        'nodes.name: "../n" is not allowed: a lower',
    ),
    "pod with an escape": (
        b"P",
        {"names": ["a\x1b[2J", "b"]},
        'pods.name: "a\\x1b[2J" is not allowed: a lowercase RFC 1123 subdomain',
    ),
    "uid with an escape": (b"P", {"uids": ["\x1b", "b"]}, "must not contain control characters"),
    "uid missing": (b"P", {"uids": ["a"]}, "pods.uid: has 1 entries for 2 pods"),
    "namespace": (b"H", {1: [["A", []]]}, 'namespaces: "A" is not allowed: a lowercase RFC'),
    "name no text": (b"P", {"names": [1, 2]}, "not of this release"),
    "source no text": (b"H", {0: None}, "not of this release"),
    "times missing": (b"P", {"duration_ms": b""}, "pods.duration_ms: has 0 entries for 2 pods"),
    "time negative": (b"P", {"creation_ms": packed("<i8", -1, 0)}, "-1 must not be negative"),
    "time past int64 ns": (
        b"P",
        {"duration_ms": packed("<i8", 0, 1 << 62)},
        "pods.duration_ms: 4611686018427387904 is more than 9223372036000 (292 years)",
    ),
    "end before creation": (
        b"P",
        {"deletion_ms": packed("<i8", 1, -1)},
        "pods.deletion_ms: must not be before the creation",
    ),
    "negative request": (
        b"P",
        {"classes": [to_wire(PodFacts(requests=(("cpu", -1),)))]},
        'requests["cpu"]: -1 is out of range',
    ),
    "request past int64": (
        b"P",
        {"classes": [to_wire(PodFacts(requests=(("memory", 1 << 63),)))]},
        'requests["memory"]: 9223372036854775808 is',
    ),
    "negative capacity": (
        b"N",
        {"classes": [to_wire(NodeFacts(name="", allocatable_pods=-1))]},
        'allocatable["pods"]: -1 is out of range',
    ),
    "name twice": (b"P", {"names": ["p-0", "p-0"]}, 'pods.name: "default/p-0" is there twice'),
}


@pytest.mark.parametrize(
    ("frame_type", "changes", "text"), BROKEN_FRAMES.values(), ids=BROKEN_FRAMES
)
def test_inconsistent_frames_are_refused_by_column(path, frame_type, changes, text):
    write_trace(path, small_trace())
    places = {b"N": NODES, b"P": PODS, b"H": {0: 0, 1: 1}}[frame_type]
    frames = []
    for each, content in frames_of(path):
        if each == frame_type:
            fields = unpack(content)
            for name, value in changes.items():
                fields[places[name]] = value
            content = pack(fields)
        frames.append((each, content))
    path.write_bytes(content_of(frames))
    assert text in refusal_of(path)


def test_a_single_wrong_byte_anywhere_is_detected(path):
    write_trace(path, small_trace())
    sound, rng, ignored = path.read_bytes(), random.Random(0), 0
    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= rng.randrange(1, 256)
        path.write_bytes(damaged)
        try:
            found = read_trace(path)
        except InputError:
            continue
        # The bits that fill the first byte of a block that zlib could not compress.
        assert trace_digest(found) == trace_digest(small_trace()), f"byte {place} is not noticed"
        ignored += 1
    assert ignored <= 5, "at most one byte of a frame has such bits"


def test_a_file_cut_short_anywhere_is_refused(path):
    write_trace(path, small_trace())
    sound = path.read_bytes()
    for length in range(len(sound)):
        path.write_bytes(sound[:length])
        assert refusal_of(path), f"a file of {length} bytes is read"
