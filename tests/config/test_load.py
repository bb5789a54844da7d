"""Configurations from text to the types of the core, and the errors on the way."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from roadstead.config.errors import ConfigError, Problem
from roadstead.config.load import LoadedConfig
from roadstead.config.model import DEFAULT_SCHEDULER_NAME, PluginRef, default_config
from roadstead.config.plugin_args import (
    DEFAULT_ARGS,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ShapePoint,
    VolumeBindingArgs,
)

Load = Callable[..., LoadedConfig]


def args_profile(plugin: str, args: Any) -> dict[str, Any]:
    return {"pluginConfig": [{"name": plugin, "args": args}]}


def refusal(load: Load, *given: Any, **options: Any) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        load(*given, **options)
    return refused.value


def test_arguments_of_fit_are_plain_attributes(load_profile: Load) -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "nvidia.com/gpu", "weight": 3}, {"name": "cpu"}],
        "requestedToCapacityRatio": {"shape": shape},
    }
    given = {
        "ignoredResources": ["a.b/c"],
        "ignoredResourceGroups": ["x.y"],
        "scoringStrategy": strategy,
    }

    args = load_profile(args_profile("NodeResourcesFit", given)).config.profiles[0].args

    fit = args["NodeResourcesFit"]
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.ignored_resources == ("a.b/c",)
    assert fit.ignored_resource_groups == ("x.y",)
    assert fit.scoring_strategy.type == "RequestedToCapacityRatio"
    assert fit.scoring_strategy.resources == (
        ResourceSpec("nvidia.com/gpu", 3),
        ResourceSpec("cpu", 1),
    )
    ratio = fit.scoring_strategy.requested_to_capacity_ratio
    assert ratio is not None
    assert ratio.shape == (ShapePoint(0, 0), ShapePoint(100, 10))


@pytest.mark.parametrize(
    ("plugin", "given", "expected"),
    [
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "memory"}]},
            NodeResourcesBalancedAllocationArgs((ResourceSpec("memory"),)),
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
            InterPodAffinityArgs(0, True),
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": 7},
            DefaultPreemptionArgs(10, 7),
        ),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}, VolumeBindingArgs(0)),
        ("DynamicResources", {"filterTimeout": "1m"}, DynamicResourcesArgs(60.0)),
        (
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "minDomains": 2,
                        "matchLabelKeys": ["a"],
                    }
                ],
            },
            PodTopologySpreadArgs(
                (
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "minDomains": 2,
                        "matchLabelKeys": ["a"],
                    },
                ),
                "List",
            ),
        ),
        (
            "NodeAffinity",
            {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
            NodeAffinityArgs(
                {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": None}}
            ),
        ),
    ],
)
def test_typed_arguments_override_the_defaults(
    load_profile: Load, plugin: str, given: dict[str, Any], expected: object
) -> None:
    profile = load_profile(args_profile(plugin, given)).config.profiles[0]

    assert profile.args[plugin] == expected


def test_empty_arguments_of_every_in_tree_plugin_give_its_defaults(load_profile: Load) -> None:
    configs: list[dict[str, Any]] = [{"name": name, "args": None} for name in DEFAULT_ARGS]

    profile = load_profile({"pluginConfig": configs}).config.profiles[0]

    assert dict(profile.args) == dict(DEFAULT_ARGS)


def test_arguments_of_an_unknown_plugin_stay_as_written(load_profile: Load) -> None:
    configs = [
        {"name": "Mine", "args": {"b": [1, {"a": None}], "kind": "MineArgs"}},
        {"name": "Bare"},
        {"name": "Number", "args": 5},
    ]

    loaded = load_profile({"pluginConfig": configs})

    args = loaded.config.profiles[0].args
    assert args["Mine"] == {"b": [1, {"a": None}], "kind": "MineArgs"}
    assert args["Number"] == 5
    assert "Bare" not in args
    assert loaded.document["profiles"][0]["pluginConfig"][1] == {"name": "Bare", "args": None}


def test_an_extra_plugin_runs_at_every_point_that_it_names(load_profile: Load) -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "Mine", "weight": 4}]}}

    loaded = load_profile({"plugins": plugins}, extra_plugins={"Mine": ["filter", "score"]})

    profile = loaded.config.profile(DEFAULT_SCHEDULER_NAME)
    assert profile is not None
    assert profile.at("filter")[-1] == PluginRef("Mine")
    assert profile.at("score")[-1] == PluginRef("Mine", 4)
    assert loaded.config.profile("other") is None


@pytest.mark.parametrize("extra", [{"NodeName": ["filter"]}, {"Mine": ["filters"]}])
def test_an_extra_plugin_with_a_used_name_or_unknown_point_is_a_callers_error(
    load: Load, extra: dict[str, list[str]]
) -> None:
    with pytest.raises(ValueError, match="plugin"):
        load("", extra_plugins=extra)


def test_profiles_with_different_queue_sort_plugins_are_refused(load: Load) -> None:
    body = """
