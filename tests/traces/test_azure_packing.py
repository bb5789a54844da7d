"""The Azure packing trace: small databases in the published schema, and hostile ones."""

import sqlite3

import pytest

from roadstead.fleet.trace import NEVER_S
from roadstead.traces.azure_packing import AzureReader
from roadstead.traces.machines import MachineSpec

GIB = 1 << 30
SCHEMA = """
CREATE TABLE vmType (id INTEGER, vmTypeId INTEGER, machineId INTEGER, core REAL, memory REAL,
                     hdd REAL, ssd REAL, nic REAL);
CREATE TABLE vm (vmId INTEGER, tenantId INTEGER, vmTypeId INTEGER, priority INTEGER,
                 starttime REAL, endtime REAL);
"""
TYPES = [
    (1, 10, 0, 0.5, 0.25, None, 0.1, 0.01),
    (2, 10, 1, 0.25, 0.125, None, 0.1, 0.01),
    (3, 11, 1, 0.125, 0.5, None, None, None),
    (4, 12, 1, 0.0, 0.0, 0, 0, 0),
]
VM = (7, 1, 10, 0, 1.0, 2.5)
DAY_S = 86_400


@pytest.fixture
def database(tmp_path):
    def write(vms=(VM,), types=TYPES, schema=SCHEMA):
        path = tmp_path / "trace.sqlite"
        with sqlite3.connect(path) as database:
            database.executescript(schema)
            if types is not None:
                database.executemany("INSERT INTO vmType VALUES (?, ?, ?, ?, ?, ?, ?, ?)", types)
                database.executemany("INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)", vms)
        return path

    return write


def reader(machine=None, nodes=2):
    return lambda sink: AzureReader(sink, MachineSpec(64_000, 256 * GIB, nodes), machine)


def test_shares_of_the_machine_that_most_types_run_on_are_multiplied_by_its_size(
    imported, database
):
    imported(reader(), database())
    assert imported.pods == [
        (
            "vm-7",
            {
                "cpu": 16_000,
                "memory": 32 * GIB,
                "roadstead.dev/ssd-millionths": 100_000,
                "roadstead.dev/nic-millionths": 10_000,
            },
            0,
            1.5 * DAY_S,
        )
    ]
    assert imported.nodes["node-0"] == {
        "cpu": 64_000,
        "memory": 256 * GIB,
        "roadstead.dev/hdd-millionths": 1_000_000,
        "roadstead.dev/ssd-millionths": 1_000_000,
        "roadstead.dev/nic-millionths": 1_000_000,
    }
    assert "shares are those of machine 1" in imported.result.notes


def test_another_machine_can_be_chosen_and_types_that_it_cannot_run_are_left_out(
    imported, database
):
    imported(reader(machine=0), database([VM, (8, 1, 11, 0, 1.0, None)]))
    assert imported.pods[0][1]["cpu"] == 32_000
    assert imported.left_out == {"its type does not run on this machine": 1}


def test_a_start_before_the_trace_is_its_start_and_no_end_means_never(imported, database):
    imported(reader(), database([(1, 1, 10, 0, -3.0, 2.0), (2, 1, 10, 1, 1.0, None)]))
    assert [pod[2:] for pod in imported.pods] == [(0, 2 * DAY_S), (DAY_S, NEVER_S)]
    assert [facts.priority for _, facts in imported.trace.pods()] == [1000, 0]


def test_rows_that_cannot_be_pods_are_counted_by_reason(imported, database):
    vms = [
        VM,
        (1, 1, 10, 0, None, 2.0),
        (2, 1, 10, 0, 3.0, 2.0),
        (3, 1, 10, 0, -3.0, -1.0),
        (4, 1, 99, 0, 1.0, 2.0),
        (5, 1, 12, 0, 1.0, 2.0),
    ]
    imported(reader(), database(vms))
    assert imported.left_out == {
        "no start time": 1,
        "negative lifetime": 1,
        "ended before the trace begins": 1,
        "its type does not run on this machine": 1,
        "no request": 1,
    }


def test_machines_outside_of_the_sample_are_not_left_out(imported, database):
    imported(reader(), database([(1, 1, 10, 0, None, 2.0)]), sample=1e-15)
    assert imported.left_out == {}


@pytest.mark.parametrize(
    ("vm", "text"),
    [
        ((1, 1, 10, 0, "soon", 2.0), 'vm row 1: starttime: "soon" is not a number of days'),
        ((1, 1, 10, 0, 1.0, b"x"), "vm row 1: endtime: b'x' is not a number of days"),
        ((1, 1, 10, 0, float("inf"), None), "vm row 1: starttime: inf is more than 292 years"),
        ((1, 1, 10, 0, 1.0, 1e300), "vm row 1: endtime: 1e+300 is more than 292 years"),
        ((1, 1, 10, 7, 1.0, 2.0), "vm row 1: priority: 7 is neither 0 nor 1"),
        ((None, 1, 10, 0, 1.0, 2.0), "vm row 1: vmId: None is no id"),
    ],
)
def test_wrong_values_are_refused_by_row_and_column(imported, database, vm, text):
    assert text in imported.refusal(reader(), database([vm]))


@pytest.mark.parametrize("share", [-0.5, float("inf"), "half", 1e9])
def test_wrong_shares_are_refused_by_row_and_column(imported, database, share):
    message = imported.refusal(reader(), database(types=[(1, 10, 0, share, 0.1, 0, 0, 0)]))
    assert "vmType row 1: core:" in message
    assert "is not a share of a machine" in message


def test_an_unknown_machine_is_refused_with_the_known_ones(imported, database):
    message = imported.refusal(reader(machine=5), database())
    assert "--machine: 5 is none of the machines 0, 1" in message


def test_two_rows_of_one_id_are_refused(imported, database):
    assert 'table vm: line 2: "vm-7" is in' in imported.refusal(reader(), database([VM, VM]))


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS vmTypeId"
VIEW = f"CREATE VIEW vmType AS {ENDLESS}, 1 AS machineId FROM n;"
NARROW = "CREATE TABLE vmType (vmTypeId, machineId); CREATE TABLE vm (a);"
HOSTILE = {
    "a view for a table": (VIEW, "table vmType: has no such table"),
    "no table": ("CREATE TABLE other (a);", "table vmType: has no such table"),
    "no column": (NARROW, "table vmType: core: must be one of its columns"),
}


@pytest.mark.parametrize(("schema", "text"), HOSTILE.values(), ids=HOSTILE)
def test_databases_of_another_schema_are_refused(imported, database, schema, text):
    assert text in imported.refusal(reader(), database(types=None, schema=schema))


def test_a_file_that_is_no_database_or_damaged_is_refused(imported, tmp_path, database):
    path = tmp_path / "x.sqlite"
    path.write_bytes(b"no database" * 999)
    assert "is no SQLite database" in imported.refusal(reader(), path)
    whole = database([VM] * 2000).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "is no SQLite database" in imported.refusal(reader(), path)


def test_a_missing_file_is_refused_and_not_created(imported, tmp_path):
    message = imported.refusal(reader(), tmp_path / "none.sqlite")
    assert "none.sqlite: cannot be read: No such file or directory" in message
    assert not (tmp_path / "none.sqlite").exists()
