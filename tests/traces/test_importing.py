"""Imports: pods sorted by arrival, names once, samples by job, and counts of what is left out."""

import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.pod import PodFacts
from roadstead.fleet import trace_writer
from roadstead.fleet.trace import NEVER_MS
from roadstead.protocol.errors import InputError
from roadstead.protocol.names import is_label_value, is_subdomain
from roadstead.traces import rewriting
from roadstead.traces import sink as sink_module
from roadstead.traces import spool as spool_module
from roadstead.traces.importing import ImportOptions, import_trace, sampler
from roadstead.traces.rows import Row
from roadstead.traces.sink import LeftOut, TraceSink, label_value, object_name
from roadstead.traces.spool import EventRow, Spool, SpooledPod, SpoolError

HERE = Path("here")


class Pods:
    """A reader that adds pods of (name, arrival in ms)."""

    def __init__(self, *pods):
        self._pods = pods

    def __call__(self, sink):
        self._sink = sink
        return self

    def read(self, source, meter):
        self.add(self._sink, self._pods)

    def add(self, sink, pods):
        self._sink = sink
        rows = (Row("t.csv", line, pod, {}) for line, pod in enumerate(pods, start=1))
        sink.handle_rows(rows, self._pod)

    def _pod(self, row):
        name, creation_ms = row.cells
        if name is None:
            raise LeftOut("no name")
        if self._sink.is_sampled(name.partition("-")[0]):
            code = self._sink.pod_class(1, PodFacts)
            self._sink.add_pod(name, code, creation_ms, 1000, row)


def test_pods_are_sorted_by_arrival_and_the_first_arrives_at_the_start(imported):
    trace = imported(Pods(("c", 5_000), ("a", 2_000), ("b", 5_000)), HERE)
    assert trace.pod_names == ("a", "c", "b"), "equal arrivals keep their order"
    assert trace.creation_s.tolist() == [0, 3, 3]
    assert trace.deletion_s.tolist() == [1, 4, 4]


def test_more_rows_than_a_batch_are_sorted_too(imported, monkeypatch):
    monkeypatch.setattr(spool_module, "BATCH_ROWS", 7)
    times = list(range(500))
    random.Random(1).shuffle(times)
    trace = imported(Pods(*((f"p{time}", time) for time in times)), HERE)
    assert trace.pod_names == tuple(f"p{time}" for time in range(500))


