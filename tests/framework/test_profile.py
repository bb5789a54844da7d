from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.config.plugin_args import NodeAffinityArgs
from roadstead.facts.pod import HostPort
from roadstead.framework.plugin import (
    ALL_PASS,
    Effect,
    FilterPlugin,
    Handle,
    PermitPlugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    Reads,
    ScorePlugin,
)
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.profile import Profile, WeightedScore, any_may_change
from roadstead.framework.registry import Registry
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.plugins.node_affinity import NodeAffinity
from roadstead.plugins.taint_toleration import TaintToleration
from roadstead.plugins.volume_binding import VolumeBinding
from roadstead.protocol.errors import InputError
from roadstead.protocol.status import SUCCESS, unresolvable, unschedulable
from tests.builders import GPU, ROW_PLUGINS, config_of, named, pod, prefer, profile_of, tolerate
from tests.strategies import pods


class Hold(PreEnqueuePlugin):
    name = "Hold"
    reads = Reads.NODE

    def pre_enqueue(self, pod):
        return unresolvable("held") if ("hold", "yes") in pod.labels else SUCCESS


class OnLabels(FilterPlugin):
    name = "OnLabels"
    reads = Reads.ROW

    def filter(self, state, pod, table):
        return ALL_PASS

    def sign(self, pod):
        return pod.labels


class Inscrutable(ScorePlugin):
    name = "Inscrutable"
    reads = Reads.NODE

    def score(self, state, pod, table):
        return np.zeros(len(table), dtype=np.int64)


class WatchesLabels(OnLabels):
    name = "WatchesLabels"
    reads = Reads.CLUSTER

    def effect(self, placed):
        labels = placed.facts.labels
        return Effect(labels, lambda pod: bool(labels) and pod.facts.labels == labels)


class Nominates(PostFilterPlugin):
    name = "Nominates"

    def post_filter(self, pod, failed):
        return PostFilterResult(unschedulable("none"))


def default_profile():
    return Profile(default_config().profiles[0], in_tree_registry(), Handle(PodClasses()))


def names(plugins):
    return [plugin.name for plugin in plugins]


def test_plugins_are_in_the_order_of_the_configuration():
    profile = profile_of({"filter": ["NodePorts", "NodeName", "TaintToleration"]})

    assert names(profile.filter) == ["NodePorts", "NodeName", "TaintToleration"]


def test_the_default_profile_has_upstreams_order_and_weights():
    profile = default_profile()

    assert names(profile.filter)[:6] == [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
    ]
    assert {each.plugin.name: each.weight for each in profile.score} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert names(profile.post_filter) == ["DynamicResources", "DefaultPreemption"]
    assert names(profile.pre_enqueue) == [
        "SchedulingGates",
        "DynamicResources",
        "DefaultPreemption",
    ]
    assert profile.queue_sort.name == "PrioritySort"
    assert names(profile.bind) == ["DefaultBinder"]
    assert (
        names(profile.reserve) == names(profile.pre_bind) == ["VolumeBinding", "DynamicResources"]
    )
    assert profile.permit == profile.post_bind == ()


def test_scores_have_the_weights_of_the_configuration():
    profile = profile_of({"score": [("ImageLocality", 5), ("TaintToleration", 7)]})

    assert [(each.plugin.name, each.weight) for each in profile.score] == [
        ("ImageLocality", 5),
        ("TaintToleration", 7),
    ]
    assert profile.score[0] == WeightedScore(profile.score[0].plugin, 5)


def test_a_plugin_is_one_instance_at_all_its_extension_points():
    profile = profile_of(
        {
            "preFilter": ["NodeAffinity"],
            "filter": ["NodeAffinity"],
            "preScore": ["NodeAffinity"],
            "score": ["NodeAffinity"],
        }
    )

    plugin = profile.filter[0]
    assert isinstance(plugin, NodeAffinity)
    assert profile.pre_filter[0] is profile.pre_score[0] is profile.score[0].plugin is plugin


