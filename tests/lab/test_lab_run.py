"""Proves the measurements of the product's runs, and their scenarios."""

import pytest

from roadstead.facts.pod import PodIdentity
from roadstead.lab.lab_run import LabRun
from roadstead.lab.regret import score_regret
from roadstead.lab.scenarios import constraint_heavy, jobs
from roadstead.nodes.pod_class import PodClasses
from tests.builders import node, pod, profile_of

SPREAD = {
    "preFilter": ["NodeResourcesFit"],
    "filter": ["NodeResourcesFit"],
    "score": ["NodeResourcesFit"],
}
FACTS = pod(cpu=1000, memory=0)


def named(index):
    return PodIdentity(f"u{index}", "default", f"p{index}")


def regret_of(placed, *nodes, running=(), sample=100):
    classes = PodClasses()
    profiles = {"default-scheduler": profile_of(SPREAD, classes=classes)}
    pods = [(named(index), FACTS, name) for index, name in enumerate(placed)]
    return score_regret(nodes, running, pods, classes, profiles, sample)


def test_figures_are_computed_from_the_counts():
    trial = LabRun(
        placements=(("a", "n1"), ("b", "n2")),
        pending=1,
        spent_s=4.0,
        waits_s=((1, 1.0), (1, 3.0)),
        bind_requests=3,
        refused={"constraint": 1},
        transactions=3,
        conflicted=1,
        busy_s=2.0,
        ran_s=8.0,
    )

    metrics = trial.metrics(schedulers=2)

    assert metrics["placed"] == 2.0
    assert metrics["pods_per_s"] == 0.5
    assert metrics["conflict_fraction"] == 0.5
    assert metrics["transaction_conflict_fraction"] == 0.5
    assert metrics["retries"] == 0.5
    assert metrics["busyness"] == 0.125
    assert metrics["wait_s"] == 2.0
    assert metrics["wait_p90_s"] == pytest.approx(2.8)


def test_without_placements_all_figures_are_zero():
    metrics = LabRun((), 3, 0.0).metrics(1)

    assert metrics.pop("pending") == 3.0
    assert set(metrics.values()) == {0.0}


def test_choosing_the_best_node_has_no_regret():
    assert regret_of(["n1", "n2"], node("n1"), node("n2")) == 0.0


def test_regret_is_the_difference_to_the_best_in_points_of_100():
    assert regret_of(["n2"], node("n1"), node("n2", cpu=2000)) > 10.0


def test_running_pods_and_earlier_binds_count():
    assert regret_of(["n1", "n1"], node("n1"), node("n2")) > 5.0
    assert regret_of(["n1"], node("n1"), node("n2"), running=((named(9), FACTS, "n1"),)) > 10.0


def test_a_node_that_was_not_feasible_counts_as_the_lowest_score():
    assert regret_of(["n2"], node("n1"), node("n2", cpu=500)) > 70.0


def test_without_feasible_nodes_there_is_no_regret():
    assert regret_of(["n1"], node("n1", cpu=500)) == 0.0
    assert regret_of([], node("n1")) == 0.0


def test_only_a_sample_of_pods_is_measured():
    both = [node("n1", pods=2), node("n2")]

    assert regret_of(["n1", "n1", "n2", "n2"], *both, sample=1) == 0.0


def test_a_scenario_is_equal_for_equal_seeds():
    assert constraint_heavy(20, 50, 1) == constraint_heavy(20, 50, 1)
    assert constraint_heavy(20, 50, 1) != constraint_heavy(20, 50, 2)


def test_a_scenario_has_every_type_of_constraint_and_single_slot_nodes():
    nodes, pods = constraint_heavy(20, 200, 0)
    facts = [each for _, each in pods]

    assert sum(each.allocatable_pods == 1 for each in nodes) == 5
    assert any(each.spread_constraints for each in facts)
    assert any(each.pod_anti_affinity for each in facts)
    assert any(each.node_selector for each in facts)
    assert len({identity.uid for identity, _ in pods}) == 200


def test_jobs_have_ten_equal_pods_each_on_nodes_with_many_slots():
    nodes, pods = jobs(7, 25, 0)

    owners = [facts.owner.name for _, facts in pods]
    assert [owners.count(name) for name in ("job-0", "job-1", "job-2")] == [10, 10, 5]
    assert len({facts for _, facts in pods}) == 3
    assert {each.allocatable_pods for each in nodes} == {16}
    assert len({each.name for each in nodes}) == 7
    assert jobs(7, 25, 0) == (nodes, pods)
