import ray._private.node
from ray._private.node import Node

from roadstead.actors.ray_node import LeanNode, lean_node


def test_ray_starts_lean_nodes_only_while_it_is_asked_to():
    with lean_node():
        assert ray._private.node.Node is LeanNode

    assert ray._private.node.Node is Node


def test_what_is_left_out_are_starts_that_this_release_of_ray_has():
    left_out = {"start_monitor", "start_log_monitor", "start_api_server"}

    assert left_out <= vars(Node).keys()
    assert left_out <= vars(LeanNode).keys()
    assert LeanNode.start_monitor(None) is None
    assert LeanNode.start_log_monitor(None) is None
    assert LeanNode.start_api_server(None, include_dashboard=False) is None