def test_arguments_are_passed_to_their_plugin_and_others_get_defaults():
    seen = {}

    def factory(name):
        def build(args, handle):
            seen[name] = (args, handle)
            plugin = OnLabels()
            plugin.name = name
            return plugin

        return build

    registry = Registry({"One": factory("One"), "Two": factory("Two")}).merged(
        {"PrioritySort": in_tree_registry().factories["PrioritySort"]}
    )
    handle = Handle(PodClasses())
    args = NodeAffinityArgs()

    Profile(config_of({"filter": ["One", "Two"]}, {"One": args}), registry, handle)

    assert seen == {"One": (args, handle), "Two": (None, handle)}


def test_a_plugin_that_does_not_implement_the_extension_point_is_refused():
    with pytest.raises(InputError, match='plugin: "NodeName" does not implement score'):
        profile_of({"score": ["NodeName"]})


def test_a_plugin_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match='plugin: "Nope" does not exist'):
        profile_of({"filter": ["Nope"]})


def test_the_first_gate_that_holds_a_pod_names_its_plugin():
    profile = profile_of({"preEnqueue": ["SchedulingGates", "Hold"]}, plugins=[Hold])
    held = pod(labels={"hold": "yes"})

    assert profile.run_pre_enqueue(pod()) is SUCCESS
    assert profile.run_pre_enqueue(held) == replace(unresolvable("held"), plugin="Hold")
    both = profile.run_pre_enqueue(replace(held, scheduling_gates=("wait",)))
    assert both == replace(
        unresolvable("waiting for scheduling gates: [wait]"), plugin="SchedulingGates"
    )


def keys_of(profile):
    """Return a function (facts, UID) → key of the pod's class."""
    classes = PodClasses()
    return lambda facts, uid: profile.signature_of(classes.pod_class(facts), uid)


def test_signatures_are_equal_for_pods_that_no_plugin_distinguishes():
    key = keys_of(profile_of(ROW_PLUGINS))
    pods_alike = [
        pod(cpu=100),
        pod(cpu=100, scheduling_gates=("done",)),
        pod(cpu=100, is_terminating=True),
        pod(cpu=100, labels={"app": "web"}, namespace="team"),
    ]

    assert len({key(each, f"uid-{i}") for i, each in enumerate(pods_alike)}) == 1


@pytest.mark.parametrize(
    "facts",
    [
        {"requests": (("cpu", 200),)},
        {"nonzero_cpu_milli": 200},
        {"container_requests": (("cpu", 300),)},
        {"node_selector": (("disk", "ssd"),)},
        {"required_node_terms": (named("n1"),)},
        {"preferred_node_terms": (prefer(1, named("n1")),)},
        {"tolerations": (tolerate("gpu"),)},
        {"host_ports": (HostPort("0.0.0.0", "TCP", 80),)},
        {"images": ("nginx:latest",)},
        {"container_count": 2},
        {"node_name": "n1"},
        {"nominated_node_name": "n1"},
        {"priority": 10},
        {"preemption_policy": "Never"},
    ],
)
def test_signatures_differ_for_pods_that_some_plugin_distinguishes(facts):
    key = keys_of(profile_of(ROW_PLUGINS))
    plain = pod(cpu=100)

    assert key(plain, "1") != key(replace(plain, **facts), "1")


def test_post_filter_plugins_sign_too():
    low, high = pod(), pod(preemption_policy="Never")
    points = {"filter": ["NodeResourcesFit"]}
    without = keys_of(profile_of(points))
    with_victims = keys_of(profile_of(points | {"postFilter": ["DefaultPreemption"]}))
    inscrutable = keys_of(profile_of(points | {"postFilter": ["Nominates"]}, plugins=[Nominates]))

    assert without(low, "1") == without(high, "2")
    assert with_victims(low, "1") != with_victims(high, "2")
    assert inscrutable(low, "1") != inscrutable(low, "2")