profiles:
- schedulerName: a
- schedulerName: b
  plugins:
    multiPoint: {disabled: [{name: PrioritySort}], enabled: [{name: Mine}]}
"""

    error = refusal(load, body, extra_plugins={"Mine": ["queueSort"]})

    assert error.stage == "build"
    assert error.errors == [
        "initializing profiles: different queue sort plugins for profile "
        '"b": "Mine", first: "PrioritySort"'
    ]


def test_profiles_with_different_queue_sort_arguments_are_refused(load: Load) -> None:
    body = """
profiles:
- schedulerName: a
  pluginConfig: [{name: PrioritySort, args: {x: 1}}]
- schedulerName: b
"""

    error = refusal(load, body)

    assert error.errors == [
        'initializing profiles: different queue sort plugin args for profile "b"'
    ]


def test_queue_sort_arguments_are_compared_when_the_plugin_is_listed(load: Load) -> None:
    listed = "plugins: {queueSort: {enabled: [{name: PrioritySort}]}}"
    body = f"""
profiles:
- schedulerName: a
  {listed}
  pluginConfig: [{{name: PrioritySort, args: {{x: 1}}}}]
- schedulerName: b
  {listed}
  pluginConfig: [{{name: PrioritySort, args: {{z: 2, x: 1}}}}]
"""

    error = refusal(load, body)

    assert error.errors == [
        'profiles[1].pluginConfig.args: Invalid value: {"x":1,"z":2}: '
        "queueSort must be the same for all profiles"
    ]


def test_ratio_without_its_function_is_refused_where_upstream_crashes(load_profile: Load) -> None:
    strategy = {"type": "RequestedToCapacityRatio"}

    error = refusal(load_profile, args_profile("NodeResourcesFit", {"scoringStrategy": strategy}))

    assert error.stage == "build"
    assert error.errors[0].startswith("PANIC")
    assert error.problems[0].field.endswith("scoringStrategy.requestedToCapacityRatio")
    assert "must be specified" in str(error)


def test_unknown_multi_point_plugin_is_refused_even_if_no_point_expands(load_profile: Load) -> None:
    star = [{"name": "*"}]
    points = ["preFilter", "filter", "postFilter", "reserve", "preScore", "score"]
    points += ["preBind", "postBind", "permit", "preEnqueue"]
    plugins: dict[str, Any] = {point: {"disabled": star} for point in points}
    plugins["bind"] = {"disabled": star, "enabled": [{"name": "DefaultBinder"}]}
    plugins["queueSort"] = {"disabled": star, "enabled": [{"name": "PrioritySort"}]}
    plugins["multiPoint"] = {"enabled": [{"name": "Nope"}]}

    error = refusal(load_profile, {"plugins": plugins})

    assert error.errors[0].startswith("PANIC")
    assert 'plugin "Nope" does not exist' in str(error)


def test_several_invalid_fit_arguments_are_reported_together(load_profile: Load) -> None:
    given = {
        "ignoredResources": ["ok", "-"],
        "scoringStrategy": {"resources": [{"name": "cpu", "weight": 101}]},
    }

    error = refusal(load_profile, args_profile("NodeResourcesFit", given))

    (text,) = error.errors
    assert '"NodeResourcesFit": [ignoredResources[1]: Invalid value: "-": name part' in text
    assert text.endswith(
        'scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", '
        '"MostAllocated", "RequestedToCapacityRatio", scoringStrategy.resources[0].weight: '
        "Invalid value: 101: resource weight of cpu not in valid range (0, 100]]"
    )


def test_invalid_fit_arguments_of_a_profile_without_fit_are_ignored(
    load_profile: Load,
) -> None:
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder")]
    plugins = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    profile = args_profile("NodeResourcesFit", {"scoringStrategy": {"type": "Wrong"}})

    loaded = load_profile({**profile, "plugins": plugins})

    assert dict(loaded.config.profiles[0].args) == {}


EXTENDER = """
extenders:
- urlPrefix: https://filter.example/
  filterVerb: filter
  bindVerb: bind
  weight: 2
  enableHTTPS: true
  nodeCacheCapable: true
  tlsConfig: {serverName: s, caData: c2VjcmV0, keyData: c2VjcmV0}
  managedResources: [{name: a.b/c, ignoredByScheduler: true}, {name: a.b/d}]
