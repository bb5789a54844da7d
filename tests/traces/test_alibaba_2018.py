"""Alibaba's trace of 2018: small tables in the published schema."""

import pytest

from roadstead.fleet.trace import NEVER_S
from roadstead.traces import sink as sink_module
from roadstead.traces.alibaba_2018 import Alibaba2018Reader
from roadstead.traces.machines import MachineSpec
from tests.traces.conftest import write_csv

GIB = 1 << 30
MACHINES = [
    ("m_1932", 0, 41, "2", 96, 100, "USING"),
    ("m_1932", 99, 41, "2", 96, 100, "USING"),
    ("m_1933", 0, 41, "", 64, 50, "USING"),
    ("m_1934", 0, 41, "2", "", "", "USING"),
]
TASK = {
    "name": "task_Nzg3ODAw==",
    "count": 2,
    "job": "j_3",
    "type": "1",
    "status": "Terminated",
    "start": 157213,
    "end": 157295,
    "cpu": "100.0",
    "memory": "0.39",
}
CONTAINER = ("c_1", "m_2556", 0, "app_5052", "started", 400, 400, "1.56")


def task(**changes):
    return tuple((TASK | changes).values())


@pytest.fixture
def read(imported, tmp_path):
    def call(*tasks, containers=None, machines=MACHINES, refused=False, **options):
        write_csv(tmp_path / "machine_meta.csv", machines)
        write_csv(tmp_path / "batch_task.csv.gz", tasks)
        if containers is not None:
            write_csv(tmp_path / "container_meta.csv", containers)
        make = lambda sink: Alibaba2018Reader(sink, MachineSpec(64_000, 100 * GIB))  # noqa: E731
        return (imported.refusal if refused else imported)(make, tmp_path, **options)

    return call


def test_every_instance_of_a_task_is_a_pod(read, imported):
    read(task(job="j-3", name="m1"))
    size = {"cpu": 1000, "memory": round(0.39 * GIB)}
    assert imported.pods == [("j-3-m1-0", size, 0, 82), ("j-3-m1-1", size, 0, 82)]
    assert imported.trace.pod_classes[0].labels == (("kind", "batch"),)


def test_names_that_kubernetes_does_not_allow_get_a_hash(read, imported):
    read(task(count=1), task(count=1, name="task_Nzg3ODaw=="))
    names = [name for name, *_ in imported.pods]
    assert all(name.startswith("j-3-task-nzg3oda") for name in names)
    assert len(set(names)) == 2, "ids that differ only in case are two names"


def test_machines_are_nodes_in_the_zones_of_their_failure_domains(read, imported):
    read(task())
    (first, second) = imported.trace.nodes()
    assert dict(first.allocatable) == {"cpu": 96_000, "memory": 100 * GIB}
    assert dict(second.allocatable) == {"cpu": 64_000, "memory": 50 * GIB}
    zones = [dict(node.labels)["topology.kubernetes.io/zone"] for node in (first, second)]
    assert zones == ["2", "41"]
    assert imported.left_out == {"further row of a machine": 1, "machine without capacity": 1}


def test_containers_are_pods_without_end_that_arrive_with_their_first_row(read, imported):
    later = (CONTAINER[0], *CONTAINER[1:2], 500, *CONTAINER[3:])
    read(task(), containers=[CONTAINER, later], machines=[])
    name, size, created, duration = imported.pods[0]
    assert name.startswith("container-c-1-")
    assert (size["cpu"], created, duration) == (4000, 0, NEVER_S)
    assert imported.left_out == {"further row of a container": 1}


def test_rows_that_cannot_be_pods_are_counted_by_reason(read, imported):
    read(
        task(start=0, end=0, status="Waiting"),
        task(end=""),
        task(end=157212),
        task(count=0),
        task(count=""),
        task(cpu="", memory=""),
        task(memory="101"),
        task(memory="-1"),
        task(cpu="0", memory="0"),
        machines=[],
    )
    assert imported.left_out == {
        "no start or end time": 2,
        "negative duration": 1,
        "no instances": 2,
        "no request": 2,
        "memory that is marked as invalid": 2,
    }


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"count": "many"}, 'line 1: instance_num: "many" is not a number'),
        ({"count": "1e15"}, 'line 1: instance_num: "1e15" is more than'),
        ({"cpu": "inf"}, 'line 1: plan_cpu: "inf" is not a number'),
        ({"cpu": "1e100"}, "line 1: plan_cpu:"),
        ({"start": "1e12"}, 'line 1: start_time: "1e12" is more than 292 years'),
    ],
)
def test_wrong_cells_are_refused_by_line_and_column(read, changes, text):
    assert f"batch_task.csv.gz: {text}" in read(task(**changes), refused=True)


def test_more_pods_than_the_bound_are_refused_with_a_remedy(read, monkeypatch):
    monkeypatch.setattr(sink_module, "PODS_MAX", 5)
    assert "has more than 5 pods; make it smaller by --sample" in read(task(count=6), refused=True)


def test_a_table_that_must_be_there_is_named(imported, tmp_path):
    make = lambda sink: Alibaba2018Reader(sink, MachineSpec())  # noqa: E731
    assert "has no file machine_meta.csv" in imported.refusal(make, tmp_path)
