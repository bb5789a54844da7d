"""Any table with a mapping file: units, nulls, counts, nodes, and errors in table and mapping."""

import pytest
import yaml

from roadstead.fleet.trace import NEVER_S
from roadstead.protocol.errors import InputError
from roadstead.report.arrow import FLOAT64, INT64, STRING, column, make_table
from roadstead.report.parquet import write_parquet
from roadstead.traces import table_mapping
from roadstead.traces.table import TableReader
from roadstead.traces.table_mapping import read_mapping

GIB = 1 << 30
HEAD = {"apiVersion": "roadstead.dev/v1", "kind": "TraceMapping"}
PODS = {
    "name": {"column": "id"},
    "arrival": {"column": "at"},
    "duration": {"column": "for", "unit": "h"},
    "cpu": {"column": "cpus"},
    "memory": {"column": "mem", "unit": "GiB"},
}
TABLE = "id,at,for,cpus,mem\na,5,1,0.5,2\nb,7.5,,2,1\n"


@pytest.fixture
def read(imported, tmp_path):
    def call(
        table=TABLE, pods=PODS, nodes=None, csv=None, refused=False, name="t.csv", options=None
    ):
        mapping = HEAD | {"pods": pods}
        mapping |= {"nodes": nodes} if nodes is not None else {}
        mapping |= {"csv": csv} if csv is not None else {}
        path = tmp_path / "mapping.yaml"
        path.write_text(yaml.safe_dump(mapping))
        if isinstance(table, str):
            (tmp_path / name).write_text(table)
        else:
            write_parquet(tmp_path / name, table)

        def make(sink):
            return TableReader(sink, read_mapping(path), path)

        call = imported.refusal if refused else imported
        return call(make, tmp_path / name, **(options or {}))

    return call


def test_columns_become_pods_by_the_units_of_the_mapping(read, imported):
    read()
    assert imported.pods == [
        ("a", {"cpu": 500, "memory": 2 * GIB}, 0, 3600),
        ("b", {"cpu": 2000, "memory": GIB}, 2.5, NEVER_S),
    ]
    assert imported.result.notes == ("the mapping has no nodes",)


@pytest.mark.parametrize(
    ("key", "source", "text", "resource", "amount"),
    [
        ("cpu", {"unit": "milli"}, "250", "cpu", 250),
        ("cpu", {"unit": "percent"}, "250", "cpu", 2500),
        ("cpu", {"unit": "quantity"}, "250m", "cpu", 250),
        ("cpu", {"scale": 0.5}, "1", "cpu", 500),
        ("memory", {}, "1024", "memory", 1024),
        ("memory", {"unit": "KB"}, "3", "memory", 3000),
        ("memory", {"unit": "quantity"}, "1Gi", "memory", GIB),
        ("memory", {"unit": "GiB", "scale": 256}, "0.5", "memory", 128 * GIB),
        ("gpu", {}, "2", "nvidia.com/gpu", 2),
        ("gpu", {"unit": "percent", "resource": "a.b/gpu-milli"}, "50", "a.b/gpu-milli", 500),
    ],
)
def test_amounts_have_units(read, imported, key, source, text, resource, amount):
    pods = {"arrival": {"column": "at"}, key: {"column": "x", **source}}
    read(f"at,x\n1,{text}\n", pods)
    assert imported.pods[0][1][resource] == amount


@pytest.mark.parametrize(
    ("unit", "second", "seconds"),
    [
        ("ns", "1000000000", 1),
        ("us", "1500", 0.002),
        ("ms", "1500", 1.5),
        ("m", "2", 120),
        ("d", "1", 86_400),
    ],
)
def test_times_have_units(read, imported, unit, second, seconds):
    pods = {"arrival": {"column": "at", "unit": unit}, "cpu": {"value": 1}}
    read(f"at\n0\n{second}\n", pods)
    assert imported.trace.creation_s.tolist() == [0, seconds]


def test_dates_are_read_with_their_offset_and_as_utc_without(read, imported):
    pods = {"arrival": {"column": "at", "unit": "datetime"}, "cpu": {"value": 1}}
    read("at\n2026-01-01T00:00:00Z\n2026-01-01 00:00:01.5\n2026-01-01T01:00:02+01:00\n", pods)
    assert imported.trace.creation_s.tolist() == [0, 1.5, 2]


def test_a_duration_is_the_difference_of_start_and_end(read, imported):
    pods = {"arrival": {"column": "a"}, "start": {"column": "s"}, "end": {"column": "e"},
            "cpu": {"value": 1}}  # fmt: skip
    read("a,s,e\n1,5,9\n1,5,\n1,,9\n1,9,5\n", pods)
    assert imported.trace.duration_s.tolist() == [4, NEVER_S]
    assert imported.left_out == {"never started": 1, "negative duration": 1}


