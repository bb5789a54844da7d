"""Filter and Score of plugins whose PreFilter or PreScore is not enabled: upstream's messages."""

import json

import pytest

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.framework.evaluation import PASSED
from roadstead.nodes.pod_class import PodClasses
from roadstead.protocol.status import SUCCESS, Code
from tests.actors.world import inputs_of, plan_of, pods_of
from tests.builders import evaluated, named, node, pod, prefer, profile_of, table_of

FILTER_ERRORS = {
    "DynamicResources": "not found",
    "InterPodAffinity": 'error reading "PreFilterInterPodAffinity" from cycleState: not found',
    "NodePorts": 'reading "PreFilterNodePorts" from cycleState: not found',
    "NodeResourcesFit": 'error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    "PodTopologySpread": 'reading "PreFilterPodTopologySpread" from cycleState: not found',
    "ServiceAffinity": 'error reading "PreFilterServiceAffinity" from cycleState: not found',
    "VolumeBinding": "not found",
    "VolumeRestrictions": 'cannot read "PreFilterVolumeRestrictions" from cycleState',
}
SCORE_ERRORS = {
    "InterPodAffinity": 'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
    "PodTopologySpread": 'error reading "PreScorePodTopologySpread" from cycleState: not found',
    "TaintToleration": 'failed to read "PreScoreTaintToleration" from cycleState: not found',
}


def found_with(points, facts=None):
    """Evaluate a class of pods over two nodes, the second of which has no CPU."""
    classes = PodClasses()
    table = table_of(node("n1"), node("n2", cpu=0), classes=classes)
    return evaluated(profile_of(points, classes=classes), facts or pod(), table)


@pytest.mark.parametrize("plugin", FILTER_ERRORS)
def test_a_filter_without_its_pre_filter_fails_for_every_node(plugin):
    found = found_with({"filter": [plugin]})

    (status,) = found.statuses
    assert status.code is Code.ERROR
    assert status.plugin == plugin
    assert status.reasons == (f'running "{plugin}" filter plugin: {FILTER_ERRORS[plugin]}',)
    assert not found.feasible.any()


@pytest.mark.parametrize("plugin", FILTER_ERRORS)
def test_a_filter_with_its_pre_filter_does_not_fail(plugin):
    found = found_with({"preFilter": [plugin], "filter": [plugin]})

    assert all(status.code is not Code.ERROR for status in found.statuses)
    assert found.codes[0] == PASSED


def test_earlier_filters_set_the_status_first():
    points = {"filter": ["NodeName", "PodTopologySpread"]}

    found = found_with(points, pod(node_name="n3"))

    assert [status.plugin for status in found.statuses] == ["NodeName"]


def test_pods_are_one_class_for_a_filter_that_fails_for_all():
    profile, classes = profile_of({"filter": ["NodePorts"]}), PodClasses()
    one, other = classes.pod_class(pod()), classes.pod_class(pod(labels={"app": "web"}))

    assert profile.signature_of(one, "a") == profile.signature_of(other, "b")


@pytest.mark.parametrize("plugin", SCORE_ERRORS)
def test_a_score_without_its_pre_score_fails(plugin):
    found = found_with({"score": [plugin]})

    text = f'running Score plugins: plugin "{plugin}" failed with: {SCORE_ERRORS[plugin]}'
    assert (found.pre_score.code, found.pre_score.reasons) == (Code.ERROR, (text,))


def test_scores_without_pre_score_equal_those_with_it():
    facts = pod(preferred_node_terms=(prefer(7, named("n2")),))

    alone = found_with({"score": ["NodeAffinity"]}, facts)
    both = found_with({"preScore": ["NodeAffinity"], "score": ["NodeAffinity"]}, facts)

    assert alone.pre_score == SUCCESS
    assert alone.raw[0].tolist() == both.raw[0].tolist() == [0, 7]


def run_without(point, plugin, **settings):
    """Return the message of the only pod of a run in which a plugin is not enabled at a point."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {point: {"disabled": [{"name": plugin}]}}}],
    }
    inputs = inputs_of([node("n1"), node("n2")], pods_of("p"))
    plan = plan_of(config=json.dumps(config), **settings)
    (pending,) = ActorLauncher().run(inputs, plan, lambda progress: None).pending
    return pending.message


@pytest.mark.parametrize("settings", [{}, {"workers": 2}])
@pytest.mark.parametrize("plugin", ["PodTopologySpread", "NodeResourcesFit"])
def test_a_run_continues_and_its_pending_pods_name_the_input_that_filter_lacks(plugin, settings):
    text = f'running "{plugin}" filter plugin: {FILTER_ERRORS[plugin]}'
    assert run_without("preFilter", plugin, **settings) == text


@pytest.mark.parametrize("settings", [{}, {"workers": 2}])
def test_a_run_continues_and_its_pending_pods_name_the_input_that_score_lacks(settings):
    message = run_without("preScore", "TaintToleration", **settings)

    assert message.endswith(SCORE_ERRORS["TaintToleration"])
