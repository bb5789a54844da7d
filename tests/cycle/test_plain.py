"""The plain cycle reuses the evaluations of its classes from pod to pod."""

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.framework.tie_break import TieBreak
from tests.builders import MIB, ROW_PLUGINS, node, pod, profile_of, table_of

IMAGE = {"app:v1": 1000 * MIB}


def test_a_row_that_is_feasible_again_has_its_static_scores():
    table = table_of(node("n1", cpu=1000, images=IMAGE), node("n2", cpu=1000))
    profiles = {"default-scheduler": profile_of(ROW_PLUGINS, classes=table.classes)}
    cycle = PlainCycle(table, profiles, TieBreak("first"))
    full = table.classes.pod_class(pod(cpu=1000))
    wanting = pod(cpu=100, images=("app:v1",), container_count=1)
    asked = PodInCycle("u", "ns/p", table.classes.pod_class(wanting), "one class")

    def decided():
        decision = cycle.decide(asked)
        table.remove_pod(decision.node_name, asked.pod_class)
        return decision.node_name, decision.total

    table.add_pod("n1", full)
    without_image = decided()
    table.remove_pod("n1", full)

    assert without_image[0] == "n2"
    assert decided() == ("n1", without_image[1] + 48)
