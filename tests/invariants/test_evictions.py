"""Evictions: which pods a pod may evict, and which counts are reported."""

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.selectors import LabelSelector
from roadstead.invariants.checker import check
from roadstead.journal import RecordKind
from tests.builders import pod, require
from tests.invariants.history import started


def evicted(victim, preemptor, budget=None):
    history = started()
    if budget is not None:
        history.add(RecordKind.CLUSTER, subject=ClusterFacts(budgets=(budget,)))
    history.accept("d/victim", victim).bind("d/victim", facts=victim)
    return history.accept("d/urgent", preemptor).evict("d/victim", "d/urgent")


def test_a_pod_is_evicted_for_one_of_higher_priority():
    history = evicted(pod(priority=1), pod(priority=2)).bind("d/urgent", facts=pod(priority=2))

    assert history.broken() == []
    assert check(history.records).counts == {"evictions": 1}


@pytest.mark.parametrize("priority", [1, 0])
def test_no_pod_is_evicted_for_a_pod_without_higher_priority(priority):
    history = evicted(pod(priority=1), pod(priority=priority))

    assert history.broken() == [
        ("I2", 5, f"priority 1, evicted for d/urgent of priority {priority}")
    ]


def test_a_pod_that_never_preempts_evicts_no_pod():
    history = evicted(pod(), pod(priority=1, preemption_policy="Never"))

    assert history.broken() == [("I2", 5, "evicted for d/urgent, which preempts never")]


def test_one_preempting_pod_of_a_name_is_enough():
    """The journal has the name for which a pod was evicted, not which of the pods with that
    name.
    """
    history = evicted(pod(), pod(priority=1, preemption_policy="Never"))
    history.records.pop()
    for uid, facts in (("u1", pod(priority=1, preemption_policy="Never")), ("u2", pod(priority=1))):
        history.add(RecordKind.ADD, uid, facts=facts)
        history.records[-1] = history.records[-1]._replace(key="d/urgent")

    assert history.evict("d/victim", "d/urgent").broken() == []


def test_one_pod_of_higher_priority_of_a_name_is_enough():
    history = evicted(pod(priority=5), pod(priority=1))
    history.records.pop()
    history.add(RecordKind.ADD, "u1", facts=pod(priority=4))
    history.records[-1] = history.records[-1]._replace(key="d/urgent")

    # Where none has a higher priority, the one with the highest is named.
    assert history.evict("d/victim", "d/urgent").broken() == [
        ("I2", 6, "priority 5, evicted for d/urgent of priority 4")
    ]
    history.records[-2] = history.records[-2]._replace(facts=pod(priority=6))
    assert history.broken() == []


def test_a_preemptor_is_known_from_its_bind_and_from_its_last_update():
    victim, low = pod(priority=1), pod(priority=0)
    refusal = [("I2", 4, "priority 1, evicted for urgent of priority 0")]
    bound = started().bind("victim", facts=victim).bind("urgent", facts=low)
    loaded = started().bind("victim", facts=victim)
    loaded.add(RecordKind.LOAD, "urgent", "n1", facts=low)

    assert bound.evict("victim", "urgent").broken() == refusal
    assert loaded.evict("victim", "urgent").broken() == refusal
    updated = started().bind("victim", facts=victim).accept("urgent", low)
    updated.accept("urgent", pod(priority=2)).evict("victim", "urgent")
    assert updated.broken() == []


def test_an_eviction_without_a_preemptor_is_only_counted():
    history = started().bind("a").evict("a", "")

    assert history.broken() == []
    assert check(history.records).counts == {"evictions": 1}


def test_evictions_for_unknown_pods_are_accepted():
    history = started().bind("a").evict("a", "d/long-gone")

    assert history.broken() == []


def test_a_preemptor_that_waits_at_the_end_is_counted():
    history = evicted(pod(priority=1), pod(priority=2))

    assert check(history.records).counts == {"evictions": 1, "preemptors_waiting": 1}
    history.delete("d/urgent")
    assert check(history.records).counts == {"evictions": 1}


@pytest.mark.parametrize(("allowed", "beyond"), [(0, 1), (1, 0)])
def test_evictions_beyond_a_budget_are_counted_and_allowed(allowed, beyond):
    selector = LabelSelector((require("app", "In", "web"),))
    budget = DisruptionBudget("default", "keep", selector, allowed)
    history = evicted(pod(labels={"app": "web"}), pod(priority=2), budget)

    assert history.broken() == []
    assert check(history.records).counts["beyond_budget"] == beyond


@pytest.mark.parametrize(("allowed", "beyond"), [(0, 3), (1, 2), (2, 1), (3, 0)])
def test_each_eviction_is_charged_to_every_budget_that_covers_the_victim(allowed, beyond):
    web, every = (
        LabelSelector((each,)) for each in (require("app", "In", "web"), require("app", "Exists"))
    )
    budgets = (
        DisruptionBudget("default", "web", web, allowed),
        DisruptionBudget("default", "every", every, 3),
        DisruptionBudget("default", "roomy", every, 9),
    )
    victim = pod(labels={"app": "web"})
    history = started().add(RecordKind.CLUSTER, subject=ClusterFacts(budgets=budgets))
    for uid in ("d/a", "d/b", "d/c"):
        history.bind(uid, facts=victim).evict(uid, "")

    assert check(history.records).counts["beyond_budget"] == beyond
    history.bind("d/e", facts=pod(labels={"app": "db"})).evict("d/e", "")
    assert check(history.records).counts["beyond_budget"] == beyond + 1


@pytest.mark.parametrize(
    "budget",
    [
        DisruptionBudget("other", "keep", LabelSelector((require("app", "In", "web"),))),
        DisruptionBudget("default", "keep", LabelSelector((require("app", "In", "db"),))),
        DisruptionBudget("default", "keep", LabelSelector()),
        DisruptionBudget("default", "keep", None),
        DisruptionBudget(
            "default", "keep", LabelSelector((require("app", "In", "web"),)), 0, ("victim",)
        ),
    ],
)
def test_budgets_that_do_not_cover_the_victim_are_not_charged(budget):
    history = evicted(pod(labels={"app": "web"}), pod(priority=2), budget)

    assert check(history.records).counts["beyond_budget"] == 0
