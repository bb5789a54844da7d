"""A revision that is older than the known one of a name is ignored, in any order of arrival."""

from hypothesis import given
from hypothesis import strategies as st

from roadstead import revisions as revisions_module
from roadstead.revisions import Revisions


def test_a_late_copy_from_before_a_removal_is_ignored():
    known = Revisions()
    assert known.apply_addition("n1")
    assert known.apply_removal("n1", 1)

    assert not known.apply_addition("n1", 0)
    assert known.is_gone("n1")


def test_a_name_is_added_again_with_its_removals_revision_and_late_copies_are_ignored():
    known = Revisions()
    known.apply_removal("n1", 1)

    assert known.apply_addition("n1", 1)
    assert not known.apply_removal("n1", 1)
    assert not known.is_gone("n1")


def test_messages_without_revisions_are_applied():
    known = Revisions()
    known.apply_addition("n1")

    assert known.apply_removal("n1")
    assert known.apply_addition("n1")
    assert known.all() == ()


def test_an_unsent_removal_refuses_earlier_additions():
    known = Revisions()
    known.apply_addition("p", 3)

    known.apply_unsent_removal("p")
    known.apply_unsent_removal("p")

    assert known.of("p") == 4
    assert not known.apply_addition("p", 3)
    assert known.apply_addition("p", 4)


def test_removals_name_the_removed_objects_even_when_repeated():
    known = Revisions()
    known.apply_addition("back", 0)
    assert known.apply_removals(["a", "back"], 1) == ["a", "back"]
    known.apply_addition("back", 1)

    assert known.apply_removals(["a", "back"], 1) == ["a"]
    assert known.apply_removals(["b"], 0) == ["b"]
    assert known.is_gone("b")


def test_revisions_of_another_process_are_merged():
    known, other = Revisions(), Revisions()
    known.apply_removal("n1", 5)
    other.apply_addition("n1", 7)

    other.merge(known.all())
    known.merge([("n1", 6), ("n2", 2)])

    assert (known.of("n1"), known.of("n2"), known.latest) == (6, 2, 6)
    assert other.of("n1") == 7


def test_removed_names_of_another_process_are_merged():
    known, other = Revisions(), Revisions()
    for name, revision in (("gone", 3), ("back", 3), ("newer", 2), ("again", 3)):
        other.apply_removal(name, revision)
    known.apply_addition("back", 3)
    known.apply_removal("newer", 2)
    known.apply_addition("newer", 4)
    known.apply_removal("again", 3)
    other.apply_addition("again", 3)

    known.merge(other.all(), other.gone())

    gone = [name for name in ("gone", "back", "newer", "again") if known.is_gone(name)]
    assert gone == ["gone"] == list(known.gone())


def test_a_removal_without_a_revision_leaves_no_trace():
    known = Revisions()
    known.apply_removal("n1", 3)
    known.apply_removal("n1")

    assert not known.is_gone("n1")
    known.apply_unsent_removal("n1")
    assert known.all() == (("n1", 1),)


def test_the_number_of_remembered_revisions_is_bounded(monkeypatch):
    monkeypatch.setattr(revisions_module, "MAX_REMEMBERED", 2)
    known = Revisions()

    for number in range(1, 4):
        known.apply_removal(f"n{number}", number)

    assert known.all() == (("n2", 2), ("n3", 3))
    assert not known.is_gone("n1")


@given(st.permutations(range(6)), st.lists(st.integers(0, 5), max_size=6))
def test_copies_in_any_order_end_in_the_last_state_of_a_sender_with_revisions(order, again):
    # Even steps add, odd ones remove; a removal counts one more.
    steps = [
        ("apply_addition", (step + 1) // 2) if step % 2 == 0 else ("apply_removal", (step + 1) // 2)
        for step in range(6)
    ]
    known = Revisions()

    for step in (*order, *again, 5):
        what, revision = steps[step]
        getattr(known, what)("n", revision)

    assert known.is_gone("n")
    assert known.of("n") == 3


def test_without_any_known_revision_all_names_are_new():
    known = Revisions()

    assert known.apply_additions(["n1", "n2"]) is None
    assert known.apply_additions(["n1", "n2"], 3) is None


def test_names_with_newer_revisions_are_new():
    known = Revisions()
    known.apply_removal("n1", 5)

    assert known.apply_additions(["n1", "n2"], 4) == [1]
    assert known.apply_additions(["n1", "n2"], 5) is None
