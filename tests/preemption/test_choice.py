import pytest

from roadstead.framework.victims import Candidate, Victim, shortlist
from roadstead.preemption.choice import best


def victims(*priorities, started_s=1.0):
    return tuple(Victim(f"u{i}", f"d/{i}", p, started_s) for i, p in enumerate(priorities))


def node(name, *priorities, violations=0, started_s=1.0):
    return Candidate(name, victims(*priorities, started_s=started_s), violations)


def names(candidates):
    return [each.node_name for each in candidates]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (node("b", 9, 9, violations=0), node("w", 1, violations=1)),
        (node("b", 3, 3, 3), node("w", 4)),
        (node("b", 5, 1), node("w", 5, 2)),
        (node("b", -5), node("w", -5, -5)),
        (node("b", 5, started_s=9.0), node("w", 5, started_s=8.0)),
        (node("b", 5, started_s=None), node("w", 5, started_s=1e12)),
    ],
    ids=["budgets", "highest priority", "sum", "fewer of negative priority", "start", "unstarted"],
)
def test_the_candidate_with_the_least_loss_is_chosen(better, worse):
    assert names(best([worse, better])) == ["b"]
    assert names(best([better, worse])) == ["b"]


def test_only_start_times_of_the_most_important_victims_count():
    old_but_minor = (Victim("a", "d/a", 5, 9.0), Victim("b", "d/b", 1, 0.0))
    young_minor = (Victim("a", "d/a", 5, 8.0), Victim("b", "d/b", 1, 7.0))

    found = best([Candidate("old", old_but_minor), Candidate("young", young_minor)])

    assert names(found) == ["old"]


def test_the_earliest_start_of_the_most_important_victims_counts():
    early = (Victim("a", "d/a", 5, 9.0), Victim("b", "d/b", 5, 1.0))
    late = (Victim("a", "d/a", 5, 8.0), Victim("b", "d/b", 5, 2.0))

    assert names(best([Candidate("early", early), Candidate("late", late)])) == ["late"]


def test_equally_good_candidates_stay_in_order():
    assert names(best([node("c", 1), node("x", 2), node("a", 1)])) == ["c", "a"]
    assert best([]) == ()


def test_a_shortlist_ends_at_the_wanted_number_once_one_violates_no_budget():
    found = [node("v1", 1, violations=1), node("c1", 1), node("c2", 1)]

    assert names(shortlist(found, 2)) == ["v1", "c1"]
    assert names(shortlist(found, 9)) == ["v1", "c1", "c2"]
    assert shortlist(found, 0) == ()


def test_a_shortlist_continues_until_one_violates_no_budget():
    found = [node(f"v{i}", 1, violations=1) for i in range(4)] + [node("c", 1), node("d", 1)]

    assert names(shortlist(found, 2)) == ["v0", "v1", "c"]
