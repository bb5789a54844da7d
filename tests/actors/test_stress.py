"""Proves the lab's trials: the counts of their binder, and its behaviour with fewer checks."""

from dataclasses import replace

import pytest

from roadstead.actors.runs.lab_run import node_profiles
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import Settings
from roadstead.facts.cluster import ClusterFacts
from roadstead.invariants.checker import check
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from roadstead.lab.lab_run import LabSetup
from roadstead.lab.scenarios import constraint_heavy
from roadstead.nodes.pod_class import PodClasses
from roadstead.run import RunInputs, RunPlan

CLUSTER = ClusterFacts(namespaces=(("default", ()),))


def heavy(nodes=32, pods=160, seed=0):
    facts, pending = constraint_heavy(nodes, pods, seed)
    return RunInputs(tuple(facts), (), tuple(pending))


def plan_of(folder, **settings):
    chosen = {"runtime": "inline", "schedulers": 8, "batch": 16, "journal": folder / "journal"}
    return RunPlan(Settings(**(chosen | settings)), cluster=CLUSTER)


def tried(folder, recheck="all", *, is_virtual=True, inputs=None, **settings):
    plan = plan_of(folder, **settings)
    return ActorLauncher().run_lab(inputs or heavy(), plan, LabSetup(recheck, is_virtual))


def checked(folder):
    return check(Reader(RealDisk(folder / "journal")).records())


@pytest.mark.parametrize("is_virtual", [True, False])
def test_eight_schedulers_violate_no_hard_constraint(tmp_path, is_virtual):
    trial = tried(tmp_path, is_virtual=is_virtual)

    result = checked(tmp_path)
    assert result.violations == []
    assert result.binds_checked == len(trial.placements) > 50, (
        "the checker read every bind of a trial of some size"
    )


def test_the_binder_counts_refusals_and_waiting_times_of_pods(tmp_path):
    trial = tried(tmp_path)

    assert sum(trial.refused.values()) > 0, "binds were refused"
    assert trial.bind_requests == len(trial.placements) + sum(trial.refused.values())
    assert 0 < trial.conflicted <= trial.transactions, "some transactions had a conflict"
    assert sum(many for many, _ in trial.waits_s) == len(trial.placements)
    assert trial.waits_s[-1][1] == trial.spent_s > 0.0


@pytest.mark.parametrize("recheck", ["node", "none"])
def test_with_fewer_checks_commits_violate_rules_and_the_checker_finds_it(tmp_path, recheck):
    tried(tmp_path, recheck, seed=1)

    kinds = {each.invariant for each in checked(tmp_path).violations}
    assert "I2" in kinds, "overfilled nodes are violations of I2"
    assert ("I1" in kinds) == (recheck == "none")


def test_virtual_time_gives_the_same_trial_for_the_same_seed(tmp_path):
    first = tried(tmp_path / "a", seed=5)
    again = tried(tmp_path / "b", seed=5)

    assert first == again


def test_a_single_scheduler_has_no_conflict(tmp_path):
    trial = tried(tmp_path, schedulers=1)

    assert trial.refused == {}
    assert trial.conflicted == 0


def test_schedulers_are_busy_for_some_of_the_real_time(tmp_path):
    trial = tried(tmp_path, is_virtual=False, schedulers=2)

    assert 0.0 < trial.busy_s < 2 * trial.ran_s, "busy time is within the time of two schedulers"


def test_simulated_decisions_take_virtual_time_and_keep_schedulers_busy(tmp_path):
    slow = {"decision_time": {"batch": {"job_s": 1.0, "task_s": 0.0}}}

    trial = tried(tmp_path, inputs=heavy(pods=20), schedulers=2, **slow)

    assert trial.spent_s >= len(trial.placements) / 2
    assert trial.busy_s >= len(trial.placements)


def test_a_trial_without_pods_is_empty(tmp_path):
    nothing = replace(heavy(), pending=())

    trial = tried(tmp_path, inputs=nothing)

    assert (trial.placements, trial.spent_s, trial.bind_requests, trial.ran_s) == ((), 0.0, 0, 0.0)


def test_profiles_of_single_node_plugins_omit_cross_node_plugins(tmp_path):
    profiles = node_profiles(plan_of(tmp_path), PodClasses())

    names = {plugin.name for plugin in profiles["default-scheduler"].filter}
    assert "NodeResourcesFit" in names
    assert not names & {"PodTopologySpread", "InterPodAffinity"}


@pytest.mark.ray
def test_schedulers_in_processes_violate_no_constraint(tmp_path):
    trial = tried(tmp_path, is_virtual=False, runtime="ray", schedulers=3, workers=1)

    assert checked(tmp_path).violations == []
    assert len(trial.placements) > 50, "the trial placed pods"
