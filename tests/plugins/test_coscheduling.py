"""Coscheduling alone, and in the core of a scheduler: a gang is placed completely or not at all."""

import pytest

from roadstead.attempts.commands import Assume, Bind, Forget, RequeuePods, SendReports
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.pods import AttemptState, BindOutcome, BindResult
from roadstead.config.plugin_args import CoschedulingArgs
from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import GroupMembership, PodIdentity
from roadstead.facts.pod_groups import PodGroup
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.events import EventPod, ObjectChange, QueueingHint
from roadstead.framework.members import GroupMembers
from roadstead.framework.plugin import Handle
from roadstead.framework.post_filter_answers import PostFilterView
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins import coscheduling
from roadstead.plugins.coscheduling import Coscheduling
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.status import SUCCESS, Code, Status
from tests.builders import config_of, pod

TOO_SMALL = Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit")
GANG_POINTS = {
    point: ["Coscheduling"]
    for point in ("preFilter", "postFilter", "reserve", "permit", "postBind")
} | {"bind": ["DefaultBinder"]}


def member(group="a", least=3, **facts):
    return pod(cpu=100, pod_group=GroupMembership(group, least), **facts)


def plugin(*groups, members=None, wait_s=60):
    handle = Handle(
        PodClasses(), ClusterFacts(pod_groups=groups), members=members or GroupMembers()
    )
    return Coscheduling(CoschedulingArgs(wait_s), handle)


def known(count, group="a"):
    members = GroupMembers(counts_pods=True)
    for number in range(count):
        members.add(f"u{number}", member(group))
    return members


def pre_filtered(found, facts):
    return found.pre_filter(CycleState(1), PodClasses().pod_class(facts), None).status


def test_a_member_stays_gated_until_enough_of_its_group_exist():
    status = plugin(members=known(2)).pre_enqueue(member())

    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == 'waiting for pod group "default/a": 2 of 3 pods exist'
    assert plugin(members=known(3)).pre_enqueue(member()) == SUCCESS


def test_running_members_count_as_existing():
    found = plugin(PodGroup("default", "a", running=2), members=known(1))

    assert found.pre_enqueue(member()) == SUCCESS


@pytest.mark.parametrize("facts", [pod(), member(least=None)])
def test_a_pod_that_needs_no_others_is_not_gated(facts):
    assert plugin(members=known(0)).pre_enqueue(facts) == SUCCESS


def test_without_counts_of_members_the_gate_is_open():
    assert plugin().pre_enqueue(member()) == SUCCESS


def test_a_group_of_unknown_size_is_refused():
    status = pre_filtered(plugin(), member(least=None))

    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == (
        'pod group "default/a": no PodGroup, label or annotation says how many pods it needs'
    )


def test_an_invalid_number_is_the_reason_of_the_refusal():
    wrong = pod(pod_group=GroupMembership("a", error='min-available: "x" is not a whole number'))

    assert "is not a whole number" in pre_filtered(plugin(), wrong).message


def test_pods_without_a_group_and_with_a_valid_one_skip_the_filter():
    for facts in (pod(), member()):
        assert pre_filtered(plugin(), facts).code is Code.SKIP


def test_a_pod_group_overrides_the_fields_of_a_pod():
    found = plugin(PodGroup("default", "a", 1, 7))
    found.reserve(PodIdentity("u1", "default", "p1"), member(least=5), "n1")

    assert found.permit(PodIdentity("u1", "default", "p1"), member(least=5), "n1")[0] == SUCCESS


@pytest.mark.parametrize(
    ("group", "own_s", "expected_s"),
    [
        (PodGroup("default", "a", 2, 7), 30, 7),
        (PodGroup("default", "a", 2), 30, 30),
        (PodGroup("default", "other", 2), None, 60),
    ],
)
def test_the_permit_timeout_is_the_groups_then_the_pods_then_the_plugins(group, own_s, expected_s):
    facts = pod(pod_group=GroupMembership("a", 2, own_s))
    found = plugin(group)
    found.reserve(PodIdentity("u1", "default", "p1"), facts, "n1")

    status, wait_s = found.permit(PodIdentity("u1", "default", "p1"), facts, "n1")

    assert (status.code, wait_s) == (Code.WAIT, expected_s)


def test_gangs_of_equal_pods_are_one_class():
    found = plugin()

    assert found.sign(member("a")) == found.sign(member("b")) == found.sign(pod())
    assert found.sign(member("a", None)) != found.sign(member("b", None))


