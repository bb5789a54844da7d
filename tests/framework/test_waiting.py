from roadstead.facts.pod import GroupMembership, PodIdentity
from roadstead.framework.members import GroupMembers
from roadstead.framework.waiting import PermitDecision, WaitingPod, WaitingPods
from tests.builders import pod

GANG = pod(pod_group=GroupMembership("a"))


def test_without_a_core_no_pod_waits():
    waiting = WaitingPods()

    assert list(waiting) == []
    assert waiting.get("u1") is None


def test_a_core_lists_its_waiting_pods():
    one = WaitingPod(PodIdentity("u1", "default", "p"), pod(), "n1", ("A",))
    waiting = WaitingPods()

    waiting.connect({"u1": one}.get, lambda: [one])

    assert list(waiting) == [one]
    assert waiting.get("u1") is one
    assert waiting.get("u2") is None


def test_decisions_are_returned_once_and_in_order():
    waiting = WaitingPods()

    waiting.allow("u1", "A")
    waiting.reject("u2", "B", "no")
    waiting.reject_where(bool, "C", "none of you")

    assert waiting.pop_decisions() == [
        PermitDecision("u1", "A"),
        PermitDecision("u2", "B", "no"),
        PermitDecision("", "C", "none of you", bool),
    ]
    assert waiting.pop_decisions() == []


def test_members_of_a_group_are_counted_once_each():
    members = GroupMembers(counts_pods=True)

    assert [members.add(uid, GANG) for uid in ("u1", "u2", "u1")] == [True, True, False]
    assert members.count(("default", "a")) == 2
    assert members.count(("other", "a")) == 0


def test_a_pod_without_a_group_is_not_counted():
    members = GroupMembers()

    assert not members.add("u1", pod())
    members.remove("u1")
    assert members.group_of("u1") is None
    assert not members.counts_pods


def test_deleted_members_are_forgotten():
    members = GroupMembers()
    members.add("u1", GANG)

    members.add("u2", GANG)
    assert members.group_of("u1") == ("default", "a")
    members.remove("u2")
    assert members.count(("default", "a")) == 1
    members.remove("u1")
    members.remove("u1")

    assert members.count(("default", "a")) == 0
    assert members.add("u1", GANG)
