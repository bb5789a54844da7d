"""Known versions of rows: which of the received ones are new."""

from roadstead.cache.row_versions import KnownVersions


def test_only_newer_versions_are_new():
    known = KnownVersions()

    assert known.record([("n1", 3), ("n2", 0)]) == [("n1", 3)]
    assert known.record([("n1", 3), ("n1", 5), ("n1", 4)]) == [("n1", 5)]
    assert known.of(["n2", "n1"]) == [("n1", 5)]


def test_a_removed_node_has_no_version():
    known = KnownVersions()
    known.record([("n1", 3)])
    known.drop("n1")
    known.drop("n2")

    assert known.of(["n1"]) == []
