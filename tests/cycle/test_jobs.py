"""Jobs, their kinds, and their decision time."""

import pytest

from roadstead.config.concurrency import DecisionTime, JobTime
from roadstead.cycle import jobs
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.jobs import SimulatedLatency, job_kind_of, job_of, pods_of_first_job
from roadstead.facts.pod import GroupMembership, Owner
from roadstead.nodes.pod_class import PodClasses
from tests.builders import pod

CLASSES = PodClasses()
TIME = DecisionTime(
    batch=JobTime(job_s=0.5, task_s=0.25),
    service=JobTime(job_s=10.0),
    profiles={"web": "service", "night": "batch"},
)


def waiting(uid, attempt=1, **facts):
    pod_class = CLASSES.pod_class(pod(**facts))
    return PodInCycle(uid, f"default/{uid}", pod_class, uid, attempt)


def owned(name, uid=""):
    return {"owner": Owner("Job", name, uid)}


def test_a_job_is_a_gang_or_all_pods_of_one_controller():
    by_name, by_uid = job_of(pod(**owned("a"))), job_of(pod(**owned("a", "u1")))

    assert by_name == "default/Job/a"
    assert by_uid == "default/Job/u1"
    gang = pod(pod_group=GroupMembership("g"), **owned("a"))
    assert job_of(gang) == "default/gang/g"
    assert job_of(pod()) == ""


def test_the_first_job_has_all_of_its_present_pods():
    pods = [waiting("a", **owned("x")), waiting("b"), waiting("c", **owned("x"))]

    assert [each.uid for each in pods_of_first_job(pods)] == ["a", "c"]
    assert [each.uid for each in pods_of_first_job(pods[1:])] == ["b"]


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({}, "batch"),
        ({"labels": {"roadstead.io/kind": "service"}}, "service"),
        ({"labels": {"roadstead.io/kind": "batch"}, "scheduler_name": "web"}, "batch"),
        ({"labels": {"roadstead.io/kind": "other"}, "scheduler_name": "web"}, "service"),
        ({"scheduler_name": "night"}, "batch"),
    ],
)
def test_the_kind_of_a_job_is_set_by_label_then_by_profile(facts, kind):
    assert job_kind_of(pod(**facts), TIME) == kind


def test_decision_time_depends_on_kind_and_number_of_pods():
    latency = SimulatedLatency(TIME)

    assert latency.wait_s([waiting("a"), waiting("b")]) == 1.0
    assert latency.wait_s([waiting("c", labels={"roadstead.io/kind": "service"})]) == 10.0


def test_decision_time_passes_once_per_attempt():
    latency = SimulatedLatency(TIME)
    latency.wait_s([waiting("a"), waiting("b")])

    assert latency.wait_s([waiting("b")]) == 0.0
    assert latency.wait_s([waiting("b"), waiting("c")]) == 0.75
    assert latency.wait_s([waiting("b", attempt=2)]) == 0.75


def test_without_settings_there_is_no_decision_time():
    latency = SimulatedLatency(DecisionTime())

    assert not latency.is_on
    assert latency.wait_s([waiting("a")]) == 0.0


def test_the_memory_of_jobs_is_bounded(monkeypatch):
    monkeypatch.setattr(jobs, "MAX_DELAYED", 2)
    latency = SimulatedLatency(TIME)
    for uid in "abc":
        latency.wait_s([waiting(uid)])

    assert latency.wait_s([waiting("c")]) == 0.0
    assert latency.wait_s([waiting("a")]) == 0.75
