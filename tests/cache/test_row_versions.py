"""Known versions of rows: which of the received ones are new."""

from roadstead.cache.row_versions import KnownVersions


def test_only_what_is_newer_is_news():
    known = KnownVersions()

    assert known.record([("n1", 3), ("n2", 0)]) == [("n1", 3)]
    assert known.record([("n1", 3), ("n1", 5), ("n1", 4)]) == [("n1", 5)]
    assert known.of(["n2", "n1"]) == [("n1", 5)]


def test_a_node_that_is_gone_has_no_version():
    known = KnownVersions()
    known.record([("n1", 3)])
    known.drop("n1")
    known.drop("n2")

    assert known.of(["n1"]) == []
