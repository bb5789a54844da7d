"""Files, folders, globs and standard input become objects; errors are named and refused."""

from __future__ import annotations

import errno
import gc
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.manifests import Manifests, read_manifests
from roadstead.manifests import files as files_module
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import KINDS

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{}]}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def named(manifest: dict[str, Any], name: str, **metadata: object) -> dict[str, Any]:
    return manifest | {"metadata": {"name": name, **metadata}}


def read(text: str | bytes) -> Manifests:
    data = text if isinstance(text, bytes) else text.encode()
    return read_manifests(["-"], stdin=io.BytesIO(data))


def read_objects(*documents: object) -> Manifests:
    return read("\n".join(json.dumps(each) for each in documents))


def read_paths(*paths: object) -> Manifests:
    return read_manifests([str(path) for path in paths], stdin=io.BytesIO(b""))


def refusal(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read(text)
    assert str(caught.value).startswith("standard input")
    assert len(str(caught.value)) < 500
    return str(caught.value)


def pod_names(manifests: Manifests) -> list[str]:
    return [pod.metadata.name for pod in manifests.pods]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "b.yaml").write_text("kind: Pod\nmetadata: {name: b}\nspec: {containers: [{}]}\n")
    (tmp_path / "a.json").write_text(json.dumps(named(POD, "a")))
    (tmp_path / "deep" / "er" / "c.yml").write_text(json.dumps(named(POD, "c")))
    (tmp_path / "deep" / "README.md").write_text("not a manifest")
    return tmp_path


def test_a_folder_is_searched_in_sorted_order(folder: Path) -> None:
    assert pod_names(read_paths(folder)) == ["a", "b", "c"]


def test_a_file_of_any_name_is_read_once(folder: Path) -> None:
    plain = folder / "manifest"
    plain.write_text(json.dumps(named(POD, "d")))
    link = folder / "link.yaml"
    link.symlink_to(folder / "b.yaml")
    assert pod_names(read_paths(plain, plain, link, folder)) == ["d", "b", "a", "c"]


def test_a_folder_within_a_folder_that_cannot_be_read_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not by its mode: root may read it.
    locked, scan = folder / "locked", os.scandir
    locked.mkdir()

    def scandir(path: str) -> Any:
        if path == str(locked):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)

    with pytest.raises(InputError, match=r"/locked: cannot be read: Permission denied"):
        read_paths(folder)


def test_globs_match_files_and_not_folders(folder: Path) -> None:
    assert pod_names(read_paths(folder / "*.json")) == ["a"]
    assert pod_names(read_paths(folder / "**" / "*.y*ml")) == ["b", "c"]
    assert pod_names(read_paths(folder / "*")) == ["a", "b"]


def test_a_file_with_a_star_in_its_name_can_be_read(folder: Path) -> None:
    odd = folder / "x[1].yaml"
    odd.write_text(json.dumps(named(POD, "odd")))
    assert pod_names(read_paths(odd)) == ["odd"]


def test_standard_input_is_read_once() -> None:
    manifests = read_manifests(["-", "-"], stdin=io.BytesIO(json.dumps(POD).encode()))
    assert pod_names(manifests) == ["p"]


def test_missing_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, message in (
        ("none.yaml", "none.yaml: does not exist"),
        ("*.yaml", "*.yaml: matches no file"),
        ("empty", "holds no *.yaml, *.yml, *.json"),
    ):
        with pytest.raises(InputError) as caught:
            read_paths(tmp_path / path)
        assert message in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.touch(mode=0)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_paths(secret)


def test_a_file_that_vanishes_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "gone.yaml").symlink_to(folder / "nowhere.yaml")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_paths(folder)


def test_a_file_above_the_size_limit_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "SIZE_MAX_BYTES", 10)
    with pytest.raises(InputError, match="is larger than 10 bytes"):
        read_paths(folder / "a.json")


def test_typed_and_untyped_lists_are_split_into_objects() -> None:
    manifests = read_objects(
        {"kind": "List", "apiVersion": "v1", "items": [named(POD, "a"), NODE]},
        {
            "kind": "PodList",
            "apiVersion": "v1",
            "items": [{k: POD[k] for k in ("metadata", "spec")}],
        },
        {"kind": "NodeList", "apiVersion": "v1", "items": None},
        {"kind": "List", "items": [{"kind": "List", "items": [named(POD, "deep")]}]},
        [named(POD, "bare")],
    )
    assert pod_names(manifests) == ["a", "p", "deep", "bare"]
    assert [node.metadata.name for node in manifests.nodes] == ["n"]


def test_objects_of_every_kind_are_collected() -> None:
    specs = {
        "ResourceSlice": {
            "driver": "d",
            "allNodes": True,
            "pool": {"name": "p", "resourceSliceCount": 1},
        },
        "DeviceTaintRule": {"taint": {"key": "k", "effect": "NoExecute"}},
    }
    documents = [
        {"kind": kind, "metadata": {"name": "x"}, "spec": specs.get(kind, {})}
        for kind in KINDS
        if kind not in ("Pod", "Node")
    ]
    manifests = read_objects(*documents, POD, NODE)
    gathered = [getattr(manifests, name) for name in Manifests.__slots__]
    assert sum(len(each) for each in gathered if isinstance(each, tuple)) == len(KINDS)
    assert manifests.ignored == {}


def test_other_kinds_and_groups_are_counted_and_ignored() -> None:
    manifests = read_objects(
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "whatever"},
        {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "s"}},
        {"apiVersion": "example.com/v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {}}]},
    )
    others = {"Pod.example.com": 1, "Service.serving.knative.dev": 1}
    assert manifests.ignored == {"ConfigMap": 3, **others}
    assert manifests.services == manifests.pods == ()


