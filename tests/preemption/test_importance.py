from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.selectors import LabelSelector
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.residents import Resident
from roadstead.preemption.importance import by_importance, violations_of
from tests.builders import pod, require

CLASSES = PodClasses()
DB = LabelSelector((require("app", "In", "db"),))


def resident(name, priority=0, started_s=None, labels=None, **facts):
    pod_class = CLASSES.pod_class(pod(priority=priority, labels=labels or {}, **facts))
    return Resident(name, f"default/{name}", started_s, pod_class)


def names(pods):
    return [each.uid for each in pods]


def test_pods_of_higher_priority_and_then_of_earlier_start_are_more_important():
    pods = [resident("a", 1, 5.0), resident("b", 2, 9.0), resident("c", 1, 3.0)]

    assert names(by_importance(pods)) == ["b", "c", "a"]


def test_a_pod_without_a_start_time_counts_as_the_youngest():
    assert names(by_importance([resident("new"), resident("old", 0, 1e12)])) == ["old", "new"]


def test_equally_important_pods_stay_in_order():
    assert names(by_importance(map(resident, "bca"))) == ["b", "c", "a"]


def budget(allowed, selector=DB, namespace="default", **more):
    return DisruptionBudget(namespace, "budget", selector, allowed, **more)


def test_a_budget_is_violated_by_later_pods_than_it_allows():
    pods = [resident(name, labels={"app": "db"}) for name in "abc"]

    assert violations_of(pods, [budget(2)]) == [False, False, True]
    assert violations_of(pods, [budget(0)]) == [True, True, True]
    assert violations_of(pods, []) == [False, False, False]


def test_one_violated_budget_of_several_is_enough():
    pods = [resident("a", labels={"app": "db"}), resident("b", labels={"app": "db"})]

    assert violations_of(pods, [budget(5), budget(1)]) == [False, True]


def test_pods_of_other_namespaces_or_labels_do_not_count_for_a_budget():
    pods = [
        resident("a", labels={"app": "db"}, namespace="other"),
        resident("b", labels={"app": "web"}),
        resident("c"),
        resident("d", labels={"app": "db"}),
    ]

    assert violations_of(pods, [budget(0)]) == [False, False, False, True]


def test_a_disrupted_pod_does_not_count_for_a_budget():
    pods = [resident(name, labels={"app": "db"}) for name in "ab"]

    assert violations_of(pods, [budget(0, disrupted_pods=frozenset({"a"}))]) == [False, True]


def test_a_budget_without_a_selector_or_with_an_empty_one_selects_nothing():
    pods = [resident("a", labels={"app": "db"})]

    assert violations_of(pods, [budget(0, None), budget(0, LabelSelector(()))]) == [False]