def test_members_are_queued_together_at_the_position_of_their_first():
    found = plugin()
    queued = [
        ("a1", member("a"), 10.0),
        ("single", pod(), 11.0),
        ("b1", member("b"), 12.0),
        ("a2", member("a"), 13.0),
        ("urgent", pod(priority=5), 20.0),
        ("z1", member("z"), 12.0),
    ]

    keys = {name: found.sort_key(facts, at_s) for name, facts, at_s in queued}

    assert sorted(keys, key=keys.get) == ["urgent", "a1", "a2", "single", "b1", "z1"]


def test_first_arrivals_of_a_bounded_number_of_groups_are_remembered(monkeypatch):
    monkeypatch.setattr(coscheduling, "MAX_GROUPS", 2)
    found = plugin()
    for number, name in enumerate("abc"):
        found.sort_key(member(name), float(number))

    assert found.sort_key(member("b"), 9.0)[1] == 1.0
    assert found.sort_key(member("a"), 9.0)[1] == 9.0


def hint(waiting, change):
    (event, _) = plugin().events_to_register()
    return event.hint(waiting, change, ClusterFacts())


def test_a_new_pod_may_help_its_own_group_and_a_deleted_one_all_groups():
    came = ObjectChange(new=EventPod(member("a"), assigned=False))

    assert hint(member("a"), came) is QueueingHint.QUEUE
    assert hint(member("b"), came) is QueueingHint.QUEUE_SKIP
    assert hint(member("b"), ObjectChange(old=EventPod(pod(), assigned=True))) is QueueingHint.QUEUE


def test_unreserving_an_unreserved_pod_has_no_effect():
    handle = Handle(PodClasses(), ClusterFacts(), members=GroupMembers())
    found = Coscheduling(CoschedulingArgs(60), handle)
    for facts in (member(), pod()):
        found.unreserve(PodIdentity("u1", "default", "p"), facts, "n1")
        found.pod_deleted(PodIdentity("u1", "default", "p"), facts, "n1")

    assert handle.waiting.pop_decisions() == []


def test_a_pod_without_a_group_passes_unchanged():
    found = plugin()

    assert found.reserve(PodIdentity("u1", "default", "p"), pod(), "n1") == SUCCESS
    assert found.permit(PodIdentity("u1", "default", "p"), pod(), "n1") == (SUCCESS, 0.0)
    assert found.post_filter(pod(), PostFilterView(1, 0, 0, SUCCESS)).status.reasons == ()


class Gangs:
    """A core whose profile has Coscheduling, and the pods that were leased to it."""

    def __init__(self, *groups):
        classes = PodClasses()
        self.members = GroupMembers()
        handle = Handle(classes, ClusterFacts(pod_groups=groups), members=self.members)
        profile = Profile(config_of(GANG_POINTS), in_tree_registry(), handle)
        self.core = AttemptsCore("s", 1, {"default-scheduler": profile})
        self.classes = classes
        self.waiting = handle.waiting
        self.facts = {}

    def in_cycle(self, uid):
        return PodInCycle(uid, f"default/{uid}", self.classes.pod_class(self.facts[uid]), "class")

    def lease(self, lease_id=1, **pods):
        self.facts |= pods
        self.core.lease(lease_id, [self.in_cycle(uid) for uid in pods])

    def decide(self, *uids, nowhere=()):
        """Decide pods, those in `nowhere` without a node; return the tokens and all commands."""
        diagnosis = Diagnosis(1)
        diagnosis.add(TOO_SMALL, 1)
        decisions = [Decision(self.in_cycle(uid), "n1") for uid in uids]
        decisions += [Decision(self.in_cycle(uid), None, diagnosis=diagnosis) for uid in nowhere]
        effects = self.core.decided(decisions)
        tokens = [a.token for each in effects if isinstance(each, Assume) for a in each.attempts]
        return tokens, effects

    def place(self, *uids, now_s=0.0, nowhere=()):
        tokens, _ = self.decide(*uids, nowhere=nowhere)
        return self.core.assumed(tokens, [], now_s)

    def states(self, *uids):
        return [self.core.state_of(uid).value for uid in uids]


def uids_of(kind, effects):
    found = [each for each in effects if isinstance(each, kind)]
    members = [each.items if kind is RequeuePods else each.attempts for each in found]
    return sorted(each.uid for some in members for each in some)


def test_the_member_that_completes_a_gang_sends_all_others_to_the_binder():
    gangs = Gangs()
    gangs.lease(u1=member(), u2=member(), u3=member(), x=pod(cpu=1))

    assert gangs.place("u1", "u2") == []
    assert [each.pod.uid for each in gangs.waiting] == ["u1", "u2"]
    assert gangs.waiting.get("u1").plugins == ("Coscheduling",)
    assert gangs.waiting.get("u3") is None
    effects = gangs.place("u3")

    assert uids_of(Bind, effects) == ["u1", "u2", "u3"]
    assert gangs.states("u1", "u2", "u3") == ["binding"] * 3
    assert list(gangs.waiting) == []
    gangs.core.validate()


