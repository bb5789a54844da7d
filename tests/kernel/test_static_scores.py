import numpy as np

from roadstead.framework.scoring import NO_PRE_SCORE
from roadstead.kernel.static_scores import normalized, static_scores_of
from tests.builders import evaluated, node, pod, profile_of, table_of

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
    before = normalized(evaluation, still, alive)
    assert [each.plugin.name for each in still.normalizing] == ["TaintToleration"]

    evaluation.restart_scores(NO_PRE_SCORE)

    assert not evaluation.score_state.skipped
    after = normalized(evaluation, still, alive)
    assert after.tolist() == before.tolist()
