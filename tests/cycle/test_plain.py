"""The plain cycle reuses the evaluations of its classes from pod to pod."""

from roadstead.cycle import class_cache
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.class_scores import ClassScores
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.framework.tie_break import TieBreak
from tests.builders import MIB, ROW_PLUGINS, node, pod, profile_of, table_of
from tests.inside import objects_in

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


def test_the_least_recently_used_classes_are_dropped_and_decided_as_before(monkeypatch):
    monkeypatch.setattr(class_cache, "MIN_CLASSES", 1)
    monkeypatch.setattr(class_cache, "MAX_CLASSES", 2)
    table = table_of(node("n1", cpu=1000), node("n2", cpu=2000))
    profiles = {"default-scheduler": profile_of(ROW_PLUGINS, classes=table.classes)}
    cycle = PlainCycle(table, profiles, TieBreak("first"))

    for amount in (100, 200, 300, 100):
        asked = PodInCycle("u", "ns/p", table.classes.pod_class(pod(cpu=amount)), amount)
        alone = PlainCycle(table, profiles, TieBreak("first")).explain(asked)
        decision = cycle.decide(asked)
        assert ([decision.node_name], decision.total) == (alone.best, max(alone.total))

    assert len(objects_in(cycle, ClassScores)) == 2
