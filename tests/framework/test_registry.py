import pytest

from roadstead.framework.registry import Registry, extension_points
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


def test_a_name_can_be_registered_once():
    registry = Registry({"Mine": build})

    with pytest.raises(InputError, match='plugin: "Mine" is registered already'):
        registry.register("Mine", build)


def test_merging_returns_an_extended_copy():
    registry = Registry({"In": build})

    merged = registry.merged({"Out": build})

    assert set(merged.factories) == {"In", "Out"}
    assert set(registry.factories) == {"In"}


def test_a_users_plugin_can_not_have_the_name_of_an_in_tree_one():
    with pytest.raises(InputError, match='"NodeName" is registered already'):
        in_tree_registry().merged({"NodeName": build})


def test_extension_points_are_those_of_the_bases():
    assert extension_points(NodeName) == extension_points(NodeName()) == {"filter"}