- urlPrefix: http://other.example/
  httpTimeout: 250ms
"""


def test_extenders_are_loaded_with_timeouts_and_hidden_keys(load: Load) -> None:
    loaded = load(EXTENDER)

    first, second = loaded.config.extenders
    assert first.http_timeout_s == 5.0
    assert second.http_timeout_s == 0.25
    assert first.tls is not None
    assert first.tls.ca_data == "c2VjcmV0"
    assert "c2VjcmV0" not in repr(first)
    assert first.managed_resources == ("a.b/c", "a.b/d")
    assert second.tls is None
    assert loaded.document["extenders"][1] == {
        "urlPrefix": "http://other.example/",
        "httpTimeout": "250ms",
    }


def test_resources_managed_by_extenders_replace_those_that_fit_ignores(load: Load) -> None:
    profiles = """
profiles:
- pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [x.y/z]}}]
"""

    fit = load(EXTENDER + profiles).config.profiles[0].args["NodeResourcesFit"]

    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.ignored_resources == ("a.b/c",)


def test_extenders_that_manage_no_resources_leave_fit_unchanged(load: Load) -> None:
    loaded = load("extenders: [{urlPrefix: 'http://a.example'}]")

    assert loaded.config.profiles == default_config().profiles


def test_resources_managed_by_extenders_need_fit_in_every_profile(load: Load) -> None:
    profiles = """
profiles:
- plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}]
"""

    error = refusal(load, EXTENDER + profiles)

    assert error.errors == [
        "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
    ]


def test_an_extender_with_a_root_certificate_can_not_be_insecure(load: Load) -> None:
    error = refusal(load, EXTENDER.replace("serverName: s", "insecure: true"))

    assert error.stage == "build"
    assert error.problems[0].field == "extenders[0].tlsConfig"


@pytest.mark.parametrize("data", ["c2Vj*mV0", "c2VjcmV", "ä"])
def test_a_key_that_is_not_base64_is_refused(load: Load, data: str) -> None:
    error = refusal(load, EXTENDER.replace("keyData: c2VjcmV0", f"keyData: '{data}'"))

    assert error.stage == "decode"
    assert error.problems[0].field == "extenders[0].tlsConfig.keyData"
    assert error.problems[0].rule == "is not base64"
    assert data not in str(error)


def test_a_refusal_keeps_all_problems_when_it_is_sent_to_another_process(load: Load) -> None:
    error = refusal(load, "parallelism: 0\npercentageOfNodesToScore: 101\n")

    copy = pickle.loads(pickle.dumps(error))

    assert copy.errors == error.errors
    assert (copy.stage, copy.source) == ("validate", "scheduler.yaml")
    assert str(copy) == str(error)


def test_one_problem_is_one_line_and_many_are_listed_and_cut() -> None:
    one = ConfigError("validate", [Problem("a", "is wrong", "Invalid value", "1")], source="f")
    many = ConfigError("validate", [Problem(f"a{i}", "is wrong") for i in range(25)])

    assert str(one) == "f: a: 1: is wrong"
    assert str(many).startswith("25 problems in the configuration:\n  a0: is wrong\n")
    assert str(many).endswith("and 5 more")


def test_configuration_is_frozen_and_cheap_to_compare() -> None:
    config = default_config()

    with pytest.raises(dataclasses.FrozenInstanceError):
        config.percentage_of_nodes_to_score = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        config.profiles[0].plugins["score"] = ()  # type: ignore[index]


def test_coscheduling_at_permit_needs_reserve(load_profile: Load) -> None:
    enabled = {"enabled": [{"name": "Coscheduling"}]}

    error = refusal(load_profile, {"plugins": {"permit": enabled}})

    assert [each.field for each in error.problems] == ["profiles[0].plugins.permit"]
    assert "needs reserve" in str(error)
    load_profile({"plugins": {"permit": enabled, "reserve": enabled}})
