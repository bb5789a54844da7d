from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.config.intree import IN_TREE_POINTS, OPTIONAL_POINTS
from roadstead.config.load import load_config
from roadstead.config.model import default_config
from roadstead.config.plugin_args import DEFAULT_ARGS, NodeAffinityArgs, NodeResourcesFitArgs
from roadstead.framework.plugin import EXTENSION_POINTS, FilterPlugin, Handle, Reads, ScorePlugin
from roadstead.framework.profile import Profile
from roadstead.framework.registry import extension_points
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from tests.builders import (
    ROW_PLUGINS,
    evaluated,
    filter_with,
    pod,
    profile_of,
    put,
    score_with,
    state_for,
)
from tests.plugins.worlds import both
from tests.strategies import clusters, pods, small_pods

HANDLE = Handle(PodClasses())
POINTS = {**IN_TREE_POINTS, **OPTIONAL_POINTS}
NAMES = sorted(POINTS)
ROW_PLUGIN_NAMES = sorted(
    {
        each if isinstance(each, str) else each[0]
        for point, plugins in ROW_PLUGINS.items()
        if point != "postFilter"
        for each in plugins
    }
)


def built(name, args=None):
    return in_tree_registry().build(name, args, HANDLE)


def test_the_registry_has_every_plugin_of_configurations():
    differing = set(in_tree_registry().factories) ^ set(POINTS)

    assert not differing, "in config/intree.py or in roadstead/plugins/in_tree.py, not in both"


@pytest.mark.parametrize("name", NAMES)
def test_a_plugin_has_its_name_and_its_extension_points(name):
    plugin = built(name)

    assert plugin.name == name
    assert extension_points(plugin) >= POINTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_in_tree_plugin_can_sign_every_pod(name):
    assert built(name).sign(pod()) is not None


@pytest.mark.parametrize("name", NAMES)
def test_default_arguments_are_those_of_the_configuration(name):
    if name in DEFAULT_ARGS:
        assert type(built(name, DEFAULT_ARGS[name])) is type(built(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_configuration_reads_the_arguments_of_each_plugin(name):
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{pluginConfig: [{{name: {name}, args: {{}}}}]}}]"
    )
    args = load_config(text, source="test").config.profiles[0].args[name]

    try:
        plugin = built(name, args)
    except AssertionError:
        pytest.fail(
            f"{type(args).__name__}: add {name} to _ALL_ARGS_MODELS in config/load.py, "
            "and the model of its arguments to _CONVERTERS in config/convert.py"
        )
    assert plugin.name == name


def test_the_arguments_of_another_plugin_are_refused():
    with pytest.raises(AssertionError, match="arguments of another plugin"):
        built("NodeAffinity", NodeResourcesFitArgs())
    with pytest.raises(AssertionError, match="arguments of another plugin"):
        built("InterPodAffinity", NodeAffinityArgs())


def test_the_default_configuration_builds():
    profile = Profile(default_config().profiles[0], in_tree_registry(), HANDLE)

    assert profile.scheduler_name == "default-scheduler"
    assert set(EXTENSION_POINTS) == set(default_config().profiles[0].plugins)


LOOKED_AT = (
    "requests",
    "nonzero_cpu_milli",
    "nonzero_memory_bytes",
    "container_requests",
    "node_selector",
    "required_node_terms",
    "preferred_node_terms",
    "tolerations",
    "host_ports",
    "images",
    "container_count",
    "node_name",
    "priority",
)


@st.composite
def pods_with_equal_signatures(draw, plugin):
    """Draw two pods with equal signatures: one is changed wherever the signature stays equal."""
    one, other = draw(pods), draw(pods)
    mixed = one
    for field in LOOKED_AT:
        candidate = replace(mixed, **{field: getattr(other, field)})
        if plugin.sign(candidate) == plugin.sign(one):
            mixed = candidate
    return one, replace(mixed, namespace="elsewhere", labels=(("changed", "yes"),))


@pytest.mark.parametrize("name", ROW_PLUGIN_NAMES)
@settings(max_examples=30)
@given(cluster=clusters, data=st.data())
def test_pods_with_equal_signatures_of_a_plugin_get_equal_answers(name, cluster, data):
    plugin = built(name)
    one, other = data.draw(pods_with_equal_signatures(plugin))
    table, _ = both(cluster)

    assert plugin.sign(one) == plugin.sign(other)
    if isinstance(plugin, FilterPlugin):
        assert filter_with(plugin, one, table) == filter_with(plugin, other, table)
    if isinstance(plugin, ScorePlugin):
        assert score_with(plugin, one, table) == score_with(plugin, other, table)


@given(clusters, pods, pods)
def test_pods_with_equal_signatures_get_equal_answers_from_a_whole_profile(cluster, one, other):
    table, _ = both(cluster)
    profile = profile_of(ROW_PLUGINS, classes=table.classes)
    other = replace(one, labels=other.labels, namespace="elsewhere", is_terminating=True)
    pod_classes = [table.classes.pod_class(facts) for facts in (one, other)]
    assert profile.signature_of(pod_classes[0], "1") == profile.signature_of(pod_classes[1], "2")

    answers = [evaluated(profile, facts, table) for facts in (one, other)]

    assert answers[0].pre_filter == answers[1].pre_filter
    if answers[0].pre_filter.status.is_success:
        assert answers[0].codes.tolist() == answers[1].codes.tolist()
        assert answers[0].statuses == answers[1].statuses
        assert [raw is None or raw.tolist() for raw in answers[0].raw] == [
            raw is None or raw.tolist() for raw in answers[1].raw
        ]


@settings(max_examples=150)
@given(
    name=st.sampled_from(ROW_PLUGIN_NAMES),
    cluster=clusters.filter(bool),
    wanted=pods,
    come=st.lists(small_pods, max_size=4),
)
def test_a_plugin_reads_no_more_than_it_declares(name, cluster, wanted, come):
    plugin = built(name)
    table, _ = both(cluster)
    target = table.names[0]
    others = slice(1, None)

    def answers(where):
        filtered = filter_with(plugin, wanted, table) if isinstance(plugin, FilterPlugin) else []
        scored = score_with(plugin, wanted, table) if isinstance(plugin, ScorePlugin) else None
        return filtered[where], scored and scored[where]

    where = slice(None) if plugin.reads is Reads.NODE else others
    before = answers(where)
    put(table, target, *come)

    assert answers(where) == before


@given(name=st.sampled_from(ROW_PLUGIN_NAMES), cluster=clusters, wanted=pods)
def test_scores_are_64_bit_integers_and_filter_codes_32_bit_integers(name, cluster, wanted):
    plugin = built(name)
    table, _ = both(cluster)
    pod_class = table.classes.pod_class(wanted)
    state = state_for(plugin, table, wanted)

    if isinstance(plugin, ScorePlugin) and state is not None:
        raw = plugin.score(state, pod_class, table)
        assert (raw.dtype, raw.shape) == (np.int64, (len(table),))
    if isinstance(plugin, FilterPlugin):
        result = plugin.filter(state, pod_class, table)
        if result.codes is not None:
            assert (result.codes.dtype, result.codes.shape) == (np.int32, (len(table),))
            assert set(result.codes.tolist()) <= set(range(len(result.statuses) + 1))
