"""Joined traces: one after another or merged, with the pods and nodes of all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import TraceBuilder
from roadstead.fleet.trace_file import read_trace, write_trace
from roadstead.protocol.errors import InputError
from roadstead.traces.concat import concat


def silent(phase, done, total):
    pass


def trace_of(times, nodes=("n-0",), cpu=1000, prefix="p"):
    builder = TraceBuilder("test", {"default": ()})
    for name in nodes:
        builder.add_node(NodeFacts(name=name, allocatable=(("cpu", cpu),)))
    for index, at in enumerate(times):
        facts = PodFacts(requests=(("cpu", 100 * (index % 3)),))
        builder.add_pod(f"{prefix}-{index}", f"default/{prefix}-{index}", facts, at, at + 5)
    return builder.build()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


def joined(files, traces, order="after", nodes="all", gap_ms=0):
    paths = []
    for number, trace in enumerate(traces):
        paths.append(files / f"{number}.trace")
        write_trace(paths[-1], trace)
    concat(paths, files / "out.trace", order, nodes, gap_ms, silent)
    return read_trace(files / "out.trace")


TIMES = st.lists(st.integers(0, 100), max_size=20).map(sorted)


@given(st.lists(TIMES, min_size=1, max_size=3), st.integers(0, 9_000))
def test_each_trace_begins_after_the_last_arrival_of_the_one_before(files, traces, gap_ms):
    out = joined(files, [trace_of(times) for times in traces], gap_ms=gap_ms)
    wanted, start = [], 0
    for times in traces:
        wanted += [start + 1000 * time for time in times]
        start = max([start, *(start + 1000 * time for time in times)]) + gap_ms
    assert out.creation_ms.tolist() == wanted
    assert set(out.duration_ms.tolist()) <= {5000}


@given(st.lists(TIMES, min_size=1, max_size=3))
def test_merged_traces_begin_together_and_are_sorted(files, traces):
    out = joined(files, [trace_of(times) for times in traces], "merged")
    assert out.creation_s.tolist() == sorted(time for times in traces for time in times)
    requests = sorted(dict(facts.requests)["cpu"] for _, facts in out.pods())
    assert requests == sorted(100 * (at % 3) for times in traces for at in range(len(times)))


def test_pods_of_later_traces_have_the_number_of_their_trace(files):
    out = joined(files, [trace_of([1]), trace_of([1]), trace_of([1])])
    assert out.pod_names == ("p-0", "p-0-2", "p-0-3")
    assert out.pod_uids == ("default/p-0", "default/p-0-2", "default/p-0-3")


def test_equal_nodes_of_one_name_are_one_and_others_get_another_name(files):
    out = joined(files, [trace_of([1], ["a", "b"]), trace_of([1], ["b", "c"])])
    assert out.node_names == ("a", "b", "c")
    out = joined(files, [trace_of([1], ["a", "b"]), trace_of([1], ["b"], cpu=5)])
    assert out.node_names == ("a", "b", "b-2")
    out = joined(files, [trace_of([1], ["b", "b-2"]), trace_of([1], ["b"], cpu=5)])
    assert out.node_names == ("b", "b-2", "b-2-2")
    out = joined(files, [trace_of([1], ["a"]), trace_of([1], ["c"])], nodes="first")
    assert out.node_names == ("a",)


def test_a_name_used_by_two_traces_is_refused(files):
    clash = trace_of([1])
    other = TraceBuilder("test", {"default": ()})
    other.add_pod("p-0-2", "default/p-0-2", PodFacts())
    with pytest.raises(InputError, match='"p-0-2" is the name of pods of two traces'):
        joined(files, [other.build(), clash])


def test_a_trace_that_would_end_after_292_years_is_refused(files):
    with pytest.raises(InputError, match=r"1\.trace: would end after more than 292 years"):
        joined(files, [trace_of([1]), trace_of([1])], gap_ms=9_223_372_036_000)
