"""Alibaba's GPU trace of 2020: small tables in the published schema."""

import pytest

from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.fleet.openb import GPU_RESOURCE, MODEL_LABEL
from roadstead.fleet.trace import NEVER_S
from roadstead.traces.alibaba_gpu_2020 import AlibabaGpu2020Reader
from tests.traces.conftest import write_csv

GIB = 1 << 30
MACHINES = [
    ("82e5af3cd5c4af3f56c62c54", "T4", 96, 512, 2),
    ("m-cpu", "CPU", 96, "384.5", 0),
    ("m-none", "T4", "", "", ""),
]
JOBS = [("4f057009a5d481acec67b088", "i1", "u", "Terminated", "1739100.0", "1739200.0")]
TASK = {
    "job": "4f057009a5d481acec67b088",
    "name": "tensorflow",
    "count": "1.0",
    "status": "Terminated",
    "start": "1739162.0",
    "end": "1739200.0",
    "cpu": "600.0",
    "memory": "29.296875",
    "gpu": "50.0",
    "type": "MISC",
}


def task(**changes):
    return tuple((TASK | changes).values())


@pytest.fixture
def read(imported, tmp_path):
    def call(*tasks, jobs=JOBS, machines=MACHINES, required=False, refused=False, **options):
        write_csv(tmp_path / "pai_machine_spec.csv", machines)
        write_csv(tmp_path / "pai_task_table.csv", tasks)
        if jobs is not None:
            write_csv(tmp_path / "pai_job_table.csv", jobs)
        make = lambda sink: AlibabaGpu2020Reader(sink, requires_type=required)  # noqa: E731
        return (imported.refusal if refused else imported)(make, tmp_path, **options)

    return call


def test_a_task_arrives_when_its_job_was_submitted_and_runs_for_its_own_time(read, imported):
    read(task(), task(name="ps", start="1739150.0", count="2.0", gpu=""))
    name = TASK["job"]
    size = {"cpu": 6000, "memory": 29.296875 * GIB}
    assert imported.pods == [
        (f"{name}-tensorflow", size | {GPU_RESOURCE: 500}, 0, 38),
        (f"{name}-ps-0", size, 0, 50),
        (f"{name}-ps-1", size, 0, 50),
    ]
    assert imported.trace.deletion_s.tolist() == [100, 100, 100]


def test_without_the_table_of_jobs_pods_arrive_when_they_started(read, imported):
    read(task(), jobs=None)
    assert imported.trace.deletion_s.tolist() == [38]
    assert imported.result.notes == ("pai_job_table is missing: pods arrive when they started",)


def test_machines_are_nodes_with_their_gpus_and_model(read, imported):
    read(task())
    first, second = imported.trace.nodes()
    assert dict(first.allocatable) == {"cpu": 96_000, "memory": 512 * GIB, GPU_RESOURCE: 2000}
    assert dict(first.labels)[MODEL_LABEL] == "T4"
    assert MODEL_LABEL not in dict(second.labels)
    assert imported.left_out == {"machine without capacity": 1}


def test_the_type_of_gpu_restricts_nodes_only_on_request(read, imported):
    read(task(type="V100"))
    assert imported.trace.pod_classes[0].required_node_terms is None
    read(task(type="V100"), required=True)
    wanted = NodeSelectorTerm(expressions=(Requirement(MODEL_LABEL, "In", ("V100",)),))
    assert imported.trace.pod_classes[0].required_node_terms == (wanted,)


def test_a_task_without_end_does_not_end(read, imported):
    read(task(end="", status="Running"))
    assert imported.pods[0][3] == NEVER_S


def test_rows_that_cannot_be_pods_are_counted_by_reason(read, imported):
    read(
        task(start=""),
        task(end="1739161.0"),
        task(count=""),
        task(cpu="", memory="", gpu=""),
        task(start="-5"),
        machines=[],
        jobs=[*JOBS, ("other", "", "", "Waiting", "", "")],
    )
    assert imported.left_out == {
        "never started": 1,
        "negative duration": 1,
        "no instances": 1,
        "no request": 1,
        "negative time": 1,
        "job without submission time": 1,
    }


def test_two_jobs_of_one_name_are_refused(read):
    message = read(task(), jobs=[*JOBS, *JOBS], refused=True)
    assert "pai_job_table.csv: line 2: job_name:" in message


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"gpu": "half"}, 'line 1: plan_gpu: "half" is not a number'),
        ({"memory": "1e40"}, "line 1: plan_mem:"),
        ({"count": "1.5"}, 'line 1: inst_num: "1.5" is not a whole number'),
        ({"end": "nan"}, 'line 1: end_time: "nan" is not a number'),
    ],
)
def test_wrong_cells_are_refused_by_line_and_column(read, changes, text):
    assert f"pai_task_table.csv: {text}" in read(task(**changes), refused=True)