def test_a_gang_of_one_batch_is_sent_to_the_binder_in_one_batch():
    gangs = Gangs()
    gangs.lease(u1=member(), u2=member(), u3=member(), x=pod(cpu=1))

    assert uids_of(Bind, gangs.place("u1", "x", "u2", "u3")) == ["u1", "u2", "u3", "x"]


def test_a_member_beyond_the_minimum_does_not_wait():
    gangs = Gangs()
    gangs.lease(u1=member(least=1), u2=member(least=1))
    gangs.place("u1")

    assert uids_of(Bind, gangs.place("u2")) == ["u2"]


def test_running_members_count_as_placed():
    gangs = Gangs(PodGroup("default", "a", 3, running=2))
    gangs.lease(u1=member())

    assert uids_of(Bind, gangs.place("u1")) == ["u1"]


def test_a_timeout_of_one_member_fails_the_whole_gang():
    gangs = Gangs(PodGroup("default", "a", 3, 10))
    gangs.lease(u1=member(), u2=member(), other=member("b"))
    gangs.place("u1", now_s=0.0)
    gangs.place("u2", "other", now_s=5.0)

    effects = gangs.core.tick(10.0)

    assert uids_of(Forget, effects) == uids_of(RequeuePods, effects) == ["u1", "u2"]
    assert gangs.states("u1", "u2", "other") == ["unschedulable", "unschedulable", "waiting"]
    messages = sorted(each.message for each in effects[-1].reports)
    assert isinstance(effects[-1], SendReports)
    assert "rejected due to timeout after waiting 10s at plugin Coscheduling" in messages[1]
    assert 'pod "default/u1" of pod group "default/a" was unreserved' in messages[0]
    gangs.core.validate()


def test_a_member_that_fits_nowhere_ends_the_wait_of_the_others():
    gangs = Gangs()
    gangs.lease(u1=member(), u2=member(), u3=member(), x=member("b"))
    gangs.place("u1", "x")

    effects = gangs.place("u2", nowhere=["u3"])

    assert uids_of(RequeuePods, effects) == ["u2"]
    assert gangs.states("u1", "u2", "u3", "x") == [*["unschedulable"] * 3, "waiting"]
    assert [each.uid for each in gangs.core.attempts()] == ["x"]
    gangs.core.validate()


@pytest.mark.parametrize("waiting", [(), ("u1",), ("u1", "u2")])
def test_a_surplus_member_that_fits_nowhere_does_not_affect_placed_ones(waiting):
    gangs, uids = Gangs(), ("u1", "u2", "u3")
    gangs.lease(u1=member(), u2=member(), u3=member(), u4=member(), x=member("b"))
    gangs.place(*waiting, "x")

    effects = gangs.place(*(uid for uid in uids if uid not in waiting), nowhere=["u4"])

    assert uids_of(Bind, effects) == [*uids]
    assert gangs.states("u4", "x") == ["unschedulable", "waiting"]
    gangs.core.validate()


def test_placed_members_are_refused_if_a_member_fits_nowhere_and_they_are_too_few():
    gangs = Gangs()
    gangs.lease(u1=member(), u2=member(), u3=member(), x=member("b"))

    gangs.place("u1", "x", "u2", nowhere=["u3"])

    assert gangs.states("u1", "u2", "u3", "x") == [*["unschedulable"] * 3, "waiting"]


def test_gangs_with_waiting_pods_are_reported():
    gangs = Gangs()
    gangs.lease(u1=member("b"), u2=member("a"), u3=member("a"), x=pod(cpu=1))
    assert gangs.core.waiting_gangs() == ()

    gangs.place("u1", "u2", "u3", "x")

    assert gangs.core.waiting_gangs() == (("default", "a"), ("default", "b"))


def test_a_member_that_fits_nowhere_names_its_group():
    gangs = Gangs()
    gangs.lease(u1=member(), u2=member())
    gangs.place("u1")

    _, effects = gangs.decide(nowhere=["u2"])

    messages = {each.uid: each.message for each in effects[-1].reports}
    assert messages["u2"].endswith('pod group "default/a" does not fit.')
    assert 'a pod of pod group "default/a" fits nowhere' in messages["u1"]


def test_a_gang_that_did_not_fit_is_tried_again_completely():
    gangs = Gangs()
    uids = ("u1", "u2", "u3")
    gangs.lease(u1=member(), u2=member(), u3=member())
    gangs.place("u1", "u2", nowhere=["u3"])
    gangs.lease(2, u1=member(), u2=member(), u3=member())

    assert uids_of(Bind, gangs.place(*uids)) == list(uids)


