"""Finding and reading recorded cases."""

import pytest

from roadstead.protocol.errors import InputError
from scripts.recordings import cases
from scripts.recordings.cases import compile_case, find_files, mapping, read_document
from tests.recordings.world import node, pod, static, write


def test_folders_are_searched_and_files_are_used_directly(tmp_path):
    (tmp_path / "deep").mkdir()
    second = write(tmp_path, {}, "b")
    first = write(tmp_path / "deep", {}, "a")
    (tmp_path / "notes.txt").write_text("no case")

    assert find_files([tmp_path]) == sorted([first, second])
    assert find_files([second, first]) == [second, first]
    with pytest.raises(InputError, match="no such file or folder"):
        find_files([tmp_path / "none"])


def test_a_too_large_file_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path, {"suite": "x" * 100}, "large")
    monkeypatch.setattr(cases, "MAX_FILE_BYTES", 10)

    with pytest.raises(InputError, match="larger than 10 bytes"):
        read_document(path)


def test_nodes_are_in_the_order_of_the_api_server(tmp_path):
    document = static(pod("a"), bound=[pod("running", nodeName="n1")])
    document["objects"]["nodes"] = [node(name) for name in ("n10", "N2", "n1")]

    case = compile_case(tmp_path / "case", document)

    assert [each.name for each in case.nodes] == ["N2", "n1", "n10"]
    assert [name for name, _ in case.bound] == ["n1"]
    assert [identity.key for identity, _ in case.pending] == ["ns/a"]


def test_a_case_may_have_its_own_configuration(tmp_path):
    document = static() | {
        "config": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "mine"}],
        }
    }

    case = compile_case(tmp_path / "case", document)

    assert [each.scheduler_name for each in case.config.profiles] == ["mine"]


def test_a_wrong_manifest_is_refused_with_file_object_and_field(tmp_path):
    document = static(pod("a"))
    document["pending"][0]["spec"]["priority"] = "high"

    with pytest.raises(InputError, match=r'case: Pod "a": spec.priority'):
        compile_case(tmp_path / "case", document)


def test_values_that_are_not_objects_have_no_fields():
    assert mapping(None) == mapping([1]) == {}
    assert mapping({"a": 1}) == {"a": 1}
