"""A catalogue is read to shapes; every wrong part is an error with file, field, value and rule."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node import HOSTNAME_LABEL
from roadstead.facts.taints import Taint
from roadstead.inputs.node_catalog import catalog_of, read_catalog
from roadstead.protocol.errors import InputError

AMOUNTS = {"cpu": "2500m", "memory": "8Gi", "pods": "20"}


def shape(**changes):
    node = {"status": {"allocatable": AMOUNTS}}
    return {"name": "cpu-4", "node": node} | changes


def document(*shapes, **changes):
    head = {"apiVersion": "roadstead.dev/v1", "kind": "NodeCatalog"}
    return head | {"shapes": list(shapes)} | changes


def test_a_shape_makes_nodes_with_names_and_hostnames():
    labels = {"pool": "x"}
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    node = {
        "metadata": {"labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": AMOUNTS},
    }

    (found,) = catalog_of(document(shape(node=node, pricePerHour=0.5, maxCount=7)), "c.yaml")

    assert (found.price_per_hour, found.max_count) == (0.5, 7)
    facts = found.node(3)
    assert facts.name == "cpu-4-0003"
    assert dict(facts.labels) == {"pool": "x", HOSTNAME_LABEL: "cpu-4-0003"}
    assert facts.allocatable == (("cpu", 2500), ("memory", 8 << 30))
    assert facts.allocatable_pods == 20
    assert facts.taints == (Taint("gpu", "", "NoSchedule"),)
    manifest = found.node_manifest(3)
    assert manifest["metadata"] == {"name": "cpu-4-0003", "labels": dict(facts.labels)}
    assert labels == {"pool": "x"}, "the template is unchanged"


def test_a_file_of_yaml_or_json_is_read(tmp_path):
    path = tmp_path / "shapes.json"
    path.write_text(json.dumps(document(shape())))

    assert [each.name for each in read_catalog(path)] == ["cpu-4"]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ([], "must be a map, a NodeCatalog"),
        ({}, "apiVersion: must be roadstead.dev/v1"),
        (document(shape(), kind="Node"), 'kind: "Node" must be NodeCatalog'),
        (document(shape(), extra=1), "extra: is not a field here"),
        (document(), "shapes: list of 0 must be a list of 1 to 100 shapes"),
        (document(shapes={}), "shapes: dict of 0 must be a list"),
        (document(*[shape()] * 101), "must be a list of 1 to 100 shapes"),
        (document(7), r"shapes\[0\]: 7 must be a map"),
        (document(shape(prize=1)), r"shapes\[0\].prize: is not a field here"),
        (document(shape(name="No_Name")), r'shapes\[0\].name: "No_Name" must be a name'),
        (document({"node": {}}), r"shapes\[0\].name: must be a name"),
        (document(shape(), shape()), r'shapes\[1\].name: "cpu-4" occurs twice'),
        (document(shape(node=[])), r"shapes\[0\].node: list of 0 must be a Node"),
        (document(shape(pricePerHour=-1)), r"pricePerHour: -1 must be a number from 0"),
        (document(shape(pricePerHour=float("nan"))), "pricePerHour: nan must be a number"),
        (document(shape(pricePerHour=True)), "pricePerHour: True must be a number"),
        (document(shape(pricePerHour=10**400)), "pricePerHour: an integer of"),
        (document(shape(maxCount=1.5)), r"maxCount: 1.5 must be a whole number"),
        (document(shape(maxCount=-1)), r"maxCount: -1 must be a whole number"),
        (
            document(shape(pricePerHour=1), shape(name="b")),
            r"shapes\[1\].pricePerHour: is missing",
        ),
        (document(shape(node={"kind": "Pod"})), r'shapes\[0\].node.kind: "Pod" must be Node'),
        (
            document(shape(node={"metadata": {"name": "n1"}})),
            r"shapes\[0\].node.metadata.name: must not be set",
        ),
        (
            document(shape(node={"status": {"allocatable": {"cpu": "much"}}})),
            r"shapes\[0\].node.status.allocatable.cpu",
        ),
        (
            document(shape(node={"status": {"allocatable": {"cpu": "1"}}})),
            r"shapes\[0\].node.status.allocatable.pods: must be set",
        ),
        (
            document(shape(node={"spec": {"taints": [{"key": "a", "effect": "No"}]}})),
            r"shapes\[0\].node.spec.taints",
        ),
    ],
)
def test_a_wrong_catalogue_is_an_error(found, text):
    with pytest.raises(InputError, match=text) as error:
        catalog_of(found, "c.yaml")

    assert str(error.value).startswith("c.yaml: ")
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("text", ["", "a: 1\n---\nb: 2\n", "{", "\x00", "&a [*a]"])
def test_a_broken_file_is_an_error(tmp_path, text):
    path = tmp_path / "c.yaml"
    path.write_text(text)

    with pytest.raises(InputError, match=r"c\.yaml"):
        read_catalog(path)


def test_a_missing_file_and_a_folder_are_errors(tmp_path):
    for path in (tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(InputError, match="cannot be read"):
            read_catalog(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(field=st.sampled_from(["name", "node", "pricePerHour", "maxCount", "other"]), value=JSON)
def test_any_value_gives_shapes_or_an_input_error(field, value):
    with suppress(InputError):
        catalog_of(document(shape(**{field: value})), "c.yaml")


@given(value=JSON)
def test_any_node_gives_shapes_or_an_input_error(value):
    for node in (
        {"metadata": value, "status": {"allocatable": AMOUNTS}},
        {"spec": value, "status": {"allocatable": AMOUNTS}},
        {"status": value},
        {"status": {"allocatable": value}},
    ):
        with suppress(InputError):
            catalog_of(document(shape(node=node)), "c.yaml")
