"""Rows use the facts of other nodes from the time of their last snapshot."""

from __future__ import annotations

from roadstead.nodes.columns import UP_TO_DATE
from roadstead.nodes.snapshots import count_as_unchanged, is_behind, take_snapshot
from roadstead.nodes.table import NodeTable
from tests.builders import node, pod


def table_of_images(*image_sets: dict[str, int]) -> NodeTable:
    table = NodeTable()
    for number, images in enumerate(image_sets, 1):
        table.add_node(node(f"n{number}", images=images))
    return table


def snapshot_at(table: NodeTable) -> dict[str, int]:
    return dict(zip(table.names, table.snapshot_at.tolist(), strict=True))


def test_without_snapshots_every_row_is_up_to_date() -> None:
    table = table_of_images({"a:1": 5}, {})

    assert set(table.snapshot_at.tolist()) == {UP_TO_DATE}
    assert not is_behind(table, "n1", arrived=2)


def test_only_changed_rows_are_snapshotted_again() -> None:
    table = table_of_images({"a:1": 5}, {"a:1": 5})
    take_snapshot(table, 2)

    table.add_node(node("n3", images={"a:1": 5}))
    table.add_pod("n2", table.classes.pod_class(pod()))
    take_snapshot(table, 3)

    assert snapshot_at(table) == {"n1": 2, "n2": 3, "n3": 3}
    assert is_behind(table, "n1", arrived=3)
    assert not is_behind(table, "n2", arrived=3)


def test_a_row_without_images_is_never_behind() -> None:
    table = table_of_images({})
    take_snapshot(table, 1)

    assert not is_behind(table, "n1", arrived=2)


def test_a_removed_pod_renews_its_row() -> None:
    table = table_of_images({"a:1": 5})
    pod_class = table.classes.pod_class(pod())
    table.add_pod("n1", pod_class)
    take_snapshot(table, 1)

    table.remove_pod("n1", pod_class)
    take_snapshot(table, 4)

    assert snapshot_at(table) == {"n1": 4}


def test_results_from_nodes_alone_hold_until_a_row_with_images_is_renewed() -> None:
    table = table_of_images({"a:1": 5}, {})
    take_snapshot(table, 2)
    before = table.node_version
    pod_class = table.classes.pod_class(pod())

    table.add_pod("n1", pod_class)
    take_snapshot(table, 2)
    assert table.node_version == before

    table.add_pod("n2", pod_class)
    take_snapshot(table, 3)
    assert table.node_version == before

    table.add_pod("n1", pod_class)
    take_snapshot(table, 3)
    assert table.node_version > before


def test_a_row_keeps_its_snapshot_when_it_replaces_a_removed_one() -> None:
    table = table_of_images({"a:1": 5}, {"a:1": 5})
    take_snapshot(table, 2)
    table.add_node(node("n3", images={"a:1": 5}))
    take_snapshot(table, 3)

    table.remove_node("n1")

    assert snapshot_at(table) == {"n3": 3, "n2": 2}


def test_a_placement_that_was_undone_does_not_renew_its_row() -> None:
    table = table_of_images({"a:1": 5}, {"a:1": 5})
    take_snapshot(table, 2)
    pod_class = table.classes.pod_class(pod())

    for name in ("n1", "n2"):
        table.add_pod(name, pod_class)
    table.remove_pod("n2", pod_class)
    count_as_unchanged(table, ["n2"])
    take_snapshot(table, 3)

    assert snapshot_at(table) == {"n1": 3, "n2": 2}


def test_a_row_counted_as_unchanged_is_renewed_by_its_next_change() -> None:
    table = table_of_images({"a:1": 5})
    take_snapshot(table, 1)
    pod_class = table.classes.pod_class(pod())
    table.add_pod("n1", pod_class)
    table.remove_pod("n1", pod_class)
    count_as_unchanged(table, ["n1"])

    table.add_pod("n1", pod_class)
    take_snapshot(table, 2)

    assert snapshot_at(table) == {"n1": 2}
