"""The importer of the openb CSV files: the mapping of the golden cases, and errors by cell."""

import json
from pathlib import Path

import pytest

from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.fleet import openb
from roadstead.fleet.manifests import trace_to_manifests
from roadstead.fleet.openb import import_openb
from roadstead.fleet.trace import NEVER_S
from roadstead.protocol.errors import InputError

SAMPLE = json.loads(Path(__file__).with_name("openb_sample.json").read_text())
NODE_HEADER = "sn,cpu_milli,memory_mib,gpu,model"
POD_HEADER = SAMPLE["pods_csv"][0]
NODE = "n-0,32000,262144,2,T4"
POD = "p-0,6000,12288,1,460,,LS,Running,10,20,10"


def write_lists(folder, nodes=(NODE,), pods=(POD,), node_header=NODE_HEADER, pod_header=POD_HEADER):
    (folder / openb.NODE_LIST).write_text("\n".join([node_header, *nodes]) + "\n")
    (folder / "openb_pod_list_default.csv").write_text("\n".join([pod_header, *pods]) + "\n")
    return folder


def refusal_of(folder):
    with pytest.raises(InputError) as caught:
        import_openb(folder)
    return caught.value


def items_of_kind(trace, kind):
    found = []
    for item in trace_to_manifests(trace)["items"]:
        if item["kind"] == kind:
            del item["kind"], item["apiVersion"]
            item["metadata"].pop("annotations", None)
            found.append(item)
    return found


def test_rows_become_the_manifests_of_the_recorded_scheduler_run(tmp_path):
    write_lists(tmp_path, SAMPLE["nodes_csv"][1:], SAMPLE["pods_csv"][1:])
    trace = import_openb(tmp_path)
    assert items_of_kind(trace, "Node") == SAMPLE["nodes"]
    assert items_of_kind(trace, "Pod") == SAMPLE["pods"]
    assert items_of_kind(trace, "Namespace") == SAMPLE["namespaces"]


def test_zones_are_assigned_round_robin(tmp_path):
    nodes = [f"n-{index},1000,1024,0," for index in range(6)]
    trace = import_openb(write_lists(tmp_path, nodes))
    zones = [dict(node.labels)["topology.kubernetes.io/zone"] for node in trace.nodes()]
    assert zones == ["zone-0", "zone-1", "zone-2", "zone-3", "zone-0", "zone-1"]


def test_shares_of_several_gpus_add_up(tmp_path):
    trace = import_openb(write_lists(tmp_path, pods=["p-0,100,10,4,250,,BE,Running,0,5,0"]))
    assert dict(trace.pod_classes[0].requests)[openb.GPU_RESOURCE] == 1000


def test_a_pod_without_gpus_does_not_name_the_resource(tmp_path):
    trace = import_openb(write_lists(tmp_path, pods=["p-0,100,10,0,0,,BE,Running,0,5,0"]))
    assert trace.pod_classes[0].requests == (("cpu", 100), ("memory", 10 << 20))


def test_a_request_of_zero_is_kept_and_scored_as_zero(tmp_path):
    trace = import_openb(write_lists(tmp_path, pods=["p-0,0,0,1,1000,,BE,Running,0,5,0"]))
    (facts,) = trace.pod_classes
    assert dict(facts.requests) == {"cpu": 0, "memory": 0, openb.GPU_RESOURCE: 1000}
    assert (facts.nonzero_cpu_milli, facts.nonzero_memory_bytes) == (0, 0)


def test_gpu_spec_becomes_a_required_affinity_to_any_of_the_models(tmp_path):
    pod = "p-0,100,10,1,1000,V100M32|T4|V100M32,LS,Running,0,5,0"
    trace = import_openb(write_lists(tmp_path, pods=[pod]))
    wanted = Requirement("alibabacloud.com/gpu-model", "In", ("T4", "V100M32"))
    assert trace.pod_classes[0].required_node_terms == (NodeSelectorTerm(expressions=(wanted,)),)


def test_qos_becomes_a_label_and_an_empty_one_none(tmp_path):
    pods = [POD, "p-1,100,10,0,0,,,Running,0,5,0"]
    trace = import_openb(write_lists(tmp_path, pods=pods))
    assert [facts.labels for _, facts in trace.pods()] == [(("qos", "LS"),), ()]


def test_times_are_kept_and_a_missing_deletion_means_never(tmp_path):
    pods = [POD, "p-1,100,10,0,0,,LS,Pending,7,,"]
    trace = import_openb(write_lists(tmp_path, pods=pods))
    assert trace.creation_s.tolist() == [10, 7]
    assert trace.deletion_s.tolist() == [20, NEVER_S]


