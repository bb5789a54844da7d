"""A plugin is asked once per effect, and not per placed class, whether it matters to a class."""

from functools import partial

import pytest

from roadstead.config.model import default_config
from roadstead.cycle.placed_classes import PlacedClasses
from roadstead.framework.plugin import Effect, FilterPlugin, FilterResult, Handle, Reads
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from tests.builders import pod


class Watching(FilterPlugin):
    """A plugin that reacts to pods with a label, and counts its calls."""

    name = "Watching"
    reads = Reads.CLUSTER

    def __init__(self, *_):
        self.asked = []

    def filter(self, state, pod, table):
        return FilterResult()

    def effect(self, placed):
        return Effect(placed, partial(self.minds, placed))

    def minds(self, placed, pod):
        self.asked.append(placed)
        return "mind" in placed.labels


class Announcing(Watching):
    """A plugin that declares that it reads labels alone."""

    def effect(self, placed):
        return Effect(placed.facts.labels, partial(self.minds, placed))


def world(kind):
    """Return a profile with such a plugin besides the default ones, its classes and the plugin."""
    classes = PodClasses()
    (config,) = default_config().profiles
    refs = {point: config.at(point) for point in config.plugins}
    refs["filter"] = (*refs["filter"], type(refs["filter"][0])("Watching"))
    registry = in_tree_registry().merged({"Watching": kind})
    profile = Profile(
        type(config)(config.scheduler_name, None, refs, config.args), registry, Handle(classes)
    )
    plugin = next(each for each in profile.cross_node if each.name == "Watching")
    return profile, classes, plugin


@pytest.mark.parametrize(("kind", "times"), [(Watching, 20), (Announcing, 1)])
def test_a_plugin_is_asked_once_per_effect(kind, times):
    profile, classes, plugin = world(kind)
    placed = PlacedClasses()
    placed.add(classes.pod_class(pod(cpu=amount)) for amount in range(1, 21))
    asked = classes.pod_class(pod(cpu=500))

    assert not placed.may_affect("a", asked, profile)
    assert not placed.may_affect("a", asked, profile)
    assert len(plugin.asked) == times


def test_only_new_placed_classes_are_checked_and_earlier_results_hold():
    profile, classes, _ = world(Announcing)
    placed, asked = PlacedClasses(), classes.pod_class(pod(cpu=500))
    assert not placed
    placed.add([classes.pod_class(pod(cpu=1))])
    assert placed
    assert not placed.may_affect("a", asked, profile)

    placed.add([classes.pod_class(pod(labels={"mind": "yes"}))])

    assert placed.may_affect("a", asked, profile)
    assert placed.may_affect("a", asked, profile)