def test_a_plugin_that_can_not_sign_makes_each_pod_a_class_of_its_own():
    key = keys_of(profile_of({"score": ["Inscrutable"]}, plugins=[Inscrutable]))

    assert key(pod(), "1") != key(pod(), "2")
    assert key(pod(), "1") == key(pod(), "1")


def test_a_pod_without_signature_changes_its_class_when_nominated_or_updated():
    profile, classes = profile_of({"score": ["Inscrutable"]}, plugins=[Inscrutable]), PodClasses()
    before = profile.signature_of(classes.pod_class(pod()), "1")

    assert profile.signature_of(classes.pod_class(pod()), "1") == before
    for later in (pod(nominated_node_name="n1"), pod(cpu=5), pod(labels={"app": "x"})):
        assert profile.signature_of(classes.pod_class(later), "1") != before


def test_signatures_of_two_profiles_are_never_equal():
    registry, handle = in_tree_registry(), Handle(PodClasses())
    profiles = [Profile(config_of({}, None, name), registry, handle) for name in ("one", "two")]

    assert keys_of(profiles[0])(pod(), "1") != keys_of(profiles[1])(pod(), "1")


@given(pods, pods)
def test_signatures_are_stable_and_hashable(one, other):
    key = keys_of(profile_of(ROW_PLUGINS))

    assert key(one, "1") == key(replace(one), "2")
    assert hash(key(other, "1")) == hash(key(replace(other), "2"))


def test_each_group_of_plugins_is_computed_once():
    profile = profile_of(
        {"filter": ["OnLabels", "WatchesLabels"], "score": ["ImageLocality"]},
        plugins=[OnLabels, WatchesLabels],
    )

    assert names(profile.preparing_score) == ["ImageLocality"]
    assert names(profile.cross_node) == ["WatchesLabels"]


def test_a_placement_matters_on_other_nodes_if_a_cross_node_plugin_reports_it():
    profile = profile_of(
        {"filter": ["OnLabels", "WatchesLabels"]}, plugins=[OnLabels, WatchesLabels]
    )
    classes = PodClasses()
    plain, web, job = (
        classes.pod_class(pod(labels=labels)) for labels in ({}, {"app": "web"}, {"app": "job"})
    )

    assert any_may_change(profile.effects(web), web)
    assert not any_may_change(profile.effects(job), web)
    assert not any_may_change(profile.effects(plain), plain)


def test_with_row_plugins_no_placement_matters_on_other_nodes():
    pod_class = PodClasses().pod_class(pod(others={GPU: 1}))

    assert profile_of({"filter": ["NodeResourcesFit"]}).effects(pod_class) == ()


@given(st.permutations(["NodeName", "NodePorts", "NodeUnschedulable", "TaintToleration"]))
def test_any_order_of_the_configuration_is_kept(order):
    assert names(profile_of({"filter": order}).filter) == order


def test_priority_distinguishes_pods_since_nominated_pods_depend_on_it():
    key = keys_of(profile_of({"filter": ["NodeResourcesFit"]}))

    assert key(pod(), "1") != key(pod(priority=1), "2")


def test_nominated_pods_share_a_class_only_with_equal_ones():
    key = keys_of(profile_of({"filter": ["NodeResourcesFit"]}))
    one, other = pod(labels={"a": "b"}), pod()

    assert key(one, "1") == key(other, "2")
    nominated = [replace(each, nominated_node_name="n1") for each in (one, other)]
    assert key(nominated[0], "1") != key(nominated[1], "2")
    assert key(nominated[0], "1") == key(nominated[0], "3")


def signs_of(profile, facts):
    """Return the inputs of a profile's answers, as signed by each plugin."""
    scoring = (each.plugin for each in profile.score)
    filtering = *profile.pre_filter, *profile.filter
    plugins = dict.fromkeys((*filtering, *profile.pre_score, *scoring, *profile.post_filter))
    nominated = facts if facts.nominated_node_name else None
    return facts.priority, nominated, *(plugin.sign(facts) for plugin in plugins)


