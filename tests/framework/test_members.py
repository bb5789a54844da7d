"""The counts of a gang's existing and bound pods."""

from roadstead.facts.pod import GroupMembership
from roadstead.framework.members import GroupMembers
from tests.builders import pod

GANG = ("default", "g")
FACTS = pod(pod_group=GroupMembership("g", 2))


def members_of(*uids):
    members = GroupMembers(counts_pods=True)
    assert all(members.add(uid, FACTS) for uid in uids)
    return members


def test_pods_of_no_group_are_members_of_none():
    members = GroupMembers()

    assert not members.add("a", pod())

    assert members.is_empty
    assert members.group_of("a") is None


def test_a_member_added_twice_counts_once():
    members = members_of("b", "a")

    assert not members.add("a", FACTS)

    assert (members.count(GANG), members.of(GANG)) == (2, ["a", "b"])


def test_a_member_that_changes_its_group_counts_for_the_new_one_only():
    members = members_of("a", "b")

    assert members.add("a", pod(pod_group=GroupMembership("h", 2)))
    assert not members.add("b", pod())

    assert (members.of(GANG), members.of(("default", "h"))) == ([], ["a"])
    assert members.groups() == (("default", "h"),)


def test_bound_members_stay_members_until_they_are_deleted():
    members = members_of("a", "b")
    members.bind(["a", "b", "b", "nobody"])
    assert (members.bound(GANG), members.count(GANG)) == (2, 2)

    members.remove("a")
    assert (members.bound(GANG), members.count(GANG)) == (1, 1)

    members.remove("b")
    members.remove("nobody")
    assert (members.bound(GANG), members.count(GANG)) == (0, 0)
    assert members.is_empty


def test_without_known_gangs_no_member_is_bound():
    members = GroupMembers()

    members.bind(["a"])

    assert members.bound(GANG) == 0


def test_a_reported_number_of_bound_members_holds_until_the_next_report():
    members = GroupMembers()

    members.record_bound(GANG, 3)
    assert members.bound(GANG) == 3

    members.record_bound(GANG, 0)
    members.record_bound(GANG, 0)
    assert members.bound(GANG) == 0


def test_a_listener_is_called_after_each_report():
    members, heard = GroupMembers(), []
    members.listen(lambda key: heard.append((key, members.bound(key))))

    members.record_bound(GANG, 3)
    members.record_bound(GANG, 0)

    assert heard == [(GANG, 3), (GANG, 0)]
