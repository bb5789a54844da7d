"""Versions of rows: the changes that a reader missed."""

from hypothesis import given
from hypothesis import strategies as st

from roadstead.binder import rows as rows_module
from roadstead.binder.rows import RowVersions

OWNERS = ("", "s0", "s1", "s2")


def test_an_unchanged_row_has_version_zero_and_no_reader_missed_a_change():
    rows = RowVersions()

    assert rows.of("n1") == 0
    assert not any(rows.changed_by_others("n1", owner, 0) for owner in OWNERS)


def test_an_earlier_reader_misses_a_change_by_another_scheduler():
    rows = RowVersions()
    rows.changed("n1", 7, "s1")

    assert rows.changed_by_others("n1", "s0", 6)
    assert not rows.changed_by_others("n1", "s0", 7)
    assert not rows.changed_by_others("n2", "s0", 0)


def test_only_changes_between_its_own_are_new_to_a_scheduler():
    rows = RowVersions()
    rows.changed("n1", 1, "s0")
    rows.changed("n1", 2, "s0")
    assert not rows.changed_by_others("n1", "s0", 0)

    rows.changed("n1", 3, "s1")
    rows.changed("n1", 4, "s0")
    assert rows.changed_by_others("n1", "s0", 2)
    assert not rows.changed_by_others("n1", "s0", 3)


def test_changes_without_an_owner_are_new_to_everyone():
    rows = RowVersions()
    rows.changed("n1", 1, "")
    rows.changed("n1", 2, "")

    assert rows.changed_by_others("n1", "s0", 1)


def test_removed_nodes_are_changed_and_only_the_last_ones_are_remembered(monkeypatch):
    monkeypatch.setattr(rows_module, "MAX_REMOVED", 2)
    rows = RowVersions()
    rows.removed("back", 1)
    rows.added(["back", "new"])
    for version, name in enumerate(("n1", "n2", "n3"), start=2):
        rows.removed(name, version)

    assert rows.changed_by_others("back", "s0", 0)
    assert [rows.of(name) for name in ("back", "new", "n1", "n2", "n3")] == [1, 0, 0, 3, 4]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(OWNERS)), max_size=12),
    st.sampled_from("ab"),
    st.sampled_from(OWNERS[1:]),
    st.integers(0, 13),
)
def test_missed_changes_follow_from_the_whole_history(changes, node, reader, read_version):
    rows = RowVersions()
    for version, (name, owner) in enumerate(changes, start=1):
        rows.changed(name, version, owner)

    missed = any(
        name == node and owner != reader and version > read_version
        for version, (name, owner) in enumerate(changes, start=1)
    )
    assert rows.changed_by_others(node, reader, read_version) == missed