@given(pods, pods, st.integers(2, 5))
def test_classes_with_equal_signatures_have_one_key(one, other, times):
    profile, classes = profile_of(ROW_PLUGINS), PodClasses()
    more = replace(one, requests=tuple((name, n * times) for name, n in one.requests))
    facts = (one, other, more, replace(other, nominated_node_name="n1"))

    keys = [profile.signature_of(classes.pod_class(each), "u") for each in facts]

    signatures = [signs_of(profile, each) for each in facts]
    for this, its_signature in zip(keys, signatures, strict=True):
        for that, other_signature in zip(keys, signatures, strict=True):
            assert (this == that) == (its_signature == other_signature)


class MyTaints(TaintToleration):
    name = "MyTaints"


def test_classes_of_one_shape_share_results_if_each_plugin_declares_it():
    pod_class = PodClasses().pod_class
    own = profile_of({"filter": ["NodeName", "MyTaints"]}, plugins=[MyTaints])

    assert profile_of(ROW_PLUGINS).has_shape(pod_class(pod()))
    assert not profile_of(ROW_PLUGINS).has_shape(pod_class(pod(nominated_node_name="n1")))
    assert not own.has_shape(pod_class(pod()))
    classes = PodClasses()
    one, more = classes.pod_class(pod(cpu=1)), classes.pod_class(pod(cpu=2))
    assert own.shape_or_class(one) != own.shape_or_class(more)
    assert profile_of(ROW_PLUGINS).shape_or_class(one) == one.shape == more.shape


BINDS = {"reserve": ["VolumeBinding"], "preBind": ["VolumeBinding"], "bind": ["DefaultBinder"]}


class Reserving(VolumeBinding):
    name = "Reserving"

    def reserve(self, pod, facts, node_name):
        return unschedulable("not here")


class Waiting(PermitPlugin):
    name = "Waiting"

    def permit(self, pod, facts, node_name):
        return SUCCESS, 0.0


def binding(plugins=(), **points):
    factories = {
        kind.name: lambda args, handle, kind=kind: (
            kind(handle) if issubclass(kind, VolumeBinding) else kind()
        )
        for kind in plugins
    }
    handle = Handle(PodClasses())
    return Profile(config_of(points), in_tree_registry().merged(factories), handle)


def test_a_profile_of_plugins_that_always_succeed_binds_without_them():
    assert binding(**BINDS).binds_without_plugins
    assert all(
        Profile(each, in_tree_registry(), Handle(PodClasses())).binds_without_plugins
        for each in default_config().profiles
    )


def test_a_plugin_with_its_own_reserve_is_called_despite_the_declaration_of_its_base():
    points = BINDS | {"reserve": ["Reserving"]}

    assert not binding((Reserving,), **points).binds_without_plugins


def test_permit_plugins_and_a_missing_bind_need_calls_of_plugins():
    assert not binding((Waiting,), **BINDS, permit=["Waiting"]).binds_without_plugins
    assert not binding(**BINDS | {"bind": []}).binds_without_plugins


def test_a_bounded_profile_calls_its_bounds_first_and_keeps_its_keys():
    class Bounds(OnLabels):
        name = "Bounds"
        reads = Reads.NODE
        turn = 0

        def state_version(self, pod):
            return self.turn

    profile, bounds = profile_of({"filter": ["NodeName"]}), Bounds()
    pod_class = PodClasses().pod_class(pod())
    key = profile.signature_of(pod_class, "u")
    assert profile.state_version(pod_class) is None

    bounded = profile.with_filter(bounds)

    assert bounded.filter == (bounds, *profile.filter)
    assert bounded.post_filter == ()
    assert bounded.signature_of(pod_class, "u") == key
    before = bounded.state_version(pod_class)
    bounds.turn = 1
    assert bounded.state_version(pod_class) != before
    assert profile.state_version(pod_class) is None
