"""Static scores of a class: by row where they are final, by group where they are normalized."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.framework.plugin import Reads, ScorePlugin
from roadstead.framework.scoring import NO_PRE_SCORE
from roadstead.kernel.static_scores import (
    key_of,
    normalized_scores,
    static_scores_of,
    static_scores_of_rows,
)
from tests.builders import advance, evaluated, node, pod, profile_of, table_of

POINTS = {
    "filter": ["NodeName"],
    "preScore": ["NodeAffinity", "TaintToleration"],
    "score": ["NodeAffinity", "TaintToleration"],
}


def test_skipped_scores_of_a_class_are_kept_when_it_is_filtered_again():
    table = table_of(node("n1"), node("n2"))
    evaluation = evaluated(profile_of(POINTS, classes=table.classes), pod(), table)
    still = static_scores_of(evaluation)
    alive = np.ones(still.raw.shape[1], dtype=np.bool_)
    before = normalized_scores(evaluation, still, alive)
    assert [each.plugin.name for each in still.normalizing] == ["TaintToleration"]

    evaluation.restart_scores(NO_PRE_SCORE)

    assert not evaluation.score_state.skipped
    after = normalized_scores(evaluation, still, alive)
    assert after.tolist() == before.tolist()


class Graded(ScorePlugin):
    """A plugin that scores a node by its label, and does not normalize."""

    name, reads = "Graded", Reads.NODE

    def score(self, state, pod, table):
        column = table.columns.label("grade")
        values = [int(value) for value in column.values.values]
        return np.array([values[code] for code in column.codes[: len(table)]], dtype=np.int64)

    def sign(self, pod):
        return ()


class Ranked(Graded):
    """The same, but its scores are normalized: they are kept by group."""

    name, normalizes = "Ranked", True

    def normalize(self, state, pod, raw, extremes):
        return raw // 2


def static_of(grades, plugins=(Graded,), **points):
    """Return an evaluation of one class over nodes with these grades, and its static scores."""
    table = table_of(
        *(node(f"n{number}", labels={"grade": str(each)}) for number, each in enumerate(grades))
    )
    scored = [(each.name, weight) for weight, each in enumerate(plugins, 3)]
    profile = profile_of(
        {"filter": ["NodeName"], "score": scored} | points, plugins=plugins, classes=table.classes
    )
    evaluation = evaluated(profile, pod(), table)
    return evaluation, static_scores_of(evaluation)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 100), min_size=1, max_size=8))
def test_scores_without_normalization_are_summed_by_row_and_others_kept_by_group(grades):
    evaluation, found = static_of(grades, (Graded, Ranked))

    assert found.sums.tolist() == [3 * each for each in grades], "weight times score"
    (raw,) = found.raw.tolist()
    assert [raw[group] for group in found.group.tolist()] == grades, "the group has its raw score"
    assert len(raw) == len(set(grades)), "equal raw scores are one group"
    feasible = np.array([each != grades[0] for each in raw])
    wanted = [4 * (each // 2) if each != grades[0] else 0 for each in raw]
    assert normalized_scores(evaluation, found, feasible).tolist() == wanted, (
        "0 without a feasible row"
    )


@pytest.mark.parametrize("grade", [-1, 101, 2**40])
def test_a_score_out_of_range_leaves_the_class_to_the_plugins(grade):
    assert static_of([5, grade])[1] == "score out of range"
    _, normalizing = static_of([5, grade], (Ranked,))
    assert normalizing.raw.tolist() == [sorted([5, grade])], "a raw score may have any value"


def test_a_normalized_score_out_of_range_leaves_the_class_to_the_plugins():
    evaluation, found = static_of([0, 300], (Ranked,))

    assert normalized_scores(evaluation, found, np.array([True, True])) is None
    assert normalized_scores(evaluation, found, np.array([True, False])).tolist() == [0, 0]


def test_more_groups_than_the_limit_leave_the_class_to_the_plugins(monkeypatch):
    monkeypatch.setattr("roadstead.kernel.static_scores.MAX_GROUPS", 2)

    assert static_of([1, 2, 3], (Ranked,))[1] == "too many groups"
    assert static_of([1, 2, 1], (Ranked,))[1].raw.tolist() == [[1, 2]]


def test_the_key_is_equal_exactly_for_equal_static_scores():
    keys = [key_of(static_of(grades)[0]) for grades in ([1, 2], [1, 2], [2, 1])]
    other_kind = key_of(static_of([1, 2], (Ranked,))[0])

    assert keys[0] == keys[1]
    assert len({keys[0], keys[2], other_kind}) == 3


def test_rows_whose_facts_changed_stay_in_their_groups_or_lead_to_a_new_kernel():
    evaluation, known = static_of([1, 2, 3], (Graded, Ranked))
    table, rows = evaluation.table, np.array([0])

    def renewed(grade):
        table.update_node(node("n0", labels={"grade": str(grade)}))
        advance(evaluation)
        return static_scores_of_rows(evaluation, evaluation.score_state, known, rows)

    found = renewed(3)
    assert found.sums.tolist() == [9], "weight times the new score"
    assert known.raw[:, found.group].tolist() == [[3]], "the group of the other row with this score"
    assert found.passes.tolist() == [True]
    assert renewed(4) is None, "no row had this raw score"
