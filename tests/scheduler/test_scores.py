"""The scores that a scheduler keeps of the pods that it placed."""

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.nodes.pod_class import PodClasses
from roadstead.scheduler.scores import Scores
from tests.builders import pod

INFO = PodClasses().pod_class(pod())


def decided(name, node, feasible=2, total=0):
    return Decision(PodInCycle(f"u-{name}", f"d/{name}", INFO, "class"), node, feasible, total)


def test_scores_are_kept_if_several_nodes_were_compared():
    scores = Scores()

    scores.record([decided("a", "n1", total=70), decided("only", "n1", feasible=1, total=50)])
    scores.record([decided("none", None), decided("b", "n2"), decided("a", "n2", total=60)])

    assert len(scores) == 3
    assert scores.page(0, 2) == (("u-a", "u-b"), ("n1", "n2"), (70, 0))
    assert scores.page(2, 2) == (("u-a",), ("n2",), (60,))