def test_finished_pods_are_counted_and_left_out() -> None:
    phases = ["Succeeded", "Failed", "Running", "Pending"]
    pods = [named(POD, phase.lower()) | {"status": {"phase": phase}} for phase in phases]
    manifests = read_objects(*pods)
    assert pod_names(manifests) == ["running", "pending"]
    assert len(manifests.finished_pods) == 2


def test_a_duplicate_object_is_refused_with_both_sources(folder: Path) -> None:
    (folder / "z.yaml").write_text(json.dumps(named(POD, "a", namespace="default")))
    with pytest.raises(InputError) as caught:
        read_paths(folder)
    assert str(caught.value) == (
        f'{folder}/z.yaml: Pod "a" in namespace "default": is already in {folder}/a.json'
    )
    assert 'Node "n": is already in this file' in refusal(json.dumps([NODE, NODE]))


def test_the_same_name_in_another_namespace_or_kind_is_another_object() -> None:
    manifests = read_objects(
        POD, named(POD, "p", namespace="b"), NODE, named(NODE, "p"), named(NODE, "q", namespace="x")
    )
    assert (len(manifests.pods), len(manifests.nodes)) == (2, 3)


def test_generated_names_are_always_the_same() -> None:
    base = POD | {"metadata": {"generateName": "job-"}}
    names = pod_names(read_objects(base, base))
    assert len(set(names)) == 2
    assert all(name.startswith("job-") and len(name) == 9 for name in names)
    assert names == pod_names(read_objects(base, base))


class Watched(io.BytesIO):
    """Standard input that records whether the garbage collector runs while it is read."""

    collected: bool | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        self.collected = gc.isenabled()
        return super().read(size)


def test_garbage_collection_is_paused_while_reading() -> None:
    stdin = Watched(json.dumps(POD).encode())
    read_manifests(["-"], stdin=stdin)
    assert stdin.collected is False
    assert gc.isenabled()
    refusal("kind: [")
    assert gc.isenabled()


def test_a_disabled_garbage_collector_stays_disabled() -> None:
    gc.disable()
    try:
        read_objects(POD)
        assert not gc.isenabled()
    finally:
        gc.enable()


N1 = "kind: Node\nmetadata: {name: n1}"
P = "kind: Pod\nmetadata: {name: p}"
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("just text", '"just text" is not a Kubernetes object'),
        ("5", "5 is not a Kubernetes object"),
        ("[1, 2]", "1 is not a Kubernetes object"),
        ("a: 1", 'kind: is missing (the document has "a")'),
        ("{a: 1, b: 2, c: 3, d: 4}", 'kind: is missing (the document has "a", "b", "c", …)'),
        ("kind: 5", "kind: is missing"),
        ("kind: ''", "kind: is missing"),
        ("kind: List\nitems: 5", "items: 5 must be a list"),
        ("kind: List\nitems: {a: 1}", "items: dict of 1 must be a list"),
        ("kind: List\nitems: [1]", "items[0]: 1 must be a map"),
        ("kind: List\nitems: [null]", "items[0]: None must be a map"),
        ("kind: List\nitems: [{}]", "kind: is missing"),
        ("kind: Pod", "metadata: is missing"),
        (P, 'Pod "p": spec.containers: must not be empty'),
        ("kind: Pod\nmetadata: {generateName: ''}", "metadata.name: is missing"),
        ("kind: Pod\nmetadata: {generateName: 5}", "metadata.name: is missing"),
        (
            "kind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: true}}",
            "cpu: True is not a",
        ),
        (
            "kind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 1e1000000}}",
            "is too large",
        ),
        (
            "kind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: .nan}}",
            "not a finite number",
        ),
        ("kind: Node\nmetadata: {name: 1}", "metadata.name: 1 must be a string"),
        ("kind: Node\nmetadata: {name: n1, name: m}", 'key "name" is twice'),
        ("kind: Node\nkind: Node", 'key "kind" is twice'),
        ('{"kind": "Node", "kind": "Pod"}', 'key "kind" is twice'),
        ('{"kind": "Node", "metadata": {"name": "n", "labels": {"a": NaN}}}', "NaN is not"),
        (
            "kind: Node\nmetadata: &m {name: n1, labels: *m}",
            "stands for something that contains it",
        ),
        (f"kind: Node\n{BOMB}", "aliases stand for more than"),
        ("kind: Node\nx: " + "[" * 100_000, "nested deeper than"),
        ('{"kind": "Node", "x": ' + "[" * 100_000, "nested too deep"),
        ("[" * 50 + "]" * 50, "lists in lists deeper than 10"),
        ('{"kind": "List", "items": [' * 50 + "]}" * 50, "lists in lists deeper than 10"),
        ("kind: Node\nmetadata: !!python/name:os.system ''", "tag"),
        (b"\xff\xfe\xff", "is not UTF-16 text"),
        (b"\x00\x01\x02", "is not YAML"),
        (
            "kind: Pod\nmetadata: {name: p}\nspec: {priorityClassName: x, containers: [{}]}",
            "priorityClassName",
        ),
        ("kind: " + "x" * 1_000_000 + "\nmetadata: 5\nitems: 7", None),
    ],
)
def test_hostile_manifests_are_refused(text: str | bytes, message: str | None) -> None:
    if message is None:
        assert sum(read(text).ignored.values()) == 1
    else:
        assert message in refusal(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["kind", "metadata", "name", "spec", "items", "containers", "labels", "x"]
                ),
                inner | st.sampled_from(["Pod", "Node", "List", "PodList", "Deployment"]),
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused_with_an_input_error(value: object) -> None:
    try:
        read(json.dumps(value))
    except InputError as error:
        assert len(str(error)) < 500  # noqa: PT017 - most inputs raise, some do not
