"""The Philly traces: small logs in the published schema, and arrays that are read in pieces."""

import json

import pytest

from roadstead.fleet.trace import NEVER_S
from roadstead.protocol.errors import InputError
from roadstead.traces import json_values
from roadstead.traces.files import ProgressMeter
from roadstead.traces.json_values import read_json_array
from roadstead.traces.machines import MachineSpec
from roadstead.traces.philly import PhillyReader

GIB = 1 << 30
GPU = "nvidia.com/gpu"
MACHINES = "machineId,number of GPUs, single GPU mem\nm31,8, 24GB\nm32,2, 12GB\n"


def attempt(start="2017-10-07 01:13:30", end="2017-10-07 02:13:30", gpus=(8,)):
    detail = [
        {"ip": f"m{number}", "gpus": [f"gpu{each}" for each in range(count)]}
        for number, count in enumerate(gpus)
    ]
    return {"start_time": start, "end_time": end, "detail": detail}


ATTEMPT = attempt()
WRONG = ATTEMPT | {"detail": [{"gpus": 8}]}


def job(number=14199, attempts=(ATTEMPT,), submitted="2017-10-07 01:11:39", **changes):
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": f"application_1506638472019_{number}",
        "attempts": list(attempts),
        "submitted_time": submitted,
        "user": "ce2f4c",
    } | changes


JOB = json.dumps(job())


@pytest.fixture
def read(imported, tmp_path):
    def call(*jobs, machines=MACHINES, text=None, refused=False, **options):
        (tmp_path / "cluster_machine_list").write_text(machines)
        content = json.dumps(list(jobs), indent=4) if text is None else text
        (tmp_path / "cluster_job_log").write_text(content)
        make = lambda sink: PhillyReader(sink, MachineSpec(32_000, 256 * GIB))  # noqa: E731
        return (imported.refusal if refused else imported)(make, tmp_path, **options)

    return call


def test_a_job_on_one_machine_is_a_pod_with_its_gpus(read, imported):
    read(job())
    ((name, size, created, duration),) = imported.pods
    assert name.startswith("application-1506638472019-14199-")
    assert (size, created, duration) == ({GPU: 8}, 0, 3600)
    assert imported.trace.deletion_s.tolist() == [3600 + 111]
    assert imported.trace.pod_classes[0].labels == (("virtual-cluster", "ee9e8c"),)


def test_every_machine_of_the_last_attempt_is_a_pod(read, imported):
    read(job(attempts=[attempt(gpus=(1,)), attempt(gpus=(8, 4))]))
    assert [size for _, size, _, _ in imported.pods] == [{GPU: 8}, {GPU: 4}]
    assert imported.result.notes == ("1 attempts before a job's last are not counted",)


def test_machines_are_nodes(read, imported):
    read(job())
    assert imported.nodes == {
        "m31": {"cpu": 32_000, "memory": 256 * GIB, GPU: 8},
        "m32": {"cpu": 32_000, "memory": 256 * GIB, GPU: 2},
    }


@pytest.mark.parametrize("unknown", [None, "None"])
def test_a_job_that_runs_at_the_end_does_not_end(read, imported, unknown):
    read(job(attempts=[attempt(end=unknown)]))
    assert imported.pods[0][3] == NEVER_S


def test_rows_that_cannot_be_pods_are_counted_by_reason(read, imported):
    read(
        job(1, attempts=[]),
        job(2, submitted="None"),
        job(3, attempts=[attempt(start=None)]),
        job(4, attempts=[attempt(end="2017-10-07 01:00:00")]),
        job(5, attempts=[attempt(gpus=())]),
    )
    assert imported.left_out == {
        "never scheduled": 1,
        "no submission time": 1,
        "no start time": 1,
        "negative duration": 1,
        "no GPUs": 1,
    }


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"submitted_time": "yesterday"}, 'object 1: submitted_time: "yesterday" is not a time'),
        ({"submitted_time": "2017-13-40 01:11:39"}, "object 1: submitted_time:"),
        ({"submitted_time": "1066-10-14 01:11:39"}, "object 1: submitted_time:"),
        ({"submitted_time": 5}, "object 1: submitted_time: 5 is not a text"),
        ({"jobid": None}, "object 1: jobid: None is not a text"),
        ({"attempts": {}}, "object 1: attempts:"),
        ({"attempts": [5]}, "object 1: attempts[0]: 5 is not an object"),
        (
            {"attempts": [ATTEMPT | {"detail": [{"gpus": 8}]}]},
            "attempts[0]: detail[0]: gpus: 8 is not a list",
        ),
    ],
)
def test_wrong_fields_are_refused_by_object_and_name(read, changes, text):
    assert text in read(job() | changes, refused=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is cut short"),
        ("{}", "is not a JSON array"),
        ("[", "is cut short"),
        (f"[{JOB}", "is cut short"),
        (f'[{JOB}, {{"b"', "object 2: is not JSON, or cut short"),
        (f"[{JOB} {JOB}]", "object 2: lacks a comma before it"),
        (f"[{JOB}]]", "has text after the end of its array"),
        (f"[{JOB}]é", "has text after the end of its array"),
        ("[5]", "object 1: 5 is not an object"),
        ('[{"a": Infinity}]', "object 1: is not JSON, or cut short"),
        (f"[{'[' * 100_000}", "object 1: is nested too deep"),
    ],
)
def test_anything_but_an_array_of_objects_is_refused(read, text, message):
    assert message in read(text=text, refused=True)


def test_an_array_is_read_in_pieces_of_any_size(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    objects = [{"text": "äöü€😀" * number, "number": number} for number in range(40)]
    path.write_text(json.dumps(objects, ensure_ascii=False))
    for chunk in (1, 2, 3, 7, 100, 1 << 20):
        monkeypatch.setattr(json_values, "CHUNK_BYTES", chunk)
        found = [row.text("text") for row in read_json_array(path, ProgressMeter())]
        assert found == [each["text"] for each in objects]


def test_one_object_without_end_is_read_only_up_to_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(json_values, "VALUE_MAX_CHARS", 10_000)
    monkeypatch.setattr(json_values, "CHUNK_BYTES", 1000)
    path = tmp_path / "a.json"
    path.write_text('[{"a": "' + "x" * 1_000_000)
    with pytest.raises(InputError, match="object 1: is no JSON within 10000 characters"):
        list(read_json_array(path, ProgressMeter()))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"a": "\xff\xff\xff\xff\xff"}]')
    with pytest.raises(InputError, match="is not UTF-8 text"):
        list(read_json_array(path, ProgressMeter()))
