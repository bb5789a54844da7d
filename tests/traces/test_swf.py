"""Logs in the Standard Workload Format, made for these tests in the published schema."""

import gzip

import pytest

from roadstead.fleet.trace import NEVER_S
from roadstead.traces import swf
from roadstead.traces.machines import MachineSpec
from roadstead.traces.swf import SwfReader

HEADER = """; Version: 2.2
; Computer: made for a test
; MaxJobs: 5
; MaxNodes: 4 (all of them)
; MaxProcs: 16
; UnixStartTime: 838742400
"""
#            job submit wait run alloc cpu mem req time memory status
JOB = "1 0 10 100 4 -1 -1 4 200 -1 1 3 1 -1 2 -1 -1 -1"
GIB = 1 << 30


def job(**changes):
    """Return the line of JOB with some fields changed."""
    fields = dict(zip(swf.FIELDS, JOB.split(), strict=True))
    return " ".join(str(value) for value in (fields | changes).values())


@pytest.fixture
def read(imported, tmp_path):
    def call(*lines, header=HEADER, nodes=None, processors=None, refused=False, **options):
        path = tmp_path / "log.swf"
        path.write_text(header + "\n".join(lines) + "\n")
        call = imported.refusal if refused else imported
        make = lambda sink: SwfReader(sink, MachineSpec(64_000, GIB, nodes), processors)  # noqa: E731
        return call(make, path, **options)

    return call


def test_a_job_of_one_node_is_a_pod_that_arrives_and_runs(read, imported):
    read(JOB)
    assert imported.pods == [("job-1", {"cpu": 4000}, 0, 100)]
    assert imported.trace.deletion_s.tolist() == [110], "the wait counts for the recorded end"
    assert imported.trace.pod_classes[0].labels == (("queue", "q2"),)


def test_nodes_are_those_of_the_header(read, imported):
    read(JOB)
    assert imported.nodes == {f"node-{n}": {"cpu": 4000, "memory": GIB} for n in range(4)}


def test_a_mistyped_number_of_nodes_is_refused_before_any_is_made(read):
    # Five million nodes would take minutes and gigabytes.
    refusal = read(JOB, header="; MaxNodes: 999999999\n", refused=True)
    assert "has more than 5000000 nodes" in refusal


def test_a_job_of_many_processors_is_spread_over_nodes(read, imported):
    read(job(requested=10, requested_memory=1024))
    mib = 1 << 20
    assert [(name, requests) for name, requests, _, _ in imported.pods] == [
        ("job-1-0", {"cpu": 4000, "memory": 4 * mib}),
        ("job-1-1", {"cpu": 4000, "memory": 4 * mib}),
        ("job-1-2", {"cpu": 2000, "memory": 2 * mib}),
    ]


def test_jobs_outside_of_the_sample_are_not_left_out(read, imported):
    read(job(requested=-1, allocated=0), sample=1e-15)
    assert imported.left_out == {}


def test_allocated_processors_count_where_none_are_requested(read, imported):
    read(job(requested=-1, allocated=3))
    assert imported.pods[0][1] == {"cpu": 3000}


def test_without_a_header_every_processor_is_a_pod_and_there_are_no_nodes(read, imported):
    read(JOB, header="")
    assert len(imported.pods) == 4
    assert imported.nodes == {}
    assert imported.result.notes == ("the trace has no nodes; give their number with --nodes",)


def test_options_replace_the_header(read, imported):
    read(JOB, nodes=2, processors=2)
    assert (len(imported.pods), len(imported.nodes)) == (2, 2)


def test_rows_that_cannot_be_pods_are_counted_by_reason(read, imported):
    read(
        JOB,
        job(job=2, run=-1),
        job(job=3, run=-5),
        job(job=4, run=0, status=5),
        job(job=5, requested=-1, allocated=0),
        job(job=6, submit=-1),
        job(job=7, run=0),
    )
    assert [name for name, *_ in imported.pods] == ["job-1", "job-7"], "a run of 0 s is one"
    assert imported.left_out == {
        "no run time": 1,
        "negative run time": 1,
        "canceled before it started": 1,
        "no processors": 1,
        "negative submit time": 1,
    }


def test_a_job_that_waited_unknown_time_ends_as_if_it_had_not(read, imported):
    read(job(wait=-1))
    assert imported.trace.deletion_s.tolist() == [100]
    assert NEVER_S not in imported.trace.duration_s.tolist()


def test_a_packed_log_is_read(imported, tmp_path):
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress((HEADER + JOB + "\n").encode()))
    imported(lambda sink: SwfReader(sink, MachineSpec(), None), path)
    assert len(imported.pods) == 1


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("1 2 3", "line 7: has 3 fields, not 18"),
        (job(run="soon"), 'line 7: run: "soon" is not a number'),
        (job(run="nan"), 'line 7: run: "nan" is not a number'),
        (job(run="1e20"), 'line 7: run: "1e20" is more than 292 years'),
        (job(requested="2.5"), 'line 7: requested: "2.5" is not a whole number up to'),
        (job(requested=-1, allocated="2.5"), 'line 7: allocated: "2.5" is not a whole number'),
        (job(requested=-1, allocated="1e8"), 'line 7: allocated: "1e8" makes more than'),
        (job(requested="1e8", job=1), "line 7: requested"),
        (job(requested="9" * 90), "line 7: requested"),
        (job(requested_memory="1e30"), "line 7: requested_memory"),
        (job(job="x"), 'line 7: job: "x" is not a whole number'),
    ],
)
def test_wrong_fields_are_refused_by_line_and_name(read, line, text):
    assert f"log.swf: {text}" in read(line, refused=True)


def test_two_jobs_of_one_number_are_refused(read):
    assert 'line 8: "job-1" is in' in read(JOB, JOB, refused=True)
