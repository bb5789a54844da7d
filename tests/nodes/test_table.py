from dataclasses import replace

import numpy as np
import pytest

from roadstead.facts.pod import HostPort
from roadstead.nodes.table import NodeTable, name_hash
from tests.builders import (
    DEFAULT_CPU_MILLI,
    GIB,
    GPU,
    MIB,
    node,
    pod,
    put,
    require,
    table_of,
    taint,
)

WEB = HostPort("0.0.0.0", "TCP", 80)
DNS = HostPort("0.0.0.0", "UDP", 53)


def row_of(table, name="n1"):
    return table.row_facts(name)


def test_a_new_node_has_its_facts_and_no_pods():
    facts = node(
        "n1",
        others={GPU: 2},
        labels={"disk": "ssd", "topology.kubernetes.io/zone": "a"},
        taints=(taint("gpu"),),
        unschedulable=True,
        images={"app:v1": 5 * MIB},
    )

    table = table_of(facts)

    assert row_of(table) == {
        "facts": facts,
        "allocatable": {"cpu": 4000, "memory": 8 * GIB, GPU: 2},
        "requested": {},
        "nonzero_requested": [0, 0],
        "allocatable_pods": 110,
        "pod_count": 0,
        "unschedulable": True,
        "zone": ":\x00:a",
        "taints": (taint("gpu"),),
        "images": (("app:v1", 5 * MIB),),
        "ports": (),
        "labels": {"disk": "ssd", "topology.kubernetes.io/zone": "a"},
        "pods": {},
    }
    table.validate()


def test_a_node_can_be_added_once():
    table = table_of(node("n1"))

    with pytest.raises(AssertionError, match="n1 is in the table already"):
        table.add_node(node("n1", cpu=1))

    table.validate()
    assert len(table) == 1


def test_a_pod_is_counted_with_requests_weight_and_ports():
    table = table_of(node("n1"))
    facts = pod(cpu=500, memory=0, others={GPU: 1}, host_ports=(WEB, DNS))

    row = table.add_pod("n1", table.classes.pod_class(facts))

    assert row == table.row_of("n1") == 0
    assert row_of(table)["requested"] == {"cpu": 500, GPU: 1}
    assert row_of(table)["nonzero_requested"] == [500, 0]
    assert row_of(table)["pod_count"] == 1
    assert row_of(table)["ports"] == ((DNS, 1), (WEB, 1))
    assert row_of(table)["pods"] == {facts: 1}


def test_several_pods_of_a_class_can_be_added_in_one_call():
    table = table_of(node("n1"))
    pod_class = table.classes.pod_class(pod(cpu=100, host_ports=(WEB,)))

    table.add_pod("n1", pod_class, 3)

    assert row_of(table)["requested"] == {"cpu": 300}
    assert row_of(table)["ports"] == ((WEB, 3),)
    assert table.class_counts == {pod_class: 3}


def test_removing_a_pod_reverts_its_addition_exactly():
    table = table_of(node("n1"), node("n2"))
    put(table, "n1", pod(cpu=100, host_ports=(WEB,)))
    before = [row_of(table, name) for name in ("n1", "n2")]
    pod_class = table.classes.pod_class(pod(cpu=1, others={GPU: 3}, host_ports=(WEB, WEB, DNS)))

    table.add_pod("n1", pod_class)
    table.remove_pod("n1", pod_class)

    assert [row_of(table, name) for name in ("n1", "n2")] == before
    table.validate()


def test_a_missing_pod_can_not_be_removed():
    table = table_of(node("n1"))
    put(table, "n1", pod(cpu=100))
    before, version = row_of(table), table.version

    with pytest.raises(AssertionError, match=r"no pod of .* on node n1"):
        table.remove_pod("n1", table.classes.pod_class(pod(cpu=200)))

    assert (row_of(table), table.version) == (before, version)


