"""Trace files: a written trace is read back, and only complete, valid traces are read."""

import hashlib
import random
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.fleet import trace_file
from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.trace import TraceBuilder
from roadstead.fleet.trace_file import HEADER, TraceBody, read_trace, trace_digest, write_trace
from roadstead.protocol.codec import pack, to_wire, unpack
from roadstead.protocol.errors import InputError
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


def content_of(body):
    """Return a file with any body and its correct digest."""
    return HEADER + hashlib.sha256(body).digest() + zlib.compress(body)


def body_of(trace):
    """Return the trace's body as plain lists, for tests to change."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "of.trace"
        write_trace(path, trace)
        content = path.read_bytes()
    return unpack(zlib.decompress(content[len(HEADER) + hashlib.sha256().digest_size :]))


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
        "574f896288836b4e4264f17c237ded184833f45d1609f62cf3e83ced108fa08c"
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

    monkeypatch.setattr(trace_file.os, "replace", full)
    with pytest.raises(InputError, match=r"small\.trace: cannot be written: No space left"):
        write_trace(path, small_trace())
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot be written: No such file"):
        write_trace(tmp_path / "gone" / "a.trace", small_trace())


def test_a_trace_past_the_size_limit_is_neither_written_nor_read(path, monkeypatch):
    write_trace(path, small_trace())
    monkeypatch.setattr(trace_file, "BODY_MAX_BYTES", 100)
    assert "holds more than 100 bytes" in refusal_of(path)
    with pytest.raises(InputError, match=r"more than 100"):
        write_trace(path, small_trace())


def test_a_missing_file_is_refused_by_name(path):
    assert refusal_of(path).endswith("small.trace: cannot be read: No such file or directory")


HOSTILE_FILES = {
    "empty": (b"", "is not a trace"),
    "text": (b"kind: List\nitems: []\n", "is not a trace"),
    "another version": (b"roadstead-trace 2\n" + bytes(99), 'is a trace of version "2"'),
    "version of bytes": (b"roadstead-trace \xff\xff", "is a trace of version"),
    "header alone": (HEADER, "is damaged"),
    "no compression": (HEADER + bytes(32) + b"body", "does not decompress"),
    "another digest": (HEADER + bytes(32) + zlib.compress(b"body"), "does not match its digest"),
    "cut short": (content_of(b"x" * 500)[:-6], "is cut short, or has data after its end"),
    "more after the end": (content_of(b"body") + b"more", "is cut short, or has data"),
    "no msgpack": (content_of(b"\xc1"), "make it anew: not msgpack"),
    "another shape": (content_of(pack({"nodes": []})), "not of this release"),
    "nested too deep": (content_of(b"\x91" * 100_000 + b"\xc0"), "make it anew: nested deeper"),
    "list of absurd length": (content_of(b"\xdd\xff\xff\xff\xff"), "not of this release"),
    "half a surrogate": (content_of(b"\xa3\xed\xa0\x80"), "not of this release"),
}


@pytest.mark.parametrize(("content", "text"), HOSTILE_FILES.values(), ids=HOSTILE_FILES)
def test_anything_but_a_complete_trace_is_refused(path, content, text):
    path.write_bytes(content)
    assert text in refusal_of(path)


def test_a_compression_bomb_is_read_only_up_to_the_limit(path, monkeypatch):
    monkeypatch.setattr(trace_file, "BODY_MAX_BYTES", 1 << 20)
    path.write_bytes(content_of(bytes(200 << 20)))
    assert path.stat().st_size < 1 << 20
    assert "holds more than 1048576 bytes" in refusal_of(path)


FIELDS = {name: index for index, name in enumerate(TraceBody.__dataclass_fields__)}
BROKEN_BODIES = {
    "names missing": ({"node_names": []}, "nodes.class: has 1 entries for 0 nodes"),
    "half an entry": ({"pod_class": b"\0\0\0"}, "pods.class: is no whole number of 4-byte entries"),
    "class unknown": (
        {"pod_class": np.array([0, 7], "<i4").tobytes()},
        "pods.class: 7 is not one of the 1 classes",
    ),
    "node with path parts": (
        {"node_names": ["../n"]},
        'nodes.name: "../n" is not allowed: a lower',
    ),
    "pod with an escape": (
        {"pod_names": ["a\x1b[2J", "b"]},
        'pods.name: "a\\x1b[2J" is not allowed: a lowercase RFC 1123 subdomain',
    ),
    "uid with an escape": ({"pod_uids": ["\x1b", "b"]}, "must not contain control characters"),
    "namespace": ({"namespaces": [["A", []]]}, 'namespaces: "A" is not allowed: a lowercase RFC'),
    "name no text": ({"pod_names": [1, 2]}, "not of this release"),
    "source no text": ({"source": None}, "not of this release"),
    "namespaces no pairs": ({"namespaces": [["a"]]}, "not of this release"),
}


@pytest.mark.parametrize(("changes", "text"), BROKEN_BODIES.values(), ids=BROKEN_BODIES)
def test_inconsistent_bodies_are_refused_by_column(path, changes, text):
    body = body_of(small_trace())
    for name, value in changes.items():
        body[FIELDS[name]] = value
    path.write_bytes(content_of(pack(body)))
    assert text in refusal_of(path)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (PodFacts(requests=(("cpu", -1),)), 'requests["cpu"]: -1 is out of range'),
        (PodFacts(requests=(("memory", 1 << 63),)), 'requests["memory"]: 9223372036854775808 is'),
        (PodFacts(nonzero_memory_bytes=-5), 'requests["memory"]: -5 is out of range'),
        (NodeFacts(name="n", allocatable=(("cpu", -1),)), 'allocatable["cpu"]: -1 is out'),
        (NodeFacts(name="n", allocatable_pods=-1), 'allocatable["pods"]: -1 is out of range'),
        (NodeFacts(name="n", images=(("a:1", -1),)), 'allocatable["a:1"]: -1 is out of range'),
    ],
)
def test_impossible_amounts_are_refused(path, facts, text):
    body = body_of(small_trace())
    kind = "pod_classes" if isinstance(facts, PodFacts) else "node_classes"
    body[FIELDS[kind]] = [to_wire(facts)]
    path.write_bytes(content_of(pack(body)))
    assert text in refusal_of(path)


def test_a_single_wrong_byte_anywhere_is_detected(path):
    write_trace(path, small_trace())
    sound, rng = path.read_bytes(), random.Random(0)
    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= rng.randrange(1, 256)
        path.write_bytes(damaged)
        refusal_of(path)
