"""Views of the core on its pods: counts by state, and gangs with waiting pods."""

import pytest

from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.pods import TRANSIENT, AttemptCounts, AttemptState
from roadstead.facts.pod import GroupMembership
from tests.attempts.core_world import WAIT, Scripted, World
from tests.builders import pod, profile_of

LIVE_COUNTS = ("leased", "assuming", "waiting", "binding", "asked")


@pytest.mark.parametrize("state", [state for state in AttemptState if state not in TRANSIENT])
def test_a_pod_is_counted_in_its_own_state_only(state):
    counts = World().bring_to(state).core.counts()

    there = {name: int(state == name) for name in LIVE_COUNTS}
    assert counts == AttemptCounts(**there, bound_total=int(state is AttemptState.BOUND))
    assert counts.live == sum(there.values())


def test_the_count_of_live_pods_is_a_sum():
    counts = AttemptCounts(*(1 << place for place in range(6)))

    assert counts.live == 0b11111


GANGS = "Coscheduling"


class Gangs(World):
    """Pods of gangs of three, and a plugin B for which some of them wait, too."""

    def __init__(self):
        super().__init__(plugins=("B",))
        points = {"permit": [GANGS, "B"], "reserve": [GANGS], "bind": ["DefaultBinder"]}
        (plugin,) = self.profile.permit
        kind = type("B", (Scripted,), {"name": "B", "answers": plugin.answers, "log": self.log})
        profile = profile_of(points, plugins=[kind], classes=self.classes)
        self.core = AttemptsCore("s", 1, {"default-scheduler": profile})

    def accepted(self, uid, lease_id, gang=None, wait_s=None):
        """Assume a pod of a gang. wait_s: for B."""
        group = None if gang is None else GroupMembership(gang, 3, 60)
        self.pod_class = self.classes.pod_class(pod(cpu=100, pod_group=group))
        if wait_s is not None:
            self.answers["B"]["permit", uid] = WAIT, wait_s
        self.lease(uid, lease_id=lease_id)
        self.accept(*self.place(uid))


def test_gangs_with_waiting_pods_are_listed_once_each_and_sorted():
    world = Gangs()
    for number, gang in enumerate(("web", "db", "web"), 1):
        world.accepted(f"u{number}", number, gang)
    world.accepted("other", 4, wait_s=5.0)
    assert world.core.waiting_gangs() == (("default", "db"), ("default", "web"))

    world.core.deleted(["u2"])
    assert world.core.waiting_gangs() == (("default", "web"),)


def test_a_pod_allowed_by_its_gang_belongs_to_no_waiting_gang():
    world = Gangs()
    world.accepted("u1", 1, "web", wait_s=5.0)
    world.core.allow("u1", GANGS)

    assert world.core.state_of("u1") is AttemptState.WAITING
    assert world.core.waiting_gangs() == ()


def test_leases_with_waiting_pods_are_listed_until_none_waits():
    world = Gangs()
    world.accepted("u1", 1, wait_s=5.0)
    world.accepted("u2", 2, wait_s=5.0)
    world.lease("u3", lease_id=3)
    assert world.core.waiting_leases() == {1, 2}

    world.core.reject("u1", "B", "no")
    assert world.core.waiting_leases() == {2}


def test_gangs_of_a_users_plugin_are_listed_if_it_declares_that_it_places_them():
    world = World(plugins=("A",), answers={"A": {"permit": (WAIT, 5.0)}})
    world.pod_class = world.classes.pod_class(pod(cpu=100, pod_group=GroupMembership("web", 3, 60)))
    (plugin,) = world.profile.permit
    kind = type("B", (Scripted,), {"name": "B", "answers": plugin.answers, "places_gangs": True})
    for each, expected in ((type(plugin), ()), (kind, (("default", "web"),))):
        points = {"permit": [each.name], "bind": ["DefaultBinder"]}
        profile = profile_of(points, plugins=[each], classes=world.classes)
        world.core = AttemptsCore("s", 1, {"default-scheduler": profile})
        world.lease()
        world.accept(*world.place())

        assert world.core.waiting_gangs() == expected
