"""Placed pods with equal effects affect the same pods: for in-tree plugins, over random pods."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.cli.plugin.checks import check_effects
from roadstead.cli.plugin.samples import sample_fleet
from roadstead.config.model import default_config
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodClaim, PodReference
from roadstead.framework.plugin import Handle, Plugin
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from tests.plugins.subjects import in_tree_subject
from tests.storage.world import random_fleet

PROFILE = default_config().profiles[0]
DECLARING = sorted(
    plugin.name
    for plugin in Profile(PROFILE, in_tree_registry(), Handle(PodClasses())).cross_node
    if type(plugin).effect is not Plugin.effect
)


def test_all_cross_node_plugins_declare_effects():
    assert DECLARING == [
        "DynamicResources",
        "InterPodAffinity",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "VolumeBinding",
        "VolumeRestrictions",
    ]


@given(st.integers(0, 1 << 20), st.sampled_from(DECLARING))
@settings(max_examples=30)
def test_pods_with_equal_effects_affect_the_same_pods_if_one_fact_differs(seed, name):
    fleet = sample_fleet(seed, nodes=5, pods=6)

    found = check_effects(in_tree_subject(name, PROFILE), fleet)
    wrong = [each for each in found if each is not None]

    assert not wrong


@given(st.integers(0, 1 << 20))
def test_pods_with_claims_and_equal_effects_affect_the_same_pods(seed):
    _, storage, pods = random_fleet(seed)
    classes = PodClasses()
    profile = Profile(PROFILE, in_tree_registry(), Handle(classes, ClusterFacts(storage=storage)))
    pod_classes = [classes.pod_class(facts) for _, facts in pods]
    first = {}
    for placed in pod_classes:
        effects = profile.effects(placed)
        done = [[each.may_change(asked) for asked in pod_classes] for each in effects]
        assert first.setdefault(effects, done) == done, placed


@given(st.integers(0, 1 << 20))
@settings(max_examples=20)
def test_effects_do_not_depend_on_the_names_of_claims_of_devices(seed):
    _, storage, pods = random_fleet(seed)
    classes = PodClasses()
    profile = Profile(PROFILE, in_tree_registry(), Handle(classes, ClusterFacts(storage=storage)))
    for _, facts in pods:
        named = [
            replace(facts, device_claims=(PodClaim("c", each),), claims_as=PodReference(each, each))
            for each in ("a", "b")
        ]
        first, second = map(classes.pod_class, named)

        assert first is not second
        assert profile.effect_key(first) == profile.effect_key(second)
        assert profile.effects(first) == profile.effects(second)
