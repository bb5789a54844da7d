"""Sequences of samples: every difference in a search is found, and found once."""

import pytest

from scripts.recordings.sampling import digest_of
from tests.recordings.world import answered, changed, node, pod, replayed, sampling

PATHS = ("plain", "batches", "1", "3")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Record three samples over more nodes than wanted, one without a node, and a new node."""
    pending = [pod(f"p{i}", cpu="2") for i in range(3)]
    pending.append(pod("large", cpu="100"))
    pending.append(pod("last"))
    document = sampling(0, 1, 2, 3, node("z"), 4, pending=pending)
    return answered(tmp_path_factory.mktemp("sampling"), document, "steps")


def test_a_search_is_reported_as_recorded(recording):
    first, second, third, none, came, last = recording["steps"]

    assert len(first["order"]) == 120
    assert (first["start"], first["next"]) == (0, 101)
    assert (first["evaluated"], first["feasible"]) == (101, 100)
    assert (first["first"], first["last"]) == ("n000", "n100")
    assert len(first["best"]) == 20
    assert (second["start"], second["next"], third["start"]) == (101, 82, 82)
    assert (none["evaluated"], none["next"], none["feasible"]) == (120, none["start"], 0)
    assert "preemption" not in none["message"]
    assert came == {}
    assert len(last["order"]) == 121


def test_equal_searches_are_no_mismatch_on_any_path(tmp_path, recording):
    for path_name in (*PATHS, "batches+kernel"):
        result = replayed(tmp_path, recording, path_name)

        assert result.mismatches == []
        assert (result.decisions, result.compared) == (5, 5)


@pytest.mark.parametrize("path_name", PATHS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("start", 7),
        ("next", 7),
        ("evaluated", 7),
        ("first", "n007"),
        ("last", "n007"),
        ("digest", "0"),
        ("best", ["n007"]),
        ("bestSize", 7),
        ("feasible", 7),
        ("total", 7),
        ("order", ["n007"]),
    ],
)
def test_a_planted_difference_in_a_search_is_found(tmp_path, recording, path_name, field, value):
    planted = changed(recording, lambda document: document["steps"][2].update({field: value}))

    mismatches = replayed(tmp_path, planted, path_name).mismatches

    assert f"sampling-000.json.gz step 2 ns/p2: {field}: " in mismatches[0]


def test_after_a_different_search_the_next_starts_where_it_was_recorded(tmp_path, recording):
    planted = changed(recording, lambda document: document["steps"][1].update(next=50))

    wrong, moved, *_ = replayed(tmp_path, planted).mismatches

    assert "step 1 ns/p1: next: 82 is not 50" in wrong
    assert "step 2 ns/p2: " in moved
    assert "start: 50 is not 82" in moved


@pytest.mark.parametrize("field", ["next", "feasible", "bestSize", "total"])
def test_a_planted_difference_in_a_search_of_the_kernel_is_found(tmp_path, recording, field):
    planted = changed(recording, lambda document: document["steps"][5].update({field: 7}))

    (mismatch,) = replayed(tmp_path, planted, "batches+kernel").mismatches

    assert f"step 5 ns/last: {field}: " in mismatch


def test_digests_are_fnv_1a_of_names_and_newlines():
    assert digest_of([]) == "cbf29ce484222325"
    assert digest_of(["a"]) == f"{fnv(b'a' + bytes([10])):016x}"


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & (2**64 - 1)
    return value