def test_memory_does_not_grow_with_the_number_of_pods(tmp_path, monkeypatch):
    monkeypatch.setattr(spool_module, "BATCH_ROWS", 100)
    monkeypatch.setattr(rewriting, "FRAME_MAX_ROWS", 100)
    monkeypatch.setattr(trace_writer, "FRAME_MAX_ROWS", 100)

    def peak_of(pods):
        rows = ((f"p{number}", number * 7919 % pods) for number in range(pods))
        path = tmp_path / "t.trace"
        tracemalloc.start()
        read = lambda sink, meter: Pods().add(sink, rows)  # noqa: E731
        import_trace("test", "test", read, path, ImportOptions(), lambda *_: None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_of(1_000)
    assert peak_of(16_000) < 1.5 * peak_of(2_000)


def test_a_name_that_occurs_twice_is_an_error_with_both_lines(imported):
    message = imported.refusal(Pods(("a", 1), ("b", 1), ("a", 9)), HERE)
    assert message == 't.csv: line 3: "a" is in t.csv line 1 already'


def test_a_name_that_occurs_twice_is_left_out_on_request(imported):
    trace = imported(Pods(("a", 1), ("b", 1), ("a", 9)), HERE, on_error="skip")
    assert trace.pod_names == ("a", "b")
    assert imported.left_out == {"the name of an earlier pod": 1}
    assert imported.result.pods == 2


def test_rows_that_are_left_out_are_counted_with_the_first_place(imported):
    imported(Pods(("a", 1), (None, 1), (None, 2)), HERE)
    assert imported.left_out == {"no name": 2}
    assert imported.result.left_out["no name"].first == "t.csv: line 2"


def test_wrong_rows_stop_the_import_or_are_counted(imported):
    pods = Pods(("a", 1), ("b", -5), ("c", 1 << 60))
    assert "t.csv: b: arrives before time 0" in imported.refusal(pods, HERE)
    imported(pods, HERE, on_error="skip")
    assert imported.trace.pod_names == ("a",)
    assert imported.left_out == {
        "arrives before time 0": 1,
        "has a time of more than 292 years (int64 nanoseconds)": 1,
    }


def test_a_sample_keeps_whole_jobs_and_depends_on_the_seed_alone(imported):
    pods = Pods(*((f"j{job}-{number}", job) for job in range(200) for number in range(3)))
    first = imported(pods, HERE, sample=0.3, seed=1).pod_names
    assert imported(pods, HERE, sample=0.3, seed=1).pod_names == first
    assert imported(pods, HERE, sample=0.3, seed=2).pod_names != first
    jobs = [name.partition("-")[0] for name in first]
    assert {jobs.count(job) for job in jobs} == {3}
    assert 30 < len(set(jobs)) < 90


def test_a_larger_sample_contains_a_smaller_one():
    few, many = sampler(0.1, 3), sampler(0.5, 3)
    assert all(many(str(job)) for job in range(1000) if few(str(job)))


def test_reasons_are_bounded_in_number():
    with_reasons = TraceSink(Spool(), "test")
    for number in range(1000):
        with_reasons.leave_out(f"reason {number}")
    assert len(with_reasons.left_out) == sink_module.REASONS_MAX + 1
    assert sum(each.count for each in with_reasons.left_out.values()) == 1000


@pytest.mark.parametrize(
    ("name", "call", "text"),
    [
        ("PODS_MAX", lambda sink: sink.add_pod("p", 0, 0, 0), "has more than 0 pods"),
        ("NODES_MAX", lambda sink: sink.add_node("n", {}), "has more than 0 nodes"),
        ("CLASSES_MAX", lambda sink: sink.pod_class(1, PodFacts), "more than 0 distinct requests"),
        ("COUNT_MAX", lambda sink: sink.add_pods("p", 1, 0, 0, 0, None), "has 1 pods, more than 0"),
    ],
)
def test_numbers_of_objects_are_bounded(monkeypatch, name, call, text):
    monkeypatch.setattr(sink_module, name, 0)
    with pytest.raises(InputError, match=text):
        call(TraceSink(Spool(), "test"))


def test_two_nodes_of_one_name_are_an_error():
    sink = TraceSink(Spool(), "test")
    sink.add_node("n", {"cpu": 1})
    with pytest.raises(InputError, match='node: "n" is the name of another node'):
        sink.add_node("n", {"cpu": 1})


@given(st.lists(st.text(min_size=1, max_size=60), min_size=2, max_size=2))
def test_ids_become_names_that_kubernetes_allows_and_differ_if_the_ids_do(ids):
    first, second = ids
    assert is_subdomain(object_name(first))
    assert is_subdomain(object_name(first, second))
    assert (object_name(first) == object_name(second)) == (first == second)
    assert is_label_value(label_value(first))


def test_events_are_grouped_by_instance_and_sorted_by_time():
    spool = Spool()
    for a, b, time in ((2, 0, 5), (1, 1, 9), (1, 0, 7), (1, 1, 3), (1, 1, 9)):
        spool.add_event(EventRow(a, b, time, 0, -1, time))
    groups = [(key, [event.time_us for event in events]) for key, events in spool.events()]
    assert groups == [((1, 0), [7]), ((1, 1), [3, 9, 9]), ((2, 0), [5])]


def test_values_are_kept_by_name():
    spool = Spool()
    assert spool.put_number("a", 1)
    assert not spool.put_number("a", 2)
    assert (spool.number_of("a"), spool.number_of("b")) == (1, None)


def test_a_full_disk_is_reported_with_a_remedy(monkeypatch):
    tables = f"PRAGMA max_page_count = 20; {spool_module.TABLES}"
    monkeypatch.setattr(spool_module, "TABLES", tables)
    spool = Spool()
    pods = [SpooledPod(f"pod-{number}", 0, 0, NEVER_MS, 0) for number in range(50_000)]
    with pytest.raises(SpoolError, match=r"disk is full\); set SQLITE_TMPDIR to a folder"):
        spool.add_pods(pods)


def test_pods_are_in_the_order_of_rows_if_that_is_sorted():
    spool = Spool()
    for number in range(5):
        spool.add_pods([SpooledPod(f"p{number}", 0, number // 2, NEVER_MS, 0)])
    assert [[pod.name for pod in pods] for pods in spool.pods(2)] == [
        ["p0", "p1"],
        ["p2", "p3"],
        ["p4"],
    ]
