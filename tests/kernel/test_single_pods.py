"""The kernel for pods that are decided one at a time."""

from roadstead.cycle.batch import kernel_class
from roadstead.cycle.cached_class import run_class
from roadstead.cycle.class_scores import ClassScores
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.kernel.compiled_code import load
from roadstead.kernel.single_pods import SinglePodKernel
from roadstead.nodes.pod_class import LARGE_REQUEST
from tests.builders import node, pod, profile_of, table_of

COVERED = ["NodeResourcesFit", "NodePorts"]


class World:
    """A table, and kernel classes by signature."""

    def __init__(self):
        self.table = table_of(node("n1"), node("n2"))
        self.chooser, self.single_pods = Chooser(TieBreak("random")), SinglePodKernel()
        self.classes = {}

    def add(self, signature, facts, filters):
        points = {"filter": filters, "preFilter": filters, "score": ["NodeResourcesFit"]}
        profile = profile_of(points, classes=self.table.classes)
        evaluation = Evaluation(profile, self.table.classes.pod_class(facts), self.table)
        self.classes[signature] = kernel_class(run_class(ClassScores(evaluation)))

    def kernel_for(self, signature):
        of_class = self.classes[signature]
        return self.single_pods.kernel_for(load(), self.table, signature, of_class, self.chooser)


def test_pods_that_no_kernel_covers_leave_the_kernel_of_the_others():
    world = World()
    world.add("covered", pod(cpu=100), COVERED)
    world.add("other", pod(cpu=100), ["NodeResourcesFit"])
    assert world.kernel_for("other") is None
    kernel = world.kernel_for("covered")

    assert world.kernel_for("other") is None

    assert kernel is not None
    assert world.kernel_for("covered") is kernel


def test_a_pod_with_a_large_amount_leaves_the_kernel_of_its_shape():
    world = World()
    world.add("large", pod(cpu=LARGE_REQUEST + 1), COVERED)
    world.add("small", pod(cpu=100), COVERED)
    kernel = world.kernel_for("small")

    assert world.kernel_for("large") is None

    assert world.kernel_for("small") is kernel


def test_a_class_that_was_not_covered_is_examined_again_after_nodes_changed():
    world = World()
    world.add("other", pod(cpu=100), ["NodeResourcesFit"])
    world.add("covered", pod(cpu=100), COVERED)
    assert world.kernel_for("other") is None
    kernel = world.kernel_for("covered")

    world.table.update_node(node("n1", labels={"disk": "ssd"}))

    assert world.kernel_for("other") is None
    assert world.kernel_for("covered") is not kernel