def test_counts_classes_labels_priorities_and_other_resources(read, imported):
    pods = {
        "arrival": {"value": 0},
        "count": {"column": "copies"},
        "class": {"column": "kind"},
        "priority": {"column": "p"},
        "labels": {"team": {"column": "team"}, "fixed": {"value": "yes"}},
        "resources": {"example.com/disk": {"column": "disk", "scale": 100}},
        "namespace": "jobs",
    }
    read("copies,kind,p,team,disk\n2,web,7,a b,0.5\n", pods)
    assert [name for name, *_ in imported.pods] == ["row-2-0", "row-2-1"]
    (facts,) = imported.trace.pod_classes
    labels = dict(facts.labels)
    assert (facts.namespace, facts.priority) == ("jobs", 7)
    assert (labels["class"], labels["fixed"]) == ("web", "yes")
    assert labels["team"].startswith("a-b-"), "a text that is no label value gets a hash"
    assert dict(facts.requests) == {"example.com/disk": 50}


def test_nodes_are_equal_ones_or_those_of_a_table(read, imported, tmp_path):
    sized = {"cpu": {"value": 64}, "memory": {"value": "256Gi", "unit": "quantity"}}
    read(nodes={"name": {"value": "host"}, "count": {"value": 3}, **sized})
    size = {"cpu": 64_000, "memory": 256 * GIB}
    assert imported.nodes == {f"host-{number}": size for number in range(3)}
    (tmp_path / "nodes.csv").write_text("host,cores,rack\nx,8,r1\ny,0,r2\n")
    read(
        nodes={
            "file": "nodes.csv",
            "name": {"column": "host"},
            "cpu": {"column": "cores"},
            "zone": {"column": "rack"},
        }
    )
    (node,) = imported.trace.nodes()
    assert dict(node.labels)["topology.kubernetes.io/zone"] == "r1"
    assert imported.left_out == {"node without capacity": 1}


def test_equal_nodes_without_capacity_are_left_out(read, imported):
    read(nodes={"count": {"value": 3}})
    assert (imported.nodes, imported.left_out) == ({}, {"node without capacity": 1})


def test_a_table_may_have_another_delimiter_no_header_and_other_nulls(read, imported):
    pods = {"arrival": {"column": "2"}, "duration": {"column": "3"}, "cpu": {"column": "1"}}
    read("1;5;-\n2;6;9\n", pods, csv={"delimiter": ";", "header": False, "null": ["-"]})
    assert [pod[1:] for pod in imported.pods] == [
        ({"cpu": 1000}, 0, NEVER_S),
        ({"cpu": 2000}, 1, 9),
    ]


def test_a_parquet_file_is_read_in_batches_with_its_nulls(read, imported, monkeypatch):
    count = 20_000
    table = make_table(
        {
            "id": column([f"p{number}" for number in range(count)], STRING),
            "at": column(list(range(count)), INT64),
            "for": column([None, 0.25] * (count // 2), FLOAT64),
            "cpus": column([1.5] * count, FLOAT64),
            "mem": column([1] * count, INT64),
            "other": column(["x"] * count, STRING),
        }
    )
    read(table, name="t.parquet")
    assert len(imported.pods) == count
    assert imported.pods[:2] == [
        ("p0", {"cpu": 1500, "memory": GIB}, 0, NEVER_S),
        ("p1", {"cpu": 1500, "memory": GIB}, 1, 900),
    ]


def test_a_damaged_parquet_file_or_one_without_the_column_is_refused(read):
    assert "cannot be read: damaged" in read("no parquet", name="t.parquet", refused=True)
    table = make_table({"id": column(["a"], STRING)})
    assert "not a Parquet file with columns id" in read(table, name="t.parquet", refused=True)


def test_rows_that_cannot_be_pods_are_counted_by_reason(read, imported):
    rows = ("a,,1,1,1", ",1,1,1,1", "b,-1,1,1,1", "c,1,-1,1,1", "d,1,1,,", "e,1,1,0,0", "f,1,1,1,1")
    read("\n".join(["id,at,for,cpus,mem", *rows]))
    assert imported.left_out == {
        "no arrival": 1,
        "no name": 1,
        "negative arrival": 1,
        "negative duration": 1,
        "no request": 2,
    }


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("a,soon,1,1,1", 't.csv: line 2: at: "soon" is not a number'),
        ("a,inf,1,1,1", 't.csv: line 2: at: "inf" is not a number'),
        ("a,1,1e9,1,1", 't.csv: line 2: for: "1e9" is more than 292 years'),
        ("a,1,1,-2,1", 't.csv: line 2: cpus: "-2" is negative'),
        ("a,1,1,1,1e30", "t.csv: line 2: mem:"),
        ("a,1,1,1", "t.csv: line 2: has 4 cells for 5 columns"),
        (f"a,1,1,{'9' * 1000},1", "t.csv: line 2: cpus:"),
    ],
)
def test_wrong_cells_are_refused_by_line_and_column(read, row, text):
    assert text in read(f"id,at,for,cpus,mem\n{row}\n", refused=True)


