import pytest

from roadstead.framework.registry import Registry, extension_points, load_plugin_class
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.plugins.node_name import NodeName
from roadstead.protocol.errors import InputError


def build(args, handle):
    return NodeName()


def test_a_registered_plugin_is_built():
    registry = Registry()
    registry.register("Mine", build)

    assert isinstance(registry.build("Mine", None, None), NodeName)


def test_an_unknown_name_is_an_input_error():
    with pytest.raises(InputError, match='plugin: "Nope" does not exist'):
        Registry().build("Nope", None, None)


def test_a_name_is_registered_once():
    registry = Registry({"Mine": build})

    with pytest.raises(InputError, match='plugin: "Mine" is registered already'):
        registry.register("Mine", build)


def test_merging_adds_to_a_copy():
    registry = Registry({"In": build})

    merged = registry.merged({"Out": build})

    assert set(merged.factories) == {"In", "Out"}
    assert set(registry.factories) == {"In"}


def test_a_users_plugin_cannot_take_the_name_of_an_in_tree_one():
    with pytest.raises(InputError, match='"NodeName" is registered already'):
        in_tree_registry().merged({"NodeName": build})


def test_extension_points_are_those_of_the_bases():
    assert extension_points(NodeName) == extension_points(NodeName()) == {"filter"}


@pytest.mark.parametrize("separator", [":", "."])
def test_a_class_is_found_by_its_dotted_path(separator):
    path = f"roadstead.plugins.node_name{separator}NodeName"

    assert load_plugin_class(path) is NodeName


@pytest.mark.parametrize(
    "path",
    [
        "",
        "NodeName",
        ":NodeName",
        "no_such_module:NodeName",
        "roadstead.plugins.node_name:Nope",
        "roadstead.plugins.node_name:",
        ".node_name:NodeName",
        "..:NodeName",
        "roadstead..plugins:NodeName",
    ],
)
def test_a_path_that_leads_nowhere_cannot_be_loaded(path):
    with pytest.raises(InputError, match="cannot be loaded"):
        load_plugin_class(path)


@pytest.mark.parametrize(
    "path",
    [
        "os:getcwd",
        "pathlib:Path",
        "roadstead.plugins.node_name:_REFUSED",
        "roadstead.framework.per_node:NodePlugin",
    ],
)
def test_something_else_than_a_plugin_class_is_refused(path):
    with pytest.raises(InputError, match="is not a Roadstead plugin class"):
        load_plugin_class(path)