def test_a_surplus_member_that_fits_nowhere_has_no_effect():
    gangs = Gangs()
    gangs.lease(u1=member(least=1), u2=member(least=1))
    gangs.place("u1")

    gangs.decide(nowhere=["u2"])

    assert gangs.states("u1", "u2") == ["binding", "unschedulable"]


def test_a_deleted_member_ends_the_wait_of_the_others():
    gangs = Gangs()
    gangs.lease(u1=member(), u2=member())
    gangs.place("u1", "u2")

    effects = gangs.core.deleted(["u1"])

    assert uids_of(Forget, effects) == ["u1", "u2"]
    assert gangs.states("u1", "u2") == ["gone", "unschedulable"]


def bound(gangs, effects):
    tokens = [a.token for each in effects if isinstance(each, Bind) for a in each.attempts]
    gangs.core.bind_answered([BindResult(each, BindOutcome.BOUND, "n1") for each in tokens])


def test_bound_members_count_until_they_are_deleted():
    gangs = Gangs()
    gangs.lease(u1=member(least=2), u2=member(least=2), u3=member(least=2), u4=member(least=2))
    bound(gangs, gangs.place("u1", "u2"))
    bound(gangs, gangs.place("u3"))
    gangs.core.deleted(["u1", "u2", "u3"])

    assert gangs.place("u4") == []
    assert gangs.states("u1", "u3", "u4") == ["gone", "gone", "waiting"]


def test_members_bound_by_other_schedulers_count_as_placed():
    gangs = Gangs()
    gangs.members.record_bound(("default", "a"), 2)
    gangs.lease(u1=member(), late=member("b"))

    assert uids_of(Bind, gangs.place("u1", "late")) == ["u1"]


def test_a_waiting_member_is_bound_once_enough_others_are_reported_bound():
    gangs = Gangs()
    gangs.lease(u1=member(), other=member("b"))
    assert gangs.place("u1", "other") == []

    gangs.members.record_bound(("default", "a"), 1)
    assert gangs.core.lease(2, [gangs.in_cycle("u1")]) == []
    gangs.members.record_bound(("default", "a"), 2)
    effects = gangs.core.lease(3, [gangs.in_cycle("u1")])

    assert uids_of(Bind, effects) == ["u1"]
    assert gangs.states("u1", "other") == ["binding", "waiting"]


def test_members_bound_here_count_once_even_if_others_report_them():
    gangs = Gangs()
    gangs.lease(u1=member(least=2), u2=member(least=2))
    bound(gangs, gangs.place("u1", "u2"))
    gangs.core.deleted(["u2"])
    gangs.members.record_bound(("default", "a"), 1)
    gangs.lease(2, u3=member(least=3), u4=member(least=3))

    assert gangs.place("u3") == []
    assert uids_of(Bind, gangs.place("u4")) == ["u3", "u4"]


def test_deleted_members_bound_here_stop_counting_at_the_queues_report():
    gangs = Gangs()
    gangs.lease(u1=member(least=2), u2=member(least=2))
    bound(gangs, gangs.place("u1", "u2"))
    gangs.members.record_bound(("default", "a"), 0)
    gangs.lease(2, u3=member(least=2), u4=member(least=2))

    assert gangs.place("u3") == []
    assert uids_of(Bind, gangs.place("u4")) == ["u3", "u4"]


def test_members_bound_after_the_queues_report_still_count():
    gangs = Gangs()
    gangs.members.record_bound(("default", "a"), 0)
    gangs.lease(u1=member(least=2), u2=member(least=2), u3=member(least=2))
    bound(gangs, gangs.place("u1", "u2"))

    assert uids_of(Bind, gangs.place("u3")) == ["u3"]


def test_a_late_member_that_fits_nowhere_is_refused_alone_once_enough_are_bound():
    gangs = Gangs()
    gangs.members.record_bound(("default", "a"), 3)
    gangs.lease(u1=member())

    _, effects = gangs.decide(nowhere=["u1"])

    (report,) = effects[-1].reports
    assert "does not fit" not in report.message


def test_a_member_refused_by_the_binder_fails_alone_once_its_gang_is_released():
    gangs = Gangs()
    gangs.lease(u1=member(least=2), u2=member(least=2))
    effects = gangs.place("u1", "u2")
    (one, _) = [a.token for each in effects if isinstance(each, Bind) for a in each.attempts]

    gangs.core.bind_answered([BindResult(one, BindOutcome.CONFLICT, message="full")])

    states = sorted(gangs.states("u1", "u2"))
    assert states == [AttemptState.BINDING.value, AttemptState.CONFLICT.value]
