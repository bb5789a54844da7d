"""Trace files of version 1, written by earlier releases: they are still read, within bounds."""

import hashlib
import random
import zlib

import numpy as np
import pytest

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.fleet import format_1
from roadstead.fleet.format_1 import HEADER_1, TraceBody
from roadstead.fleet.trace import NEVER_S, TraceBuilder
from roadstead.fleet.trace_file import read_trace, trace_digest
from roadstead.protocol.codec import to_wire
from roadstead.protocol.errors import InputError
from roadstead.protocol.plain_data import pack


@pytest.fixture
def path(tmp_path):
    return tmp_path / "small.trace"


def small_trace():
    builder = TraceBuilder("test", {"default": (("team", "a"),)})
    builder.add_node(NodeFacts(name="n-0", allocatable=(("cpu", 4000),), allocatable_pods=10))
    builder.add_pod("p-0", "u-0", PodFacts(requests=(("cpu", 100),)), creation_s=5, deletion_s=9)
    builder.add_pod("p-1", "u-1", PodFacts(requests=(("cpu", 100),)), creation_s=6)
    return builder.build()


def body_of(trace):
    """Return the body that version 1 had of a trace, as plain lists for tests to change."""
    body = TraceBody(
        source=trace.source,
        namespaces=trace.namespaces,
        node_classes=trace.node_classes,
        node_names=trace.node_names,
        node_class=trace.node_class.astype("<i4").tobytes(),
        pod_classes=trace.pod_classes,
        pod_names=trace.pod_names,
        pod_uids=trace.pod_uids,
        pod_class=trace.pod_class.astype("<i4").tobytes(),
        creation_s=trace.creation_s.astype("<i8").tobytes(),
        deletion_s=trace.deletion_s.astype("<i8").tobytes(),
    )
    return to_wire(body)


def content_of(body):
    """Return a file with any body and its correct digest."""
    return HEADER_1 + hashlib.sha256(body).digest() + zlib.compress(body)


def refusal_of(path):
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_file_of_version_1_is_read_and_pods_run_from_creation_to_deletion(path):
    path.write_bytes(content_of(pack(body_of(small_trace()))))

    trace = read_trace(path)

    assert trace_digest(trace) == trace_digest(small_trace())
    assert trace.duration_s.tolist() == [4, NEVER_S]


def test_a_body_past_the_size_limit_is_refused(path, monkeypatch):
    path.write_bytes(content_of(pack(body_of(small_trace()))))
    monkeypatch.setattr(format_1, "BODY_MAX_BYTES", 100)
    assert "holds more than 100 bytes" in refusal_of(path)


@pytest.mark.parametrize("seconds", [-(1 << 63), (1 << 63) - 2])
def test_a_time_beyond_292_years_is_refused(path, seconds):
    body = body_of(small_trace())
    times = np.array([seconds, 6], dtype="<i8").tobytes()
    place = list(TraceBody.__dataclass_fields__).index("creation_s")
    path.write_bytes(content_of(pack([*body[:place], times, *body[place + 1 :]])))
    assert "pods.creation_s: is more than" in refusal_of(path)


HOSTILE_FILES = {
    "empty": (b"", "is not a trace"),
    "text": (b"kind: List\nitems: []\n", "is not a trace"),
    "version of bytes": (b"roadstead-trace \xff\xff", "is a trace of version"),
    "header alone": (HEADER_1, "is damaged"),
    "no compression": (HEADER_1 + bytes(32) + b"body", "does not decompress"),
    "another digest": (HEADER_1 + bytes(32) + zlib.compress(b"body"), "does not match its digest"),
    "cut short": (content_of(b"x" * 500)[:-6], "is cut short or goes on after its end"),
    "more after the end": (content_of(b"body") + b"more", "is cut short or goes on"),
    "no msgpack": (content_of(b"\xc1"), "make it anew: not msgpack"),
    "another shape": (content_of(pack({"nodes": []})), "this release cannot read it"),
    "nested too deep": (content_of(b"\x91" * 100_000 + b"\xc0"), "make it anew: nested deeper"),
    "list of absurd length": (content_of(b"\xdd\xff\xff\xff\xff"), "this release cannot read it"),
    "half a surrogate": (content_of(b"\xa3\xed\xa0\x80"), "this release cannot read it"),
}


@pytest.mark.parametrize(("content", "text"), HOSTILE_FILES.values(), ids=HOSTILE_FILES)
def test_anything_but_a_complete_trace_is_refused(path, content, text):
    path.write_bytes(content)
    assert text in refusal_of(path)


def test_a_compression_bomb_is_read_only_up_to_the_limit(path, monkeypatch):
    monkeypatch.setattr(format_1, "BODY_MAX_BYTES", 1 << 20)
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
    "name no text": ({"pod_names": [1, 2]}, "this release cannot read it"),
    "source no text": ({"source": None}, "this release cannot read it"),
    "namespaces no pairs": ({"namespaces": [["a"]]}, "this release cannot read it"),
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
    sound, rng = content_of(pack(body_of(small_trace()))), random.Random(0)
    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= rng.randrange(1, 256)
        path.write_bytes(damaged)
        refusal_of(path)


def test_times_past_292_years_are_refused(path):
    body = body_of(small_trace())
    body[FIELDS["creation_s"]] = np.array([5, 1 << 40], "<i8").tobytes()
    path.write_bytes(content_of(pack(body)))
    assert "pods.creation_s: is more than 9223372036 (292 years)" in refusal_of(path)