def test_unknown_nodes_are_key_errors():
    table = table_of(node("n1"))
    pod_class = table.classes.pod_class(pod())
    calls = (
        lambda: table.row_of("n9"),
        lambda: table.add_pod("n9", pod_class),
        lambda: table.remove_pod("n9", pod_class),
        lambda: table.update_node(node("n9")),
        lambda: table.remove_node("n9"),
    )
    for call in calls:
        with pytest.raises(KeyError):
            call()
    table.validate()


def test_an_updated_node_keeps_its_pods_and_loses_old_labels_and_resources():
    table = table_of(node("n1", others={GPU: 2}, labels={"disk": "ssd", "rack": "r1"}))
    put(table, "n1", pod(cpu=100, others={GPU: 1}))

    table.update_node(node("n1", cpu=9000, labels={"disk": "hdd"}))

    assert row_of(table)["allocatable"] == {"cpu": 9000, "memory": 8 * GIB}
    assert row_of(table)["labels"] == {"disk": "hdd"}
    assert row_of(table)["requested"] == {"cpu": 100, GPU: 1}
    table.validate()


def test_the_last_row_replaces_a_removed_node():
    table = table_of(node("n1"), node("n2"), node("n3", labels={"disk": "ssd"}))
    put(table, "n3", pod(cpu=100, host_ports=(WEB,)))
    moved = row_of(table, "n3")

    table.remove_node("n1")

    assert table.names == ["n3", "n2"]
    assert table.row_of("n3") == 0
    assert row_of(table, "n3") == moved
    assert not table.has_node("n1")
    table.validate()


def test_a_reused_row_starts_empty():
    table = table_of(
        node(
            "n1", others={GPU: 2}, labels={"disk": "ssd"}, taints=(taint("x"),), unschedulable=True
        )
    )
    put(table, "n1", pod(cpu=100, host_ports=(WEB,)))
    table.remove_node("n1")

    table.add_node(node("n1", cpu=1))

    assert not table.differences(table_of(node("n1", cpu=1), classes=table.classes))
    assert table.class_counts == {}
    table.validate()


def test_columns_grow_beyond_their_initial_capacity():
    nodes = [node(f"n{i}", cpu=i, labels={"host": f"n{i}"}) for i in range(50)]
    table = NodeTable()
    for facts in nodes:
        table.add_node(facts)
        put(table, facts.name, pod(cpu=7))

    assert table.allocatable(0).tolist() == list(range(50))
    assert table.match(require("host", "In", "n0", "n49")).nonzero()[0].tolist() == [0, 49]
    table.validate()


def test_a_resource_added_later_is_zero_on_other_nodes():
    table = table_of(node("n1"))
    before = table.resource_code("example.com/late")

    assert table.allocatable(before).tolist() == [0]
    put(table, "n1", pod(others={"example.com/late": 2}))
    table.add_node(node("n2", others={"example.com/late": 5}))

    assert table.allocatable(before).tolist() == [0, 5]
    assert table.requested(before).tolist() == [2, 0]
    table.validate()


def test_every_change_raises_the_version_and_only_nodes_the_node_version():
    table = NodeTable()
    pod_class = table.classes.pod_class(pod(cpu=1))
    changes = (
        (lambda: table.add_node(node("n1")), True),
        (lambda: table.add_node(node("n2")), True),
        (lambda: table.add_pod("n1", pod_class), False),
        (lambda: table.remove_pod("n1", pod_class), False),
        (lambda: table.update_node(node("n2", cpu=1)), True),
        (lambda: table.remove_node("n1"), True),
    )
    for change, of_node in changes:
        version, node_version = table.version, table.node_version
        change()
        assert table.version > version
        assert (table.node_version > node_version) == of_node
        assert table.node_version <= table.version


def test_rows_changed_since_are_the_rows_with_changed_pods():
    table = table_of(*(node(f"n{i}") for i in range(4)))
    pod_class = table.classes.pod_class(pod(cpu=1))
    version = table.version
    assert table.rows_changed_since(version).tolist() == []

    table.add_pod("n3", pod_class)
    between = table.version
    table.add_pod("n1", pod_class)
    table.remove_pod("n1", pod_class)

    assert table.rows_changed_since(version).tolist() == [1, 3]
    assert table.rows_changed_since(between).tolist() == [1]


