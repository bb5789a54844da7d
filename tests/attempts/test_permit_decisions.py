"""Plugins' decisions on waiting pods, applied by the core at the end of each call."""

from roadstead.attempts.commands import Bind, ReportKind, RequeuePods, SendReports
from roadstead.attempts.pods import AttemptState, BindOutcome
from roadstead.framework.guarded import guard
from roadstead.framework.plugin import PodDeletionPlugin
from roadstead.framework.waiting import WaitingPods
from tests.attempts.core_world import WAIT, World, only, tokens


class Interfering(World):
    """A world in which plugin calls decide on other pods; `actions`: log line → action."""

    def __init__(self, **given):
        super().__init__(**given)
        self.actions = {}
        world = self

        class Log(list):
            def append(self, line):
                list.append(self, line)
                world.actions.pop(line, lambda: None)()

        self.log = Log()
        for plugin in self.profile.permit:
            type(plugin).log = self.log

    @property
    def room(self) -> WaitingPods:
        return self.profile.waiting


def waiting(*uids):
    """Pods that wait for A."""
    world = Interfering(answers={"A": {("permit", uid): (WAIT, 10.0) for uid in uids}})
    world.lease(*uids, "last")
    world.accept(*world.place(*uids))
    return world


def test_a_permitted_pod_allows_others_of_its_plugin_in_order_of_decision():
    world = waiting("u1", "u2")
    world.actions["permit A last"] = lambda: [world.room.allow(uid, "A") for uid in ("u2", "u1")]

    effects = world.accept(*world.place("last"))

    assert tokens(Bind, effects) == ["s/1/1", "s/1/2", "s/1/3"]
    world.core.validate()


def test_unreserve_of_one_pod_may_reject_others_in_a_chain():
    world = waiting("u1", "u2", "u3")
    world.actions["unreserve A u1"] = lambda: world.room.reject("u2", "A", "u1 is gone")
    world.actions["unreserve A u2"] = lambda: world.room.reject("u3", "A", "u2 is gone")

    effects = world.core.reject("u1", "A", "enough")

    assert [item.uid for item in only(RequeuePods, effects).items] == ["u1", "u2", "u3"]
    assert "u2 is gone" in only(SendReports, effects).reports[2].message


def test_decisions_on_pods_that_do_not_wait_change_nothing():
    world = waiting("u1")
    world.room.allow("nobody", "A")
    world.room.reject("last", "A", "no")
    world.room.reject_where(lambda facts: False, "A", "no")
    before = world.picture()

    assert world.core.tick(0.0) == []
    assert world.picture() == before


def test_a_refusal_of_all_pods_also_reaches_those_being_assumed():
    world = waiting("u1")
    (token,) = world.place("last")
    world.room.reject_where(lambda facts: True, "A", "no room for any")
    effects = world.core.tick(0.0)
    assert [item.uid for item in only(RequeuePods, effects).items] == ["u1"]
    assert world.core.state_of("last") is AttemptState.ASSUMING

    effects = world.accept(token)

    assert [item.uid for item in only(RequeuePods, effects).items] == ["last"]
    assert "reserve A last" not in world.log
    world.core.validate()


def test_a_refusal_ends_with_its_attempt():
    world = waiting("u1")
    (token,) = world.place("last")
    world.room.reject_where(lambda facts: True, "A", "no room for any")
    world.core.tick(0.0)
    world.accept(token)
    world.lease("last", lease_id=2, attempt=2)

    effects = world.accept(*world.place("last", attempt=2))

    assert tokens(Bind, effects) == ["s/1/3"]


def test_pods_before_permit_are_visible_until_they_reach_it():
    world = Interfering()
    facts = world.pod_class.facts
    world.lease("u1", "u2")
    assert list(world.room.before_permit()) == []

    first, second = world.place("u1", "u2")
    assert list(world.room.before_permit()) == [facts, facts]

    world.accept(first)
    assert list(world.room.before_permit()) == [facts]
    world.refuse(second)
    assert list(world.room.before_permit()) == []


def test_a_pod_refused_before_permit_is_not_visible():
    world = Interfering()
    world.lease()
    world.place()

    world.room.reject_where(lambda facts: True, "A", "no")
    world.core.tick(0.0)

    assert world.core.state_of("u1") is AttemptState.ASSUMING
    assert list(world.room.before_permit()) == []


def test_several_profiles_share_the_mailbox_of_their_process():
    world = waiting("u1")
    profile = world.profile

    assert [each.pod.uid for each in profile.waiting] == ["u1"]
    assert profile.waiting.get("u1").plugins == ("A",)
    assert profile.waiting.get("last") is None


class Remembers(PodDeletionPlugin):
    name = "Remembers"
    gone = ()

    def pod_deleted(self, pod, facts, node_name):
        self.gone = (*self.gone, (pod.uid, node_name))
        if len(self.gone) > 1:
            raise RuntimeError("too much")


def test_plugins_that_remember_a_bound_pod_get_its_end():
    world = World()
    memory = Remembers()
    world.profile.pod_deletion = (memory,)
    world.binding("u1")
    world.lease("u2")
    world.answer(BindOutcome.BOUND)

    assert world.core.deleted(["u1", "u2"]) == []
    assert memory.gone == (("u1", "n1"),)


def test_a_plugin_that_fails_to_forget_is_reported():
    world = World()
    memory = guard(Remembers())
    world.profile.pod_deletion = (memory,)
    world.binding("u1", "u2")
    for token in ("s/1/1", "s/1/2"):
        world.answer(BindOutcome.BOUND, token)

    (report,) = only(SendReports, world.core.deleted(["u1", "u2"])).reports

    assert (report.uid, report.kind) == ("u2", ReportKind.WARNING)
    assert 'plugin "Remembers": RuntimeError: too much' in report.message