def test_units_within_cells_are_checked(read):
    arrival = {"column": "at", "unit": "datetime"}
    pods = {"arrival": arrival, "memory": {"column": "mem", "unit": "quantity"}}
    table = "at,mem\n2026-01-01,5 parsecs\n"
    assert 'line 2: mem: "5 parsecs"' in read(table, pods, refused=True)
    assert "line 2: at:" in read("at,mem\nyesterday,5\n", pods, refused=True)


def test_a_quantity_is_checked_after_it_is_scaled(read):
    memory = {"column": "mem", "unit": "quantity", "scale": 1e300}
    pods = {"arrival": {"column": "at"}, "memory": memory}
    assert 'line 2: mem: "1Gi" is not an amount' in read("at,mem\n1,1Gi\n", pods, refused=True)


def test_wrong_rows_are_left_out_on_request(read, imported):
    read("id,at,for,cpus,mem\na,soon,1,1,1\nb,1,1,1,1\n", options={"on_error": "skip"})
    assert imported.left_out == {"at is not a number": 1}
    assert len(imported.pods) == 1


def test_a_wrong_fixed_value_names_the_mapping(read):
    pods = PODS | {"cpu": {"value": "many"}}
    assert 'mapping.yaml: line 2 of the table: value: "many" is' in read(pods=pods, refused=True)


def test_a_column_that_the_table_lacks_is_named_with_those_that_it_has(read):
    message = read(pods=PODS | {"cpu": {"column": "cores"}}, refused=True)
    assert 'mapping.yaml: "cores" is no column of' in message
    assert "it has id, at, for, cpus, mem" in message


BROKEN = {
    "no arrival": ({"pods": {"cpu": {"value": 1}}}, "pods.arrival: Field required"),
    "unknown key": ({"pods": PODS | {"gpus": {"value": 1}}}, "pods.gpus: dict of 1 Extra inputs"),
    "unknown unit": (
        {"pods": PODS | {"arrival": {"column": "at", "unit": "fortnight"}}},
        'pods.arrival.unit: "fortnight" Input should be',
    ),
    "column and value": (
        {"pods": PODS | {"cpu": {"column": "c", "value": 1}}},
        "pods.cpu: dict of 2 wants either column or value",
    ),
    "neither": ({"pods": PODS | {"cpu": {"unit": "milli"}}}, "pods.cpu: dict of 1 wants either"),
    "no number": (
        {"pods": PODS | {"cpu": {"column": "c", "scale": float("inf")}}},
        '".inf" is not a finite number',
    ),
    "negative scale": (
        {"pods": PODS | {"cpu": {"column": "c", "scale": -1.0}}},
        "pods.cpu.scale: -1.0 Input should be greater than 0",
    ),
    "another kind": ({"kind": "Pod", "pods": PODS}, 'kind: "Pod" Input should be'),
    "long delimiter": ({"pods": PODS, "csv": {"delimiter": ";;"}}, "csv.delimiter"),
    "columns of no table": (
        {"pods": PODS, "nodes": {"cpu": {"column": "cores"}}},
        "nodes: dict of 1 wants file, the table of its columns, or values alone",
    ),
    "no map": ([1, 2], "Input should be a valid dictionary"),
}


@pytest.mark.parametrize(("content", "text"), BROKEN.values(), ids=BROKEN)
def test_mappings_that_make_no_sense_are_refused_by_key(tmp_path, content, text):
    path = tmp_path / "mapping.yaml"
    path.write_text(yaml.safe_dump(HEAD | content if isinstance(content, dict) else content))
    with pytest.raises(InputError) as caught:
        read_mapping(path)
    assert text in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_label_that_kubernetes_does_not_allow_is_refused(read):
    message = read(pods=PODS | {"labels": {"a b": {"value": "x"}}}, refused=True)
    assert 'mapping.yaml: "a b" name part must consist of' in message


def test_a_namespace_that_kubernetes_does_not_allow_is_refused(read):
    message = read(pods=PODS | {"namespace": "A b"}, refused=True)
    assert (
        'mapping.yaml: pods.namespace: "A b" a lowercase RFC 1123 label must consist of' in message
    )


def test_an_enormous_mapping_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(table_mapping, "MAPPING_MAX_BYTES", 10)
    (tmp_path / "m.yaml").write_text("x" * 100)
    with pytest.raises(InputError, match="is larger than 10 bytes"):
        read_mapping(tmp_path / "m.yaml")
