import pytest
from hypothesis import given

from roadstead.facts.pod import HostPort
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import PreFilterResult
from roadstead.plugins.node_ports import NodePorts, conflicts
from roadstead.protocol.status import SKIP
from tests.builders import filter_with, node, pod, put, refused, table_of
from tests.plugins.upstream import ports_conflict
from tests.plugins.worlds import assert_filters_alike_through_views, both
from tests.strategies import clusters, pods

PLUGIN = NodePorts()
TAKEN = refused("node(s) didn't have free ports for the requested pod ports")


def port(number=80, ip="0.0.0.0", protocol="TCP"):
    return HostPort(ip, protocol, number)


def wanting(*ports):
    return pod(host_ports=ports)


def holding(*ports):
    table = table_of(node("n1"), node("n2"))
    put(table, "n1", wanting(*ports))
    return table


@pytest.mark.parametrize(
    ("held", "wanted", "conflict"),
    [
        (port(), port(), True),
        (port(), port(81), False),
        (port(), port(protocol="UDP"), False),
        (port(), port(ip="10.0.0.1"), True),
        (port(ip="10.0.0.1"), port(), True),
        (port(ip="10.0.0.1"), port(ip="10.0.0.1"), True),
        (port(ip="10.0.0.1"), port(ip="10.0.0.2"), False),
        (port(ip="10.0.0.1"), port(81), False),
    ],
)
def test_ports_conflict_by_number_protocol_and_address(held, wanted, conflict):
    table = holding(held)

    assert filter_with(PLUGIN, wanting(wanted), table) == [TAKEN if conflict else None, None]
    assert conflicts((wanted,), ((held, 1),)) == conflict


def test_one_used_port_of_several_is_enough():
    table = holding(port(80), port(443))

    assert filter_with(PLUGIN, wanting(port(8080), port(443)), table) == [TAKEN, None]


def test_a_port_is_free_again_when_its_last_pod_is_removed():
    table = table_of(node("n1"))
    pod_class = table.classes.pod_class(wanting(port()))
    table.add_pod("n1", pod_class, 2)

    table.remove_pod("n1", pod_class)
    assert filter_with(PLUGIN, wanting(port()), table) == [TAKEN]

    table.remove_pod("n1", pod_class)
    assert filter_with(PLUGIN, wanting(port()), table) == [None]


def test_a_pod_without_host_ports_is_skipped():
    table = table_of(node("n1"))

    def pre_filtered(facts):
        return PLUGIN.pre_filter(CycleState(1), table.classes.pod_class(facts), table)

    assert pre_filtered(pod()).status == SKIP
    assert pre_filtered(wanting(port())) == PreFilterResult()


@given(clusters, pods)
def test_filtering_equals_upstreams(cluster, wanted):
    table, nodes = both(cluster)

    assert filter_with(PLUGIN, wanted, table) == [
        TAKEN if ports_conflict(wanted, each) else None for each in nodes
    ]
    assert_filters_alike_through_views(PLUGIN, wanted, table)
