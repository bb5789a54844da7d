"""Statistics of traces: exact counts, close quantiles, and use as a slow count gives it."""

import json
from io import StringIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import NEVER_MS, NEVER_S, TraceBuilder
from roadstead.fleet.trace_file import write_trace
from roadstead.traces.stats import trace_stats
from roadstead.traces.stats_report import print_stats, stats_json

HOUR_S = 3600
PODS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 50 * HOUR_S), st.none() | st.integers(0, 10**6)),
    max_size=30,
)


def silent(phase, done, total):
    pass


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("stats") / "t.trace"


def stats_of(path, pods, nodes=4):
    builder = TraceBuilder("test", {"default": ()})
    for index in range(nodes):
        shape = (("cpu", 1000 * (1 + index % 2)),)
        builder.add_node(NodeFacts(name=f"n-{index}", allocatable=shape))
    for index, (kind, at, lasts) in enumerate(pods):
        facts = PodFacts(labels=(("kind", str(kind)),), requests=(("cpu", 100 * kind),))
        duration_s = NEVER_S if lasts is None else lasts
        builder.add_pod(f"p-{index}", f"default/p-{index}", facts, at, NEVER_S, duration_s)
    trace = builder.build()
    write_trace(path, trace)
    return trace, trace_stats(path, silent)


@given(PODS)
def test_counts_are_exact_and_quantiles_at_most_a_sixtieth_too_high(path, pods):
    trace, stats = stats_of(path, pods)
    assert (stats.nodes, stats.pods) == (4, len(pods))
    assert {each.allocatable: each.nodes for each in stats.shapes} == {
        (("cpu", 1000),): 2,
        (("cpu", 2000),): 2,
    }
    for each in stats.pod_classes:
        members = [pod for pod in pods if str(pod[0]) == dict(each.labels)["kind"]]
        ended = [lasts for _, _, lasts in members if lasts is not None]
        assert each.pods == len(members)
        assert each.mean_s == pytest.approx(np.mean(ended)) if ended else each.mean_s is None
    assert stats.endless == sum(lasts is None for _, _, lasts in pods)
    ended_ms = np.sort(trace.duration_ms[trace.duration_ms != NEVER_MS])
    for name, value in stats.lifetimes_s.items():
        rank = max(1, int(np.ceil(float(name[1:]) / 100 * len(ended_ms))))
        exact = ended_ms[rank - 1] / 1000
        assert exact <= value <= exact * (1 + 1 / 60)


@given(PODS)
def test_arrivals_are_counted_hour_by_hour(path, pods):
    _, stats = stats_of(path, pods)
    counts = [0] * len(stats.arrivals_per_hour)
    for _, at, _ in pods:
        counts[at // HOUR_S] += 1
    assert list(stats.arrivals_per_hour) == counts


@given(PODS)
def test_use_is_that_of_pods_that_start_when_they_arrive(path, pods):
    _, stats = stats_of(path, pods)
    for use in stats.use:
        assert (use.resource, use.capacity) == ("cpu", 6000)
        for at_s, requested in zip(stats.point_s, use.requested, strict=True):
            running = [
                100 * kind
                for kind, arrived, lasts in pods
                if arrived <= at_s and (lasts is None or at_s < arrived + lasts)
            ]
            assert requested == sum(running)


def printed(stats, width=80):
    console = Console(file=StringIO(), width=width)
    print_stats(console, stats, 2)
    return console.file.getvalue()


def test_the_tables_fit_the_line_and_have_every_part(path):
    pods = [(1, hour * HOUR_S, 2 * HOUR_S) for hour in range(48)] + [(2, 0, None), (3, 0, 5)]
    _, stats = stats_of(path, pods)
    text = printed(stats)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("Nodes by shape", "Pods by class", "Lifetimes", "Arrivals per hour", "Requested"):
        assert part in text
    assert "0.1 cores, kind=1" in text
    assert "… and 1 more classes" in text
    assert "do not end    1 pods" in text
    assert "▁" in text


def test_an_empty_trace_has_statistics_as_well(path):
    _, stats = stats_of(path, [], nodes=0)
    assert "0 nodes, 0 pods of 0 classes" in printed(stats)
    assert json.loads(stats_json(stats))["arrivalsPerHour"] == []


def test_json_has_every_class_and_point(path):
    _, stats = stats_of(path, [(1, 0, 5), (2, 9, None), (3, 7, 8)])
    document = json.loads(stats_json(stats))
    assert len(document["podsByClass"]) == 3
    assert len(document["pointS"]) == len(document["use"][0]["requested"])
    assert document["lifetimesS"]["p100"] == 8
