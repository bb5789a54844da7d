"""The number of pods of a gang that must still be bound, by the cluster's pod groups and the pods'
own fields.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from roadstead.binder.gangs import GangShortfall
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import GroupMembership
from roadstead.facts.pod_groups import PodGroup
from tests.builders import node, pod, put, table_of


def permits(*places_gangs):
    """A profile with Permit plugins that place gangs, or do not."""
    return SimpleNamespace(permit=[SimpleNamespace(places_gangs=each) for each in places_gangs])


PROFILES = {
    "heeds": permits(False, True),
    "heeds-not": permits(False),
    "permits-all": permits(),
}


def member(name="g", least=None, scheduler_name="heeds", namespace="default"):
    group = GroupMembership(name, least)
    return replace(pod(), namespace=namespace, scheduler_name=scheduler_name, pod_group=group)


def missing(facts, *bound, groups=(), aside=()):
    """The missing number of a gang when these pods are bound. aside: to removed nodes."""
    table = table_of(node("n1"), node("n2"))
    needs = GangShortfall(ClusterFacts(pod_groups=tuple(groups)), PROFILES, table, lambda: aside)
    # Bound pods count also where they were added later.
    for number, each in enumerate(bound):
        put(table, f"n{number % 2 + 1}", each)
    return needs.missing_members(facts)


def group(least=None, running=0):
    return PodGroup("default", "g", least, running=running)


def test_a_pod_without_a_gang_needs_no_other_pods():
    assert missing(replace(pod(), scheduler_name="heeds"), groups=[group(3)]) == 0


@pytest.mark.parametrize("scheduler_name", ["heeds-not", "permits-all"])
def test_a_profile_that_ignores_gangs_needs_no_other_pods(scheduler_name):
    assert missing(member(least=3, scheduler_name=scheduler_name), groups=[group(3)]) == 0


def test_the_pod_group_defines_the_number_and_without_one_the_pod():
    assert missing(member(least=2), groups=[group(5)]) == 5
    assert missing(member(least=2), groups=[group(None)]) == 2
    assert missing(member(least=2)) == 2
    assert missing(member(least=None)) == 0


def test_bound_members_count_and_pods_of_other_gangs_do_not():
    others = [member("other"), member(namespace="blue"), pod(), pod()]
    mine = [member(least=5), member(least=5)]

    assert missing(member(least=5), *others, *mine) == 3


def test_members_bound_to_removed_nodes_count():
    assert missing(member(least=5), member(least=5), aside=[member(least=5), pod()]) == 3


def test_members_that_ran_from_the_start_count_unless_they_are_on_a_known_node():
    bound = [member(least=5)] * 2

    assert missing(member(), *bound, groups=[group(5, running=3)]) == 2
    assert missing(member(), *bound, groups=[group(5, running=1)]) == 3


def test_a_complete_gang_needs_no_other_pods():
    assert missing(member(least=1), *[member(least=1)] * 3) == 0
