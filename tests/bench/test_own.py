import math

import pytest

from roadstead.bench.roadstead_workloads import ROADSTEAD_CASES, openb, read_openb, size_name
from roadstead.bench.script import WaitMode
from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.trace import TraceBuilder
from roadstead.fleet.trace_file import write_trace
from roadstead.protocol.errors import InputError

CASES = {case.name: case for case in ROADSTEAD_CASES}


def made(name, nodes, pods, seed=0):
    return CASES[name].make("name", nodes, pods, seed)


def nodes_and_pods(script):
    nodes, submit = script.steps
    columns = submit.series.part(0, submit.series.count)
    return tuple(nodes.series.part(0, nodes.series.count)), columns


def test_workloads_have_the_documented_sizes():
    sizes = {name: {nodes for nodes, _ in case.sizes} for name, case in CASES.items()}

    assert sizes == {
        "TenClasses": {1_000, 5_000, 50_000, 1_000_000},
        "AllDistinct": {1_000, 5_000, 50_000, 1_000_000},
        "Million": {1_000_000},
        "TenClaimShapes": {500, 5_000},
        "FilledDevices": {125, 12_500},
    }
    assert CASES["TenClasses"].sizes[0] == (5_000, 50_000)
    assert CASES["AllDistinct"].sizes[0] == (5_000, 10_000)
    assert CASES["Million"].sizes == ((1_000_000, 1_000_000),)
    assert size_name(5, 10) == "5Nodes_10Pods"


def test_ten_classes_are_equally_frequent_in_a_seeded_order():
    _, pods = nodes_and_pods(made("TenClasses", 30, 100))
    _, again = nodes_and_pods(made("TenClasses", 30, 100))
    _, other = nodes_and_pods(made("TenClasses", 30, 100, seed=1))

    by_class = [pods.class_of.count(number) for number in range(10)]
    assert by_class == [10] * 10
    assert pods.class_of == again.class_of
    kinds = [pods.classes[place] for place in pods.class_of]
    assert kinds != [other.classes[place] for place in other.class_of]


def test_only_equal_nodes_of_the_ten_classes_repeat():
    nodes, _ = nodes_and_pods(made("TenClasses", 320, 1))

    assert len({facts.name for facts in nodes}) == 320
    assert nodes[7].labels[1:] != nodes[8].labels[1:]
    assert (nodes[0].allocatable, nodes[0].images) == (nodes[300].allocatable, nodes[300].images)


def test_all_pods_of_all_distinct_differ():
    nodes, pods = nodes_and_pods(made("AllDistinct", 24, 2000))

    assert len(set(pods.classes)) == 2000
    assert len({facts.allocatable for facts in nodes}) == math.lcm(4, 3)


def test_all_pods_of_a_million_are_equal():
    nodes, pods = nodes_and_pods(made("Million", 20, 30))

    assert len(pods.classes) == 1
    assert {facts.allocatable for facts in nodes} == {nodes[0].allocatable}
    assert len({facts.zone for facts in nodes}) == 10


def test_openb_has_the_names_and_order_of_the_trace_and_may_leave_pods_pending(tmp_path):
    trace = generate_fleet(20, 50, 3)
    path = tmp_path / "t.trace"
    write_trace(path, trace)

    script = openb("openb", read_openb(path))

    nodes, pods = nodes_and_pods(script)
    assert nodes == tuple(trace.nodes())
    assert pods.uids == trace.pod_uids
    assert [pods.classes[place] for place in pods.class_of] == [facts for _, facts in trace.pods()]
    assert script.steps[1].wait is WaitMode.IDLE


def test_a_folder_is_read_as_lists_of_openb(tmp_path):
    with pytest.raises(InputError, match=r"openb_node_list_all_node\.csv"):
        read_openb(tmp_path)


def test_a_trace_without_pods_is_refused():
    with pytest.raises(InputError, match="has no pods or no nodes"):
        openb("openb", TraceBuilder("empty").build())