def test_a_pod_runs_from_being_scheduled_to_its_deletion(tmp_path):
    rows = ["p-1,9,9,0,0,,LS,Running,7,20,9", "p-2,9,9,0,0,,LS,Failed,7,20,", POD[:-2] + "25"]
    trace = import_openb(write_lists(tmp_path, pods=rows))
    assert trace.duration_s.tolist() == [11, 13, 0]


def test_pods_of_equal_shape_share_one_class(tmp_path):
    pods = [f"p-{index},100,10,1,500,,LS,Running,{index},99,0" for index in range(50)]
    trace = import_openb(write_lists(tmp_path, pods=pods))
    assert len(trace.pod_classes) == 1
    assert [identity.uid for identity, _ in trace.pods()][:2] == ["uid-p-0", "uid-p-1"]


def test_columns_may_have_any_order_and_follow_a_byte_order_mark(tmp_path):
    header = "\ufeffmodel,gpu,memory_mib,cpu_milli,sn"
    trace = import_openb(write_lists(tmp_path, ["T4,2,1024,4000,n-0"], node_header=header))
    assert dict(trace.nodes()[0].allocatable) == {
        "cpu": 4000,
        "memory": 1 << 30,
        openb.GPU_RESOURCE: 2000,
    }


def test_windows_line_ends_are_read(tmp_path):
    plain = import_openb(write_lists(tmp_path))
    path = tmp_path / openb.NODE_LIST
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert import_openb(tmp_path).nodes() == plain.nodes()


def test_another_pod_list_is_read_by_its_name(tmp_path):
    write_lists(tmp_path)
    (tmp_path / "openb_pod_list_other.csv").write_text(f"{POD_HEADER}\nq-9{POD[3:]}\n")
    assert import_openb(tmp_path, "other").pod_names == ("q-9",)


def test_an_error_names_file_line_column_value_and_rule(tmp_path):
    write_lists(tmp_path, pods=[POD, "p-1,12x,10,1,1000,,LS,Running,0,5,0"])
    assert str(refusal_of(tmp_path)) == (
        f"{tmp_path}/openb_pod_list_default.csv: line 3: cpu_milli: "
        '"12x" is not a whole number (want e.g. "32000")'
    )


HOSTILE_PODS = {
    "empty amount": ("p-1,,10,1,1000,,LS,Running,0,5,0", "cpu_milli"),
    "negative amount": ("p-1,-5,10,1,1000,,LS,Running,0,5,0", "cpu_milli"),
    "signed amount": ("p-1,+5,10,1,1000,,LS,Running,0,5,0", "cpu_milli"),
    "fraction": ("p-1,5.5,10,1,1000,,LS,Running,0,5,0", "cpu_milli"),
    "not a number": ("p-1,NaN,10,1,1000,,LS,Running,0,5,0", "cpu_milli"),
    "exponent": ("p-1,1e1000000,10,1,1000,,LS,Running,0,5,0", "cpu_milli"),
    "blank around": ("p-1, 5,10,1,1000,,LS,Running,0,5,0", "cpu_milli"),
    "underscore": ("p-1,1_000,10,1,1000,,LS,Running,0,5,0", "cpu_milli"),
    "digits of another script": ("p-1,٣٢,10,1,1000,,LS,Running,0,5,0", "cpu_milli"),
    "a million digits": (f"p-1,100,{'9' * 100_000},1,1000,,LS,Running,0,5,0", "memory_mib"),
    "absurd amount": ("p-1,100,999999999999999,1,1000,,LS,Running,0,5,0", "memory_mib"),
    "absurd gpu count": ("p-1,100,10,1001,1000,,LS,Running,0,5,0", "num_gpu"),
    "more than a gpu": ("p-1,100,10,1,1001,,LS,Running,0,5,0", "gpu_milli"),
    "share without gpu": ("p-1,100,10,0,500,,LS,Running,0,5,0", "gpu_milli"),
    "gpu without share": ("p-1,100,10,2,0,,LS,Running,0,5,0", "gpu_milli"),
    "empty model in list": ("p-1,100,10,1,500,T4||G2,LS,Running,0,5,0", "gpu_spec"),
    "model not a label": ("p-1,100,10,1,500,T4|G/2,LS,Running,0,5,0", "gpu_spec"),
    "qos not a label": ("p-1,100,10,1,500,,L S,Running,0,5,0", "qos"),
    "qos too long": (f"p-1,100,10,1,500,,{'L' * 64},Running,0,5,0", "qos"),
    "empty name": (",100,10,1,500,,LS,Running,0,5,0", "name"),
    "upper case name": ("P-1,100,10,1,500,,LS,Running,0,5,0", "name"),
    "path as name": ("../../etc,100,10,1,500,,LS,Running,0,5,0", "name"),
    "name too long": (f"{'p' * 254},100,10,1,500,,LS,Running,0,5,0", "name"),
    "name with NUL": ("p\0,100,10,1,500,,LS,Running,0,5,0", "name"),
    "name again": (POD, "name"),
    "no creation": ("p-1,100,10,1,500,,LS,Running,,5,0", "creation_time"),
    "deleted before created": ("p-1,100,10,1,500,,LS,Running,6,5,0", "deletion_time"),
    "time past all bounds": ("p-1,100,10,1,500,,LS,Running,6,999999999999999,0", "deletion_time"),
    "scheduled at a word": ("p-1,100,10,1,500,,LS,Running,6,9,soon", "scheduled_time"),
}