def test_rows_of_names_leave_out_the_unknown():
    table = table_of(node("n1"), node("n2"))

    assert table.rows_of(["n2", "n9", "n1"]).tolist() == [1, 0]
    assert table.rows_of([]).tolist() == []
    assert list(table.node_names()) == ["n1", "n2"]


def test_arrival_numbers_increase_by_default():
    table = table_of(node("n1"), node("n2"))
    table.add_node(node("n3"), 10)
    table.add_node(node("n4"))
    table.remove_node("n1")

    arrival_of = dict(zip(table.names, table.arrivals.tolist(), strict=True))
    assert arrival_of == {"n2": 1, "n3": 10, "n4": 11}


def test_name_hashes_are_the_same_in_every_process():
    table = table_of(node("n1"), node("n2"))

    assert table.name_hashes.tolist() == [name_hash("n1"), name_hash("n2")]
    assert name_hash("n1") == 0xFD12CB0B965269C1  # b2sum -l 64, read from its low end


def test_zones_are_interned():
    zone = {"topology.kubernetes.io/zone": "a"}
    table = table_of(node("n1", labels=zone), node("n2"), node("n3", labels=zone))

    assert [table.zones[code] for code in table.zone_codes] == [":\x00:a", "", ":\x00:a"]


def test_differences_name_node_and_column():
    one = table_of(node("n1"), node("n2"), node("n3"))
    other = table_of(node("n3"), node("n2", cpu=1), classes=one.classes)
    put(one, "n3", pod(cpu=100))

    found = "\n".join(one.differences(other))

    assert "n1: only on one side" in found
    assert "n2: allocatable: {'cpu': 4000" in found
    assert "n3: requested: {'cpu': 100} is not {}" in found
    assert "n3: labels" not in found
    assert not one.differences(one)


def test_a_table_with_wrong_sums_does_not_validate():
    table = table_of(node("n1"))
    table.columns.requested[0, 0] = 1

    with pytest.raises(AssertionError, match="n1: requested"):
        table.validate()


def test_a_table_with_a_wrong_row_index_does_not_validate():
    table = table_of(node("n1"), node("n2"))
    table.columns.names.reverse()
    table.columns.facts.reverse()

    with pytest.raises(AssertionError, match="is not found at its row"):
        table.validate()


def test_a_negative_number_of_pods_of_a_class_is_refused():
    table = table_of(node("n1"))

    with pytest.raises(AssertionError, match="fewer than no pods"):
        table.columns.count_class(table.classes.pod_class(pod()), -1)


def test_an_unused_port_can_not_be_released():
    table = table_of(node("n1"))
    put(table, "n1", pod(host_ports=(WEB,)))
    table.columns.port_set[0] = 0

    with pytest.raises(AssertionError, match="was not in use"):
        table.remove_pod("n1", table.classes.pod_class(pod(host_ports=(WEB,))))


def full_table():
    table = table_of(
        *(
            node(f"n{i}", cpu=1000 * i, labels={"host": f"n{i}"}, pods=i, unschedulable=i == 2)
            for i in range(5)
        )
    )
    for i in range(5):
        put(table, f"n{i}", *[pod(cpu=i, host_ports=(WEB,) if i % 2 else ())] * i)
    return table


def readings(table):
    """Return all that a plugin can read of a table, row by row."""
    lines = [
        table.names,
        table.allocatable(0).tolist(),
        table.allocatable(99).tolist(),
        table.requested(0).tolist(),
        table.nonzero_requested(0).tolist(),
        table.pod_count.tolist(),
        table.allocatable_pods.tolist(),
        table.unschedulable.tolist(),
        table.name_hashes.tolist(),
        table.arrivals.tolist(),
        [table.zones[code] for code in table.zone_codes],
        [table.taint_sets[code] for code in table.taint_codes],
        [table.image_sets[code] for code in table.image_codes],
        [table.port_sets[code] for code in table.port_codes],
        table.match(require("host", "In", "n1", "n4")).tolist(),
        [table.facts(row) for row in range(len(table))],
        [dict(table.pods(row)) for row in range(len(table))],
    ]
    return list(zip(*lines, strict=True))


