"""Google's traces of 2019: small shards of JSON lines in the published schema."""

import gzip
import json

import pytest

from roadstead.fleet.trace import NEVER_S
from roadstead.traces.google_2019 import Google2019Reader
from roadstead.traces.machines import MachineSpec

GIB = 1 << 30
S = 1_000_000
MACHINES = [
    {"time": "0", "machine_id": "22", "type": 1, "capacity": {"cpus": 0.5, "memory": 0.25}},
    {"time": "0", "machine_id": "23", "type": "ADD", "capacity": {"cpus": 1, "memory": 1}},
    {"time": "5", "machine_id": "23", "type": "REMOVE"},
    {"time": "9", "machine_id": "23", "type": 1, "capacity": {"cpus": 1, "memory": 1}},
    {"time": "0", "machine_id": "24", "type": 1},
]


def event(time_s, kind, collection="330587160469", **changes):
    """Return an event as BigQuery exports it: 64-bit integers are texts."""
    return {
        "time": str(time_s * S),
        "type": kind,
        "collection_id": collection,
        "scheduling_class": 2,
        "collection_type": 0,
        "priority": 103,
        "instance_index": 4,
        "resource_request": {"cpus": 0.125, "memory": 0.0625},
    } | changes


@pytest.fixture
def read(imported, tmp_path):
    def call(*events, machines=MACHINES, refused=False, **options):
        for name, rows in (("machine_events", machines), ("instance_events", events)):
            lines = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
            path = tmp_path / f"{name}-000000000000.json.gz"
            path.write_bytes(gzip.compress(lines.encode()))
        make = lambda sink: Google2019Reader(sink, MachineSpec(64_000, 256 * GIB))  # noqa: E731
        return (imported.refusal if refused else imported)(make, tmp_path, **options)

    return call


def test_an_instance_is_a_pod_that_arrives_when_submitted_and_runs(read, imported):
    read(event(600, "SUBMIT"), event(610, 3), event(650, "FINISH"), event(605, "QUEUE"))
    size = {"cpu": 8_000, "memory": 16 * GIB}
    assert imported.pods == [("instance-330587160469-4", size, 0, 40)]
    (facts,) = imported.trace.pod_classes
    assert facts.priority == 103
    assert facts.labels == (("collection-type", "job"), ("scheduling-class", "2"))


def test_machines_are_nodes_with_their_first_capacity(read, imported):
    read(event(1, "SUBMIT"), event(2, "SCHEDULE"))
    assert imported.nodes == {
        "machine-22": {"cpu": 32_000, "memory": 64 * GIB},
        "machine-23": {"cpu": 64_000, "memory": 256 * GIB},
    }
    assert imported.left_out == {
        "removal or update of a machine": 1,
        "machine that was added again": 1,
        "machine without capacity": 1,
    }


def test_alloc_instances_are_pods_and_tasks_inside_of_them_are_not(read, imported):
    alloc = {"collection": "7", "collection_type": "ALLOC_SET"}
    inside = {"collection": "8", "alloc_collection_id": "7", "alloc_instance_index": "0"}
    events = [event(1, kind, **which) for which in (alloc, inside) for kind in ("SUBMIT", 3)]
    read(*events, machines=[])
    assert [name for name, *_ in imported.pods] == ["instance-7-4"]
    assert imported.left_out == {"event of a task inside of an alloc instance": 2}


def test_times_before_and_after_the_trace_are_its_start_and_never(read, imported):
    after = str((1 << 63) - 1)
    read(event(0, "SUBMIT"), event(0, "SCHEDULE"), event(0, "FINISH") | {"time": after})
    assert [pod[2:] for pod in imported.pods] == [(0, NEVER_S)]


def test_rows_that_cannot_be_pods_are_counted_by_reason(read, imported):
    nothing = {"resource_request": None}
    zero = {"resource_request": {"cpus": 0, "memory": 0}}
    read(
        event(1, "SUBMIT", "1"),
        *(event(1, kind, "2", **nothing) for kind in ("SUBMIT", "SCHEDULE")),
        *(event(1, kind, "3", **zero) for kind in ("SUBMIT", "SCHEDULE")),
        event(-1, "SUBMIT", "4"),
        machines=[],
    )
    assert imported.left_out == {"never scheduled": 1, "no request": 2, "negative time": 1}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("[1]", "line 1: list of 1 is not an object"),
        ("{", "line 1: is not JSON"),
        ('{"a": NaN}', "line 1: is not JSON: NaN is not a JSON number"),
        ("[" * 100_000, "line 1: is nested too deep"),
        (event(1, "START"), 'line 1: type: "START" is not an int64'),
        (event(1, 11), "line 1: type: 11 is none of SUBMIT"),
        (event(1, "SUBMIT", collection=None), "line 1: collection_id: None is not an int64"),
        (event(1, "SUBMIT", collection=1.5), "line 1: collection_id: 1.5 is not an int64"),
        (event(1, "SUBMIT", collection=str(1 << 63)), "line 1: collection_id:"),
        (event(1, "SUBMIT", time=True), "line 1: time: True is not an int64"),
        (event(1, "SUBMIT", time="--5"), 'line 1: time: "--5" is not an int64'),
        (event(1, "SUBMIT", resource_request=5), "line 1: resource_request: 5 is not an object"),
        (
            event(1, "SUBMIT", resource_request={"cpus": "1", "memory": 1}),
            'line 1: resource_request: cpus: "1" is not a number',
        ),
        (
            event(1, "SUBMIT", resource_request={"cpus": -1, "memory": 1}),
            "line 1: resource_request: cpus: -1 is negative",
        ),
        (
            event(1, "SUBMIT", resource_request={"cpus": 1e200, "memory": 1}),
            "line 1: resource_request: cpus: 1e+200 is too large",
        ),
        (
            event(1, "SUBMIT", resource_request={"cpus": 10**400, "memory": 1}),
            "line 1: resource_request: cpus: an integer of 1329 bits is not a number",
        ),
        (event(1, "SUBMIT", priority=10**9), "line 1: priority: 1000000000 is not a number from"),
    ],
)
def test_wrong_objects_are_refused_by_line_and_field(read, row, text):
    assert f"instance_events-000000000000.json.gz: {text}" in read(row, refused=True)