@pytest.mark.parametrize(("row", "column"), HOSTILE_PODS.values(), ids=HOSTILE_PODS)
def test_hostile_pod_cells_are_refused_by_line_and_column(tmp_path, row, column):
    error = refusal_of(write_lists(tmp_path, pods=[POD, row]))
    assert (error.obj, error.field) == ("line 3", column)
    assert error.source.endswith("openb_pod_list_default.csv")
    assert len(str(error)) < 400


HOSTILE_NODES = {
    "name again": (NODE, "sn"),
    "label as name": ("n_1,1000,10,0,", "sn"),
    "model not a label": ("n-1,1000,10,1,T4|G2", "model"),
    "hexadecimal": ("n-1,0x10,10,1,T4", "cpu_milli"),
    "gpus as a word": ("n-1,1000,10,two,T4", "gpu"),
}


@pytest.mark.parametrize(("row", "column"), HOSTILE_NODES.values(), ids=HOSTILE_NODES)
def test_hostile_node_cells_are_refused_by_line_and_column(tmp_path, row, column):
    error = refusal_of(write_lists(tmp_path, nodes=[NODE, row]))
    assert (error.obj, error.field) == ("line 3", column)


HOSTILE_TABLES = {
    "too few cells": ("p-1,100", "line 3: has 2 cells for 11 columns"),
    "too many cells": (POD + ",more", "line 3: has 12 cells for 11 columns"),
    "blank line": ("\n" + POD, "line 3: has 0 cells for 11 columns"),
    "quote never closed": ('"p-1,100', "line 3: is not CSV"),
    "text after a quote": ('"p"-1,100', "line 3: is not CSV"),
    "cell past the limit": (f"{'x' * 200_000},1", "line 3: is not CSV"),
}


@pytest.mark.parametrize(("row", "text"), HOSTILE_TABLES.values(), ids=HOSTILE_TABLES)
def test_rows_that_are_not_a_table_are_refused_by_line(tmp_path, row, text):
    assert text in str(refusal_of(write_lists(tmp_path, pods=[POD, row])))


HOSTILE_HEADERS = {
    "missing column": ("sn,cpu_milli,memory_mib,gpu", "line 1: model: must be in the header once"),
    "column twice": (f"{NODE_HEADER},sn", "line 1: sn: must be in the header once"),
    "unknown column": (f"{NODE_HEADER},rack", 'line 1: "rack" is not a column of this list'),
    "no header": ("", "line 1: sn: must be in the header once"),
}


@pytest.mark.parametrize(("header", "text"), HOSTILE_HEADERS.values(), ids=HOSTILE_HEADERS)
def test_headers_must_have_exactly_the_columns(tmp_path, header, text):
    assert text in str(refusal_of(write_lists(tmp_path, node_header=header)))


def test_an_empty_file_is_refused(tmp_path):
    write_lists(tmp_path)
    (tmp_path / openb.NODE_LIST).write_bytes(b"")
    assert "line 1: sn: must be in the header once" in str(refusal_of(tmp_path))


def test_a_missing_file_is_refused_by_name(tmp_path):
    write_lists(tmp_path)
    (tmp_path / "openb_pod_list_default.csv").unlink()
    assert str(refusal_of(tmp_path)).endswith(
        "openb_pod_list_default.csv: cannot be read: No such file or directory"
    )


def test_bytes_that_are_not_text_are_refused_by_line(tmp_path):
    write_lists(tmp_path)
    with (tmp_path / openb.NODE_LIST).open("ab") as file:
        file.write(b"n-1,\xff\xfe,1,0,\n")
    assert "line 3: is not UTF-8 text" in str(refusal_of(tmp_path))


def test_a_file_past_the_size_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(openb, "FILE_MAX_BYTES", 20)
    assert "is larger than 20 bytes" in str(refusal_of(write_lists(tmp_path)))


def test_rows_past_the_limit_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(openb, "ROWS_MAX", 1)
    nodes = [NODE, "n-1,1000,10,0,"]
    assert "line 3: is past the limit of 1 rows" in str(refusal_of(write_lists(tmp_path, nodes)))
