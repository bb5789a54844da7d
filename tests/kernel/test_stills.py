import numpy as np

from roadstead.kernel.stills import normalized, still_of
from tests.builders import evaluated, node, pod, profile_of, table_of

POINTS = {
    "filter": ["NodeName"],
    "preScore": ["NodeAffinity", "TaintToleration"],
    "score": ["NodeAffinity", "TaintToleration"],
}


def test_what_a_class_skips_is_kept_when_it_is_filtered_again():
    table = table_of(node("n1"), node("n2"))
    evaluation = evaluated(profile_of(POINTS, classes=table.classes), pod(), table)
    still = still_of(evaluation)
    alive = np.ones(still.raw.shape[1], dtype=np.bool_)
    before = normalized(evaluation, still, alive)
    assert [each.plugin.name for each in still.normalizing] == ["TaintToleration"]

    evaluation.restart(len(table), {})

    assert not evaluation.state.skip_score
    after = normalized(evaluation, still, alive)
    assert after.tolist() == before.tolist()