def test_a_view_equals_the_table_at_its_rows():
    table = full_table()
    whole = readings(table)

    view = table.view(np.array([4, 1, 1]))

    assert len(view) == 3
    assert readings(view) == [whole[4], whole[1], whole[1]]
    assert view.class_counts == table.class_counts


def test_a_view_of_a_view_is_a_view_of_the_table():
    table = full_table()

    assert readings(table.view(np.array([3, 2, 0])).view(np.array([2, 0]))) == readings(
        table.view(np.array([0, 3]))
    )


def test_a_view_of_no_rows_is_empty():
    view = full_table().view(np.array([], dtype=np.intp))

    assert len(view) == 0
    assert readings(view) == []


def test_a_view_reflects_changes_of_the_table():
    table = full_table()
    view = table.view(np.array([2]))

    put(table, "n2", pod(cpu=500))

    assert view.requested(0).tolist() == [504]


def test_an_overlay_equals_the_table_and_changes_independently():
    table = full_table()
    whole = readings(table)
    overlay = table.copy_rows(np.array([4, 1]))
    assert readings(overlay) == [whole[4], whole[1]]

    put(overlay, "n4", pod(cpu=77, others={"example.com/new": 1}, host_ports=(DNS,)))
    overlay.remove_pod("n1", table.classes.pod_class(pod(cpu=1, host_ports=(WEB,))))
    overlay.update_node(node("n1", labels={"host": "other"}, taints=(taint("new"),)))

    assert readings(table) == whole
    table.validate()
    overlay.validate()


def test_the_table_changes_independently_of_its_overlay():
    table = full_table()
    overlay = table.copy_rows(np.array([4, 1]))
    whole = readings(overlay)

    put(table, "n4", pod(cpu=77))
    table.update_node(node("n1", labels={"host": "other"}))
    table.remove_node("n0")

    assert readings(overlay) == whole
    overlay.validate()


def test_an_overlay_without_rows_accepts_nodes():
    table = full_table()

    overlay = table.copy_rows(np.array([], dtype=np.intp))
    overlay.add_node(table.facts(1))

    assert overlay.names == ["n1"]
    overlay.validate()


def test_an_overlay_has_its_own_versions():
    table = full_table()
    overlay = table.copy_rows(np.array([4, 1]))
    version = overlay.version
    assert overlay.rows_changed_since(version).tolist() == []

    put(overlay, "n1", pod(cpu=1))

    assert overlay.rows_changed_since(version).tolist() == [1]


def test_a_pod_without_requests_has_the_default_weights():
    table = table_of(node("n1"))
    put(table, "n1", pod(), replace(pod(), labels=(("app", "web"),)))

    assert row_of(table)["nonzero_requested"] == [2 * DEFAULT_CPU_MILLI, 400 * MIB]
    assert row_of(table)["requested"] == {}
    assert len(row_of(table)["pods"]) == 2


@pytest.mark.parametrize("count", [1, 2, 3])
def test_sums_of_requests_beyond_int64_wrap_around_as_in_go(count):
    """Such a cluster is absurd, but a scheduler that reads it must not end."""
    huge = pod(memory=2**62 + 1, others={GPU: 2**62})
    table = table_of(node("n1"))
    wanted = [(each * count + 2**63) % 2**64 - 2**63 for each in (2**62 + 1, 2**62)]

    table.add_pod("n1", table.classes.pod_class(huge), count)

    gpu = table.classes.resources.code(GPU)
    assert [table.requested(1)[0], table.requested(gpu)[0]] == wanted
    assert table.nonzero_requested(1)[0] == wanted[0]
    table.validate()
    for _ in range(count):
        table.remove_pod("n1", table.classes.pod_class(huge))
    assert table.requested(1)[0] == table.requested(gpu)[0] == 0, "removal is the inverse"
    table.validate()
