import pytest

from roadstead.bench.templates import Template, read_template, read_text
from roadstead.protocol.errors import InputError


def document(text, **values):
    return Template("t.yaml", text).document(values)


def test_a_template_without_actions_is_the_same_object_each_time():
    template = Template("t.yaml", "kind: Node\nmetadata: {generateName: n-}\n")

    assert not template.varies
    assert template.document() == {"kind": "Node", "metadata": {"generateName": "n-"}}


def test_values_replace_their_names():
    text = '{kind: Node, metadata: {name: "n-{{.Index}}-of-{{ .Count }}"}, a: {{- .Own -}} }'

    found = document(text, Index=3, Count=5, Own="x")

    assert found == {"kind": "Node", "metadata": {"name": "n-3-of-5"}, "a": "x"}


@pytest.mark.parametrize(
    ("action", "value"),
    [
        ("AddInt .Index 2", 9),
        ("SubtractInt .Index 10", -3),
        ("MultiplyInt .Index 3", 21),
        ("DivideInt .Index 2", 3),
        ("DivideInt -7 2", -3),
        ("Mod .Index 4", 3),
        ("Mod -7 4", -3),
    ],
)
def test_integer_functions_compute_like_go(action, value):
    assert document("{kind: Node, v: {{" + action + "}}}", Index=7)["v"] == value


@pytest.mark.parametrize(
    "action", ["range .Items", "Mod .Index 0", "Mod .Index .Name", "Printf .Index 2", "if", "Mod 1"]
)
def test_other_actions_are_refused_with_their_text(action):
    with pytest.raises(InputError, match="is not an action that can be run") as refused:
        document("{kind: Node, v: {{" + action + "}}}", Index=7, Name="x")

    assert action.split()[0] in refused.value.value


def test_a_missing_value_is_reported_with_the_known_ones():
    with pytest.raises(InputError, match=r"there are: Count, Index"):
        document("{kind: Node, v: {{.Indx}}}", Index=7, Count=8)


@pytest.mark.parametrize("text", ["", "- kind: Node", "kind: Node\n---\nkind: Node", "just text"])
def test_a_template_contains_one_object(text):
    with pytest.raises(InputError, match=r"t.yaml: must hold one Kubernetes object"):
        document(text)


def test_an_object_without_a_kind_is_refused():
    with pytest.raises(InputError, match=r"t.yaml: kind: is missing"):
        document("metadata: {}")


def test_a_template_is_read_from_its_file(tmp_path):
    (tmp_path / "pod.yaml").write_bytes(b"\xef\xbb\xbfkind: Pod\n")

    template = read_template(tmp_path / "pod.yaml")

    assert template.document() == {"kind": "Pod"}
    assert template.source.endswith("pod.yaml")


def test_unreadable_large_or_binary_files_are_refused(tmp_path):
    path = tmp_path / "x"

    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_text(path, 10)
    path.write_bytes(b"a" * 11)
    with pytest.raises(InputError, match="is larger than 10 bytes"):
        read_text(path, 10)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_text(path, 10)
