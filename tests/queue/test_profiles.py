"""Leases of the pods of one profile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.queue import QueueCore, QueueSettings, Requeue, RequeueReason

PROFILES = ("web", "batch")


def queue(*pods, **settings):
    """A queue with pods (name, profile, priority)."""
    core = QueueCore(settings=QueueSettings(by_profile=True, **settings))
    core.add([(identity(name), facts(profile, rank)) for name, profile, rank in pods], 0.0)
    return core


def identity(name):
    return PodIdentity(name, "default", name)


def facts(profile, priority=0):
    return PodFacts(scheduler_name=profile, priority=priority)


def leased(core, profile="", max_pods=9, now_s=1.0):
    lease = core.lease(f"of {profile}", 1, max_pods, now_s, profile)
    return [pod.identity.uid for pod in lease.pods]


def test_a_lease_for_a_profile_has_its_first_pods_and_no_others():
    core = queue(("a", "web", 0), ("b", "batch", 9), ("c", "web", 5), ("d", "batch", 0))

    assert leased(core, "web", 1) == ["c"]
    assert leased(core, "batch") == ["b", "d"]
    assert leased(core, "web") == ["a"]
    assert leased(core, "web") == []
    core.validate()


def test_a_lease_for_all_profiles_has_the_first_pods():
    core = queue(("a", "web", 0), ("b", "batch", 9))

    assert leased(core) == ["b", "a"]


def test_an_unknown_profile_has_no_pods():
    assert leased(queue(("a", "web", 0)), "other") == []


def test_pods_in_backoff_are_leased_to_their_profile_when_it_has_no_others():
    core = queue(("a", "web", 0), ("b", "batch", 0))
    lease = core.lease("s", 1, 9, 1.0, "web")
    core.move([object()], 1.0)
    core.requeue(lease.lease_id, [Requeue("a", RequeueReason.UNSCHEDULABLE, ("Fit",))], 1.0)

    assert leased(core, "batch") == ["b"]
    assert leased(core, "web") == ["a"]


def test_a_queue_without_profiles_refuses_a_lease_for_one():
    core = QueueCore()
    core.add([(identity("a"), facts("web"))], 0.0)

    with pytest.raises(AssertionError, match="not kept by profile"):
        core.lease("s", 1, 1, 0.0, "web")


def test_the_number_of_waiting_pods_is_returned():
    core = queue(("a", "web", 0), ("b", "batch", 0))
    leased(core, "web")

    assert core.active_count == 1


steps = st.lists(
    st.tuples(st.sampled_from(["web", "batch", ""]), st.integers(1, 3)), min_size=1, max_size=8
)
pods = st.lists(st.tuples(st.sampled_from(PROFILES), st.integers(0, 3)), max_size=12)


@given(pods, steps)
def test_leases_return_the_pods_of_each_profile_as_a_separate_queue_would(given_pods, leases):
    named = [(f"p{n}", profile, rank) for n, (profile, rank) in enumerate(given_pods)]
    core = queue(*named)
    left = sorted(named, key=lambda each: -each[2])

    for profile, count in leases:
        expected = [each for each in left if profile in ("", each[1])][:count]
        assert leased(core, profile, count) == [name for name, _, _ in expected]
        left = [each for each in left if each not in expected]
        core.validate()
