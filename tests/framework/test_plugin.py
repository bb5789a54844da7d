import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.framework.plugin import (
    ALL_PASS,
    MAX_NODE_SCORE,
    Extremes,
    FilterResult,
    Reads,
    ScorePlugin,
    default_normalize,
)
from roadstead.protocol.status import unschedulable
from tests.builders import is_affected, pod, table_of


class Plain(ScorePlugin):
    name = "Plain"

    def score(self, state, pod, table):
        return np.zeros(len(table), dtype=np.int64)


class OfNodes(Plain):
    reads = Reads.NODE


def upstream_normalize(scores, *, reverse):
    """DefaultNormalizeScore, line by line, over Python's integers."""
    highest = 0
    for score in scores:
        highest = max(highest, score)
    if highest == 0:
        return [MAX_NODE_SCORE for _ in scores] if reverse else list(scores)
    result = []
    for score in scores:
        score = MAX_NODE_SCORE * score // highest
        result.append(MAX_NODE_SCORE - score if reverse else score)
    return result


@pytest.mark.parametrize(
    ("raw", "reverse", "normalized"),
    [
        ([0, 1, 2, 3], False, [0, 33, 66, 100]),
        ([0, 1, 2, 3], True, [100, 67, 34, 0]),
        ([0, 0], False, [0, 0]),
        ([0, 0], True, [100, 100]),
        ([5], False, [100]),
        ([-1, 3], False, [-33, 100]),
        ([-1, 3], True, [133, 0]),
        ([-2, -1], False, [-2, -1]),
        ([-2, -1], True, [100, 100]),
    ],
)
def test_normalizing_divides_by_the_maximum_in_integers(raw, reverse, normalized):
    scores = np.array(raw, dtype=np.int64)

    assert default_normalize(scores, max(raw), reverse=reverse).tolist() == normalized


@given(st.lists(st.integers(0, (2**63 - 1) // 100), min_size=1, max_size=8), st.booleans())
def test_normalizing_equals_upstream_integer_for_integer(raw, reverse):
    scores = np.array(raw, dtype=np.int64)

    normalized = default_normalize(scores, max(raw), reverse=reverse)

    assert normalized.tolist() == upstream_normalize(raw, reverse=reverse)
    assert normalized.dtype == np.int64


def test_refusing_no_row_equals_passing_all():
    status = unschedulable("no")

    assert FilterResult.refuse(np.array([False, False]), status) is ALL_PASS
    assert FilterResult.refuse(np.array([], dtype=np.bool_), status) is ALL_PASS


def test_refused_rows_share_one_status():
    status = unschedulable("no")

    result = FilterResult.refuse(np.array([False, True]), status)

    assert result.codes.tolist() == [0, 1]
    assert result.codes.dtype == np.int32
    assert result.statuses == (status,)


def test_raw_scores_are_final_unless_a_plugin_normalizes():
    raw = np.array([3, 400], dtype=np.int64)

    assert Plain().normalize(None, None, raw, Extremes(3, 400)) is raw
    assert not Plain.normalizes


def test_a_plugin_without_declarations_can_not_sign_and_reads_the_cluster():
    pod_class = table_of().classes.pod_class(pod())

    assert Plain().sign(pod()) is None
    assert Plain().reads is Reads.CLUSTER
    assert is_affected(Plain(), pod_class, pod_class)
