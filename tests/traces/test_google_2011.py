"""Google's trace of 2011: small shards in the published schema."""

import pytest

from roadstead.fleet.trace import NEVER_S
from roadstead.traces.google_2011 import Google2011Reader
from roadstead.traces.machines import MachineSpec
from tests.traces.conftest import write_csv

GIB = 1 << 30
S = 1_000_000
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, PENDING, RUNNING = range(9)
MACHINES = [
    (0, 5, 0, "HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=", "0.5", "0.2493"),
    (0, 6, 0, "HofL", "1", "1"),
    (9, 6, 1, "HofL", "1", "1"),
    (12, 6, 0, "HofL", "1", "1"),
    (0, 7, 0, "HofL", "", ""),
]


ROW = {
    "time": S,
    "missing": "",
    "job": 3418309,
    "index": 0,
    "machine": "",
    "kind": SUBMIT,
    "user": "2BQ=",
    "class": 1,
    "priority": 9,
    "cpu": "0.125",
    "memory": "0.0625",
    "disk": "0.0004244",
    "different": 0,
}


def event(time_s, kind, job=3418309, index=0, **changes):
    row = ROW | {"time": time_s * S, "job": job, "index": index, "kind": kind}
    return tuple((row | changes).values())


@pytest.fixture
def read(imported, tmp_path):
    def call(*events, machines=MACHINES, refused=False, **options):
        write_csv(tmp_path / "machine_events" / "part-00000-of-00001.csv.gz", machines)
        half = len(events) // 2
        for number, part in enumerate((events[:half], events[half:])):
            write_csv(tmp_path / "task_events" / f"part-{number:05}-of-00002.csv.gz", part)
        make = lambda sink: Google2011Reader(sink, MachineSpec(64_000, 256 * GIB))  # noqa: E731
        return (imported.refusal if refused else imported)(make, tmp_path, **options)

    return call


def test_a_task_is_a_pod_that_arrives_when_submitted_and_runs_from_schedule_to_end(read, imported):
    read(event(600, SUBMIT), event(610, SCHEDULE), event(650, FINISH))
    size = {"cpu": 8_000, "memory": 16 * GIB}
    assert imported.pods == [("task-3418309-0", size, 0, 40)]
    assert imported.trace.deletion_s.tolist() == [50]
    (facts,) = imported.trace.pod_classes
    assert (facts.priority, facts.labels) == (9, (("scheduling-class", "1"),))


def test_machines_are_nodes_with_their_first_capacity(read, imported):
    read(event(1, SUBMIT), event(2, SCHEDULE))
    assert imported.nodes == {
        "machine-5": {"cpu": 32_000, "memory": round(0.2493 * 256 * GIB)},
        "machine-6": {"cpu": 64_000, "memory": 256 * GIB},
    }
    assert imported.left_out == {
        "removal or update of a machine": 1,
        "machine that was added again": 1,
        "machine without capacity": 1,
    }


def test_only_the_last_attempt_counts(read, imported):
    events = [(1, SUBMIT), (2, SCHEDULE), (50, EVICT), (50, SUBMIT), (60, SCHEDULE), (65, KILL)]
    read(*(event(*each) for each in events))
    assert [pod[2:] for pod in imported.pods] == [(0, 5)]
    assert imported.result.notes == ("1 earlier attempts of restarted instances are left out",)


def test_tasks_that_run_at_the_end_do_not_end(read, imported):
    read(event(1, SUBMIT), event(2, SCHEDULE), event(5, SUBMIT, job=2), event(6, SCHEDULE, job=2),
         event(0, FINISH, job=2, time=(1 << 63) - 1))  # fmt: skip
    assert [pod[3] for pod in imported.pods] == [NEVER_S, NEVER_S]


def test_events_in_any_order_and_shard_make_the_same_pods(read, imported):
    events = [event(time, kind, job=job) for job in (1, 2)
              for time, kind in ((job, SUBMIT), (9, SCHEDULE), (20, FINISH))]  # fmt: skip
    read(*events)
    pods = imported.pods
    read(*reversed(events))
    assert imported.pods == pods


def test_rows_that_cannot_be_pods_are_counted_by_reason(read, imported):
    read(
        event(1, SUBMIT, job=1),
        *(event(1, kind, job=2, cpu="", memory="") for kind in (SUBMIT, SCHEDULE)),
        *(event(1, kind, job=3, cpu="0", memory="0") for kind in (SUBMIT, SCHEDULE)),
        event(0, SUBMIT, job=4, time=-5),
        *(event(1, kind, job=5) for kind in (SUBMIT, SCHEDULE)),
        machines=[],
    )
    assert [name for name, *_ in imported.pods] == ["task-5-0"]
    assert imported.left_out == {"never scheduled": 1, "no request": 2, "negative time": 1}


def test_a_sample_has_all_tasks_of_a_job_or_none(read, imported):
    events = [event(1, kind, job=job, index=index) for job in range(60) for index in range(3)
              for kind in (SUBMIT, SCHEDULE)]  # fmt: skip
    read(*events, sample=0.4)
    jobs = [name.split("-")[1] for name, *_ in imported.pods]
    assert {jobs.count(job) for job in jobs} == {3}
    assert 10 < len(set(jobs)) < 50


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"time": "soon"}, 'line 1: time: "soon" is not a whole number'),
        ({"time": 1 << 63}, "line 1: time:"),
        ({"kind": 9}, 'line 1: event_type: "9" is more than 8'),
        ({"cpu": "NaN"}, 'line 1: cpu_request: "NaN" is not a number'),
        ({"cpu": "-0.5"}, 'line 1: cpu_request: "-0.5" is negative'),
        ({"memory": "1e300"}, "line 1: memory_request"),
        ({"priority": "high"}, 'line 1: priority: "high" is not a number'),
        ({"class": 4}, 'line 1: scheduling_class: "4" is more than 3'),
        ({"job": ""}, 'line 1: job_id: "" is not a whole number'),
    ],
)
def test_wrong_cells_are_refused_by_line_and_column(read, changes, text):
    message = read(tuple((ROW | changes).values()), refused=True)
    assert f"part-00001-of-00002.csv.gz: {text}" in message


def test_a_missing_folder_is_refused(imported, tmp_path):
    make = lambda sink: Google2011Reader(sink, MachineSpec())  # noqa: E731
    assert "machine_events: has no files part-*.csv*" in imported.refusal(make, tmp_path)
