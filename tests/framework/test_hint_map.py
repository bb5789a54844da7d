"""The events that profiles registered, and the answers of their hints to the queue."""

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.events import (
    ASSIGNED_POD_ADD,
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    ClusterEvent,
    EventResource,
    HintError,
    ObjectChange,
    QueueingHint,
    on,
)
from roadstead.framework.hint_map import WITHOUT_NODES, HintMap, OccurredEvent
from roadstead.framework.plugin import EnqueueExtensions, FilterPlugin
from tests.builders import pod, profile_of

NODE = EventResource.NODE


class Asked(FilterPlugin, EnqueueExtensions):
    """Registers two events of nodes; its hint returns or raises the answer that the test sets."""

    name = "Asked"

    def __init__(self, hint_or_error=QueueingHint.QUEUE):
        self.hint_or_error = hint_or_error
        self.calls = []

    def filter(self, state, pod, table):
        raise AssertionError("nobody filters here")

    def events_to_register(self):
        update = ActionType.UPDATE_NODE_LABEL
        return (on(NODE, ActionType.ADD, self.hint), on(NODE, ActionType.ADD | update, self.hint))

    def hint(self, pod, change, cluster):
        self.calls.append((pod, change, cluster))
        if isinstance(self.hint_or_error, Exception):
            raise self.hint_or_error
        return self.hint_or_error


class Silent(FilterPlugin):
    name = "Silent"

    def filter(self, state, pod, table):
        raise AssertionError("nobody filters here")


class Built:
    """Stands for the class of a plugin whose instance exists already."""

    def __init__(self, plugin):
        self.name, self.plugin = plugin.name, plugin

    def __call__(self):
        return self.plugin


def map_of(*plugins):
    built = [Built(each) for each in plugins]
    points = {"filter": [*(each.name for each in plugins), "NodeName"]}
    profile = profile_of(points, plugins=built)
    return HintMap({"default-scheduler": profile}, ClusterFacts())


def seen(event=NODE_ADD, **change):
    return OccurredEvent(event, ObjectChange(**change))


@pytest.mark.parametrize(
    ("hint_or_error", "helps"),
    [(QueueingHint.QUEUE, True), (QueueingHint.QUEUE_SKIP, False), (HintError("?"), True)],
)
def test_a_hint_decides_whether_the_event_may_help_and_an_error_means_yes(hint_or_error, helps):
    assert map_of(Asked(hint_or_error)).may_help("Asked", seen(), pod()) is helps


def test_a_hint_gets_the_pod_the_change_and_the_current_cluster():
    plugin, after = Asked(QueueingHint.QUEUE_SKIP), ClusterFacts(namespaces=(("a", ()),))
    hints = map_of(plugin)
    event = seen(new="node")
    hints.cluster = after

    hints.may_help("Asked", event, pod(cpu=1))

    assert plugin.calls == [(pod(cpu=1), event.change, after)] * 2


def test_only_registered_events_may_help():
    hints = map_of(Asked())

    assert not hints.may_help("Asked", seen(NODE_DELETE), pod())
    assert hints.may_help("NodeName", seen(), pod())
    assert not hints.may_help("NodeName", seen(ASSIGNED_POD_ADD), pod())
    assert not hints.may_help("Unknown", seen(), pod())


def test_any_event_may_help_pods_of_a_plugin_that_registers_nothing():
    hints = map_of(Silent())

    assert hints.may_help("Silent", seen(ASSIGNED_POD_ADD), pod())
    assert hints.is_registered("Silent", seen(NODE_DELETE))


def test_a_new_node_may_help_a_pod_that_found_no_nodes_with_any_registered_events():
    hints = map_of()
    helps = [hints.may_help(WITHOUT_NODES, seen(each), pod()) for each in (NODE_ADD, NODE_DELETE)]
    assert helps == [True, False]
    assert hints.is_of_interest(NODE_ADD)


def test_any_event_may_help_a_pod_of_no_profile():
    assert map_of(Asked()).may_help("Asked", seen(NODE_DELETE), pod(scheduler_name="theirs"))


def test_the_registered_events_are_those_of_all_profiles():
    hints = map_of(Asked())

    for _ in range(2):
        assert hints.is_registered("Asked", seen())
        assert not hints.is_registered("Asked", seen(NODE_DELETE))
        assert not hints.is_registered("Unknown", seen())


def test_an_event_is_of_interest_if_any_plugin_registered_it_or_it_is_a_wildcard():
    hints = map_of(Asked())
    slices = ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.ADD)

    for _ in range(2):
        assert hints.is_of_interest(NODE_ADD)
        assert hints.is_of_interest(ClusterEvent(EventResource.WILDCARD, ActionType.ALL))
        assert not hints.is_of_interest(slices)


def test_two_profiles_decide_about_their_own_pods():
    ours = profile_of({"filter": ["NodeName"]})
    theirs = profile_of({"filter": ["NodeResourcesFit"]})
    hints = HintMap({"default-scheduler": ours, "theirs": theirs}, ClusterFacts())

    assert hints.may_help("NodeName", seen(), pod())
    assert not hints.may_help("NodeName", seen(), pod(scheduler_name="theirs"))
    assert hints.is_registered("NodeResourcesFit", seen())


def test_every_event_equals_only_itself():
    one, other = seen(), seen()

    assert one != other
    assert {one: 1}[one] == 1


class Concerned(FilterPlugin, EnqueueExtensions):
    """Reacts to pods of the waiting pod's priority; raises HintError for priority 9."""

    name = "Concerned"
    whoever_rejected = False

    def filter(self, state, pod, table):
        raise AssertionError("nobody filters here")

    def events_to_register(self):
        how = {"may_matter": self.may_matter, "whoever_rejected": self.whoever_rejected}
        return (on(EventResource.POD, ActionType.ADD, **how), on(NODE, ActionType.ADD))

    def may_matter(self, waiting, assigned, cluster):
        if assigned.priority == 9:
            raise HintError("cannot decide")
        return waiting.priority == assigned.priority


def test_a_rejecting_plugin_decides_whether_a_placed_pod_concerns_a_pod():
    hints = map_of(Concerned())

    assert hints.may_matter(pod(priority=1), pod(priority=1), ("Other", "Concerned"))
    assert not hints.may_matter(pod(priority=1), pod(priority=2), ("Concerned",))
    assert not hints.may_matter(pod(priority=1), pod(priority=1), ("Other",))
    assert not map_of(Asked()).may_matter(pod(), pod(), ("Asked",))


def test_a_plugin_may_decide_about_pods_that_others_rejected():
    plugin = Concerned()
    plugin.whoever_rejected = True

    assert map_of(plugin).may_matter(pod(priority=1), pod(priority=1), ("Other",))
    assert not map_of(plugin).may_matter(pod(priority=1), pod(priority=2), ("Other",))


def test_a_plugin_that_can_not_decide_counts_as_concerned():
    assert map_of(Concerned()).may_matter(pod(), pod(priority=9), ("Concerned",))
