"""KubeSchedulerConfiguration v1beta2 and v1beta3: their differences from v1."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from roadstead.config.errors import ConfigError
from roadstead.config.load import LoadedConfig, load_config
from roadstead.config.model import default_config
from roadstead.config.plugin_args import (
    InterPodAffinityArgs,
    NodeLabelArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
)

GROUP = "kubescheduler.config.k8s.io"


def load(version: str, **fields: Any) -> LoadedConfig:
    head = {"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration"}
    return load_config(yaml.safe_dump({**head, **fields}), source="older.yaml")


def beta2(*configs: dict[str, Any], **sets: Any) -> LoadedConfig:
    return load("v1beta2", profiles=[{"plugins": sets, "pluginConfig": list(configs)}])


def beta3(*configs: dict[str, Any], **sets: Any) -> LoadedConfig:
    return load("v1beta3", profiles=[{"plugins": sets, "pluginConfig": list(configs)}])


def problems(call: Any, *args: Any, **fields: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        call(*args, **fields)
    return [problem.short_text for problem in caught.value.problems]


def on(*plugins: Any) -> dict[str, Any]:
    return {"enabled": [named(each) for each in plugins]}


def off(*names: str) -> dict[str, Any]:
    return {"disabled": [{"name": name} for name in names]}


def named(plugin: Any) -> dict[str, Any]:
    name, weight = plugin if isinstance(plugin, tuple) else (plugin, None)
    return {"name": name} | ({} if weight is None else {"weight": weight})


def at(loaded: LoadedConfig, point: str) -> list[str]:
    return [ref.name for ref in loaded.config.profiles[0].at(point)]


def weights(loaded: LoadedConfig) -> dict[str, int]:
    return {ref.name: ref.weight for ref in loaded.config.profiles[0].at("score")}


def notes_of(loaded: LoadedConfig, field: str) -> list[str]:
    return [note.text for note in loaded.notes if note.field == field]


def fit(loaded: LoadedConfig) -> NodeResourcesFitArgs:
    args = loaded.config.profiles[0].args["NodeResourcesFit"]
    assert isinstance(args, NodeResourcesFitArgs)
    return args


class TestBeta2:
    def test_the_defaults_are_those_of_v1beta2(self) -> None:
        loaded = load("v1beta2")

        assert weights(loaded) == {
            "NodeResourcesBalancedAllocation": 1,
            "ImageLocality": 1,
            "InterPodAffinity": 1,
            "NodeResourcesFit": 1,
            "NodeAffinity": 1,
            "PodTopologySpread": 2,
            "TaintToleration": 1,
        }
        assert at(loaded, "filter") == [
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
        ]
        assert at(loaded, "preEnqueue") == ["SchedulingGates", "DefaultPreemption"]
        assert at(loaded, "reserve") == at(loaded, "preBind") == ["VolumeBinding"]
        assert [at(loaded, point) for point in ("queueSort", "bind", "postFilter")] == [
            ["PrioritySort"],
            ["DefaultBinder"],
            ["DefaultPreemption"],
        ]
        assert "DynamicResources" not in str(loaded.effective())
        assert fit(loaded) == NodeResourcesFitArgs()

    def test_extension_points_that_plugins_gained_are_added_with_a_note(self) -> None:
        loaded = load("v1beta2")

        assert at(loaded, "preScore")[-2:] == [
            "NodeResourcesFit",
            "NodeResourcesBalancedAllocation",
        ]
        assert at(loaded, "preFilter")[-1] == "NodeVolumeLimits"
        where = "profiles[0].plugins.preFilter"
        assert notes_of(loaded, where) == [
            "NodeVolumeLimits is added: v1 runs it at this point, too"
        ]

    def test_gained_extension_points_are_not_added_to_a_disabled_plugin(self) -> None:
        loaded = beta2(
            filter=off("NodeVolumeLimits"), score=off("*"), postFilter=off("DefaultPreemption")
        )

        assert "NodeVolumeLimits" not in at(loaded, "preFilter")
        assert "NodeResourcesFit" not in at(loaded, "preScore")
        assert at(loaded, "preEnqueue") == ["SchedulingGates"]

    def test_a_default_plugin_is_overridden_in_its_place(self) -> None:
        loaded = beta2(
            score={**on(("NodeAffinity", 5), ("SelectorSpread", 2)), **off("ImageLocality")}
        )
        assert list(weights(loaded).items())[:4] == [
            ("NodeResourcesBalancedAllocation", 1),
            ("InterPodAffinity", 1),
            ("NodeResourcesFit", 1),
            ("NodeAffinity", 5),
        ]
        assert weights(loaded)["SelectorSpread"] == 2

    def test_all_defaults_can_be_disabled(self) -> None:
        loaded = beta2(filter={**on("NodeName"), **off("*")})

        assert at(loaded, "filter") == ["NodeName"]

    def test_fields_that_v1_dropped_are_dropped_with_a_note(self) -> None:
        loaded = load("v1beta2", healthzBindAddress="0.0.0.0:10251", metricsBindAddress=":10251")

        assert loaded.config.profiles == load("v1beta2").config.profiles
        for name in ("healthzBindAddress", "metricsBindAddress"):
            assert notes_of(loaded, name)[0].startswith("dropped: v1 has no such field")

    def test_all_other_fields_are_kept(self) -> None:
        loaded = load(
            "v1beta2",
            parallelism=3,
            podMaxBackoffSeconds=99,
            percentageOfNodesToScore=40,
            extenders=[{"urlPrefix": "http://x", "httpTimeout": "3s"}],
            profiles=[{"schedulerName": "mine"}, {"schedulerName": "yours"}],
        )

        assert loaded.document["parallelism"] == 3
        assert loaded.config.pod_max_backoff_s == 99
        assert loaded.config.percentage_of_nodes_to_score == 40
        assert loaded.config.extenders[0].http_timeout_s == 3.0
        assert [each.scheduler_name for each in loaded.config.profiles] == ["mine", "yours"]

    @pytest.mark.parametrize(
        ("name", "strategy"),
        [
            ("NodeResourcesLeastAllocated", "LeastAllocated"),
            ("NodeResourcesMostAllocated", "MostAllocated"),
        ],
    )
    def test_resource_scorers_are_strategies_of_the_fit_plugin(
        self, name: str, strategy: Any
    ) -> None:
        version = f"{GROUP}/v1beta2"
        resources = [{"name": "cpu", "weight": 3}]
        args = {"apiVersion": version, "kind": f"{name}Args", "resources": resources}
        loaded = beta2({"name": name, "args": args}, score=on((name, 4)))

        assert weights(loaded)["NodeResourcesFit"] == 4
        assert name not in str(loaded.effective())
        assert fit(loaded).scoring_strategy == ScoringStrategy(strategy, (ResourceSpec("cpu", 3),))
        (note,) = notes_of(loaded, "profiles[0].plugins.score.enabled[0]")
        assert note.startswith(f"{name} → NodeResourcesFit with the strategy {strategy}")
        assert notes_of(loaded, "profiles[0].pluginConfig[0]") == [
            f"{name} → scoringStrategy of NodeResourcesFit"
        ]

    def test_a_scorer_without_arguments_has_the_default_resources(self) -> None:
        loaded = beta2(score=on("NodeResourcesMostAllocated"))

        assert fit(loaded).scoring_strategy == ScoringStrategy("MostAllocated")

    def test_the_ratio_scorer_keeps_its_shape_beside_other_arguments_of_fit(self) -> None:
        shape = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
        loaded = beta2(
            {"name": "Mine", "args": 1},
            {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/x"]}},
            {"name": "RequestedToCapacityRatio", "args": {"shape": shape}},
            score=on(("RequestedToCapacityRatio", 2)),
        )

        ratio = fit(loaded).scoring_strategy.requested_to_capacity_ratio
        assert ratio is not None
        assert ratio.shape == (ShapePoint(0, 10), ShapePoint(100, 0))
        assert fit(loaded).ignored_resources == ("example.com/x",)

    def test_arguments_of_a_scorer_that_is_not_enabled_are_dropped(self) -> None:
        loaded = beta2({"name": "NodeResourcesMostAllocated", "args": None})

        assert fit(loaded).scoring_strategy.type == "LeastAllocated"
        assert notes_of(loaded, "profiles[0].pluginConfig[0]") == [
            "NodeResourcesMostAllocated dropped: the plugin is not enabled at score"
        ]

    def test_disabling_a_disabled_plugin_changes_nothing(self) -> None:
        loaded = beta2(score=off("NodeResourcesLeastAllocated", "NodePreferAvoidPods"))

        assert weights(loaded) == weights(load("v1beta2"))
        assert notes_of(loaded, "profiles[0].plugins.score.disabled[1]") == [
            "NodePreferAvoidPods dropped: it was not on by default in v1beta2"
        ]

    def test_a_node_scores_its_resources_once(self) -> None:
        both = on("NodeResourcesLeastAllocated", "NodeResourcesFit")
        given = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}

        assert problems(beta2, score=both) == [
            "profiles[0].plugins.score.enabled: NodeResourcesLeastAllocated and NodeResourcesFit "
            "conflict: NodeResourcesFit scores once, by one strategy"
        ]
        assert problems(beta2, given, score=on("NodeResourcesMostAllocated")) == [
            "profiles[0].pluginConfig.NodeResourcesFit.args.scoringStrategy: the profile's score "
            "plugins ask for MostAllocated already"
        ]

    def test_dropped_plugins_keep_their_names_and_arguments(self) -> None:
        args = {"kind": "NodeLabelArgs", "presentLabelsPreference": ["ssd"]}
        loaded = beta2(
            {"name": "NodeLabel", "args": {**args, "apiVersion": f"{GROUP}/v1beta2"}},
            preScore=on("SelectorSpread"),
            score=on(("SelectorSpread", 3), "NodeLabel", ("NodePreferAvoidPods", 10000)),
        )

        assert weights(loaded)["SelectorSpread"] == 3
        assert weights(loaded)["NodePreferAvoidPods"] == 10000
        assert loaded.config.profiles[0].args["NodeLabel"] == NodeLabelArgs((), (), ("ssd",))
        where = "profiles[0].plugins.score"
        assert notes_of(loaded, f"{where}.enabled[0]") == [
            "SelectorSpread is no plugin of v1: here it is Roadstead's own"
        ]
        assert notes_of(loaded, f"{where}.enabled[1]") == [
            "NodeLabel as in v1beta1: kube-scheduler's own v1beta2 refused it"
        ]

    def test_volume_limits_have_one_plugin(self) -> None:
        loaded = beta2(
            {"name": "EBSLimits"},
            filter={**on("AzureDiskLimits", "CinderLimits"), **off("EBSLimits")},
        )
        alone = beta2(filter={**on("NodeName", "EBSLimits", "GCEPDLimits"), **off("*")})

        assert at(loaded, "filter") == at(load("v1beta2"), "filter")
        assert at(alone, "filter") == ["NodeName", "NodeVolumeLimits"]
        where = "profiles[0].plugins.filter"
        assert notes_of(alone, f"{where}.enabled[1]") == ["EBSLimits → NodeVolumeLimits"]
        dropped = "GCEPDLimits dropped: NodeVolumeLimits counts its volumes"
        assert notes_of(alone, f"{where}.enabled[2]") == [dropped]
        assert notes_of(loaded, f"{where}.disabled[0]")[0].startswith("EBSLimits dropped")
        assert notes_of(loaded, "profiles[0].pluginConfig[0]")[0].startswith("EBSLimits dropped")

    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ({"delayCacheUntilActive": True}, "delayCacheUntilActive: True: unknown field"),
            (
                {"profiles": [{"plugins": {"multiPoint": {}}}]},
                "profiles[0].plugins.multiPoint: dict of 0: unknown field",
            ),
            (
                {"profiles": [{"percentageOfNodesToScore": 5}]},
                "profiles[0].percentageOfNodesToScore: 5: unknown field",
            ),
            ({"healthzBindAddress": 5}, "healthzBindAddress: 5: must be a text (put it in quotes)"),
            (
                {"profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": {"x": 1}}]}]},
                "profiles[0].pluginConfig[0].args.x: 1: unknown field",
            ),
            (
                {
                    "profiles": [
                        {
                            "pluginConfig": [
                                {
                                    "name": "NodeAffinity",
                                    "args": {
                                        "apiVersion": f"{GROUP}/v1",
                                        "kind": "NodeAffinityArgs",
                                    },
                                }
                            ]
                        }
                    ]
                },
                f'profiles[0].pluginConfig[0].args.apiVersion: "{GROUP}/v1": '
                f"must be {GROUP}/v1beta2",
            ),
            (
                {"profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": "x"}]}]},
                'profiles[0].pluginConfig[0].args: "x": must be a mapping (NodeAffinityArgs)',
            ),
            (
                {
                    "profiles": [
                        {
                            "pluginConfig": [
                                {"name": "RequestedToCapacityRatio", "args": {"shapes": []}}
                            ]
                        }
                    ]
                },
                "profiles[0].pluginConfig[0].args.shapes: list of 0: unknown field",
            ),
            ({"parallelism": 0}, "parallelism: 0: should be an integer value greater than zero"),
            (
                {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "NodeLabels"}]}}}]},
                "profiles[0].plugins.filter: initializing profiles: creating profile for scheduler "
                'name default-scheduler: FilterPlugin "NodeLabels" does not exist',
            ),
        ],
    )
    def test_impossible_values_are_refused_by_field_and_rule(
        self, fields: dict[str, Any], problem: str
    ) -> None:
        assert problems(load, "v1beta2", **fields) == [problem]

    def test_a_plugin_enabled_twice_is_refused_like_upstream(self) -> None:
        (problem,) = problems(beta2, filter=on("Mine", "Mine"))

        assert "profiles[0].plugins.filter" in problem

    def test_arguments_of_unknown_plugins_are_kept(self) -> None:
        loaded = beta2({"name": "Mine", "args": {"apiVersion": "mine/v7", "x": 1}})

        assert loaded.config.profiles[0].args["Mine"] == {"apiVersion": "mine/v7", "x": 1}

    def test_kube_scheduler_does_not_read_it_any_more(self) -> None:
        text = f"apiVersion: {GROUP}/v1beta2\nkind: KubeSchedulerConfiguration\n"

        with pytest.raises(ConfigError, match="is not a version that we read"):
            load_config(text, source="x", as_upstream=True)


class TestBeta3:
    def test_the_defaults_are_those_of_v1(self) -> None:
        loaded = load("v1beta3")

        assert loaded.config.profiles == default_config().profiles
        assert notes_of(loaded, "apiVersion") == [f"v1beta3 → {GROUP}/v1"]

    def test_volume_limits_have_one_plugin(self) -> None:
        listed = beta3(filter=on("EBSLimits"), multiPoint=off("AzureDiskLimits"))
        alone = beta3(
            multiPoint={
                **on("PrioritySort", "DefaultBinder", "EBSLimits", "GCEPDLimits"),
                **off("*"),
            }
        )
        twice = beta3(multiPoint={**on("NodeVolumeLimits", "EBSLimits"), **off("NodeVolumeLimits")})
        elsewhere = beta3(filter={**on("EBSLimits"), **off("NodeVolumeLimits")})

        assert listed.config.profiles == default_config().profiles
        assert at(alone, "filter") == ["NodeVolumeLimits"]
        assert at(twice, "filter").count("NodeVolumeLimits") == 1
        assert at(elsewhere, "filter").count("NodeVolumeLimits") == 1
        dropped = "EBSLimits dropped: NodeVolumeLimits counts its volumes"
        assert notes_of(listed, "profiles[0].plugins.filter.enabled[0]") == [dropped]

    def test_selector_spread_still_exists(self) -> None:
        loaded = beta3(multiPoint=on(("SelectorSpread", 2)))

        assert weights(loaded)["SelectorSpread"] == 2
        assert at(loaded, "preScore")[-1] == "SelectorSpread"

    @pytest.mark.parametrize(
        "name",
        [
            "NodeLabel",
            "ServiceAffinity",
            "NodePreferAvoidPods",
            "NodeResourcesLeastAllocated",
            "NodeResourcesMostAllocated",
            "RequestedToCapacityRatio",
        ],
    )
    def test_fields_that_v1beta2_removed_are_refused_with_upstreams_message(
        self, name: str
    ) -> None:
        rule = (
            f'"{name}": was removed in version "{GROUP}/v1beta2" '
            f'(KubeSchedulerConfiguration is version "{GROUP}/v1beta3")'
        )

        assert problems(beta3, {"name": name}, score=on(name)) == [
            f"profiles[0].plugins.score.enabled[0]: {rule}",
            f"profiles[0].pluginConfig[0]: {rule}",
        ]

    def test_arguments_are_typed_as_in_v1(self) -> None:
        version = f"{GROUP}/v1beta3"
        args = {"apiVersion": version, "kind": "InterPodAffinityArgs", "hardPodAffinityWeight": 7}
        loaded = beta3({"name": "InterPodAffinity", "args": args})

        affinity = loaded.config.profiles[0].args["InterPodAffinity"]
        assert affinity == InterPodAffinityArgs(7)

    def test_health_addresses_are_removed(self) -> None:
        assert problems(load, "v1beta3", healthzBindAddress="x") == [
            'healthzBindAddress: "x": unknown field'
        ]

    def test_plugin_sets_and_weights_are_kept(self) -> None:
        loaded = beta3(score={**on(("ImageLocality", 9)), **off("NodeAffinity")})

        assert weights(loaded)["ImageLocality"] == 9
        assert "NodeAffinity" not in weights(loaded)
        assert at(loaded, "score")[0] == "ImageLocality"


class TestOurOwnPluginsInV1:
    def test_a_v1_document_may_name_them(self) -> None:
        loaded = load(
            "v1",
            profiles=[
                {
                    "plugins": {"multiPoint": on("NodeLabel", ("SelectorSpread", 2))},
                    "pluginConfig": [
                        {"name": "NodeLabel", "args": {"absentLabelsPreference": ["x"]}}
                    ],
                }
            ],
        )

        assert weights(loaded)["SelectorSpread"] == 2
        assert loaded.config.profiles[0].args["NodeLabel"] == NodeLabelArgs((), (), (), ("x",))

    def test_kube_scheduler_does_not_know_the_dropped_plugins(self) -> None:
        profile = {"plugins": {"filter": on("NodeLabel")}}
        text = yaml.safe_dump(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [profile],
            }
        )

        with pytest.raises(ConfigError, match='FilterPlugin "NodeLabel" does not exist'):
            load_config(text, source="x", as_upstream=True)

    def test_node_label_needs_labels_to_score_by(self) -> None:
        profile = {"plugins": {"score": on("NodeLabel")}}

        assert problems(load, "v1", profiles=[profile]) == [
            "profiles[0].pluginConfig: initializing profiles: creating profile for scheduler name "
            'default-scheduler: initializing plugin "NodeLabel": needs presentLabelsPreference or '
            "absentLabelsPreference where it scores"
        ]

    def test_a_label_can_not_be_required_present_and_absent(self) -> None:
        args = {
            "presentLabels": ["a", "b"],
            "absentLabels": ["b"],
            "presentLabelsPreference": ["c"],
            "absentLabelsPreference": ["d", "c"],
        }
        config = {"name": "NodeLabel", "args": args}

        assert problems(load, "v1", profiles=[{"pluginConfig": [config]}]) == [
            'profiles[0].pluginConfig[0].args.presentLabels[1]: "b": conflict with absentLabels[0]',
            'profiles[0].pluginConfig[0].args.presentLabelsPreference[0]: "c": conflict with '
            "absentLabelsPreference[1]",
        ]

    def test_no_other_plugin_may_have_a_dropped_plugins_name(self) -> None:
        text = f"apiVersion: {GROUP}/v1\nkind: KubeSchedulerConfiguration\n"

        with pytest.raises(ValueError, match="is in-tree"):
            load_config(text, source="x", extra_plugins={"NodeLabel": ["filter"]})
