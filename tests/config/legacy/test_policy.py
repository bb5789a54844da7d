"""Policy v1 files: the conversion of each predicate and priority, and its notes."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from roadstead.config.errors import ConfigError
from roadstead.config.legacy.registry import DEFAULT_PREDICATES, PREDICATES, PRIORITIES
from roadstead.config.load import LoadedConfig, load_config
from roadstead.config.plugin_args import (
    InterPodAffinityArgs,
    NodeLabelArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ServiceAffinityArgs,
    ShapePoint,
)

ALWAYS_ON = {
    "preEnqueue": ["SchedulingGates", "DefaultPreemption"],
    "queueSort": ["PrioritySort"],
    "postFilter": ["DefaultPreemption"],
    "bind": ["DefaultBinder"],
}
MANDATORY = ["NodeUnschedulable", "TaintToleration"]


def load(**fields: Any) -> LoadedConfig:
    text = json.dumps({"apiVersion": "v1", "kind": "Policy", **fields})
    return load_config(text, source="policy.json")


def refused(**fields: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(**fields)
    return [problem.short_text for problem in caught.value.problems]


def plugins(loaded: LoadedConfig) -> dict[str, list[str]]:
    """Return extension point → names, without empty points."""
    (profile,) = loaded.config.profiles
    assert profile.scheduler_name == "default-scheduler"
    listed = {point: [ref.name for ref in refs] for point, refs in profile.plugins.items()}
    return {point: names for point, names in listed.items() if names}


def scores(loaded: LoadedConfig) -> dict[str, int]:
    return {ref.name: ref.weight for ref in loaded.config.profiles[0].at("score")}


def args(loaded: LoadedConfig, name: str) -> Any:
    return loaded.config.profiles[0].args[name]


def notes_of(loaded: LoadedConfig, field: str) -> list[str]:
    return [note.text for note in loaded.notes if note.field == field]


def one(name: str) -> dict[str, list[str]]:
    """Return the plugins of a Policy with one predicate, its filters without the mandatory ones."""
    found = plugins(load(predicates=[{"name": name}], priorities=[]))
    found["filter"] = [each for each in found["filter"] if each not in MANDATORY]
    return {point: names for point, names in found.items() if point not in ALWAYS_ON and names}


def test_an_empty_policy_has_the_mandatory_predicates_and_the_plugins_always_on() -> None:
    loaded = load(predicates=[], priorities=[])

    assert plugins(loaded) == {**ALWAYS_ON, "filter": MANDATORY}
    assert notes_of(loaded, "predicates") == [
        "CheckNodeUnschedulable is mandatory: added → NodeUnschedulable at filter",
        "PodToleratesNodeTaints is mandatory: added → TaintToleration at filter",
    ]


@pytest.mark.parametrize("nothing", [{}, {"predicates": None, "priorities": None}])
def test_omitted_fields_of_a_policy_have_kube_schedulers_defaults(nothing: dict[str, None]) -> None:
    loaded = load(**nothing)

    assert plugins(loaded)["filter"] == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "VolumeRestrictions",
        "TaintToleration",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ]
    assert scores(loaded) == {
        "NodeResourcesBalancedAllocation": 1,
        "PodTopologySpread": 2,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeResourcesFit": 1,
        "NodeAffinity": 1,
        "NodePreferAvoidPods": 10000,
        "SelectorSpread": 1,
        "TaintToleration": 1,
    }
    assert args(loaded, "NodeResourcesFit").scoring_strategy.type == "LeastAllocated"
    assert notes_of(loaded, "predicates")[0].startswith("not given: the default ones: CheckNode")
    assert "LeastRequestedPriority 1" in notes_of(loaded, "priorities")[0]


@pytest.mark.parametrize(
    ("name", "filters", "pre_filters"),
    [
        ("PodFitsHostPorts", ["NodePorts"], ["NodePorts"]),
        ("PodFitsPorts", ["NodePorts"], ["NodePorts"]),
        ("PodFitsResources", ["NodeResourcesFit"], ["NodeResourcesFit"]),
        ("HostName", ["NodeName"], []),
        ("MatchNodeSelector", ["NodeAffinity"], ["NodeAffinity"]),
        ("NoDiskConflict", ["VolumeRestrictions"], ["VolumeRestrictions"]),
        ("NoVolumeZoneConflict", ["VolumeZone"], ["VolumeZone"]),
        ("MaxCSIVolumeCountPred", ["NodeVolumeLimits"], ["NodeVolumeLimits"]),
        ("MaxCSIVolumeCount", ["NodeVolumeLimits"], ["NodeVolumeLimits"]),
        ("MaxEBSVolumeCount", ["NodeVolumeLimits"], ["NodeVolumeLimits"]),
        ("MaxGCEPDVolumeCount", ["NodeVolumeLimits"], ["NodeVolumeLimits"]),
        ("MaxAzureDiskVolumeCount", ["NodeVolumeLimits"], ["NodeVolumeLimits"]),
        ("MaxCinderVolumeCount", ["NodeVolumeLimits"], ["NodeVolumeLimits"]),
        ("MatchInterPodAffinity", ["InterPodAffinity"], ["InterPodAffinity"]),
        ("EvenPodsSpread", ["PodTopologySpread"], ["PodTopologySpread"]),
        ("EvenPodsSpreadPredicate", ["PodTopologySpread"], ["PodTopologySpread"]),
        ("CheckServiceAffinity", ["ServiceAffinity"], ["ServiceAffinity"]),
        ("CheckNodeLabelPresence", ["NodeLabel"], []),
        ("CheckNodeUnschedulable", [], []),
        ("PodToleratesNodeTaints", [], []),
        ("CheckNodeCondition", [], []),
        ("CheckNodeMemoryPressure", [], []),
        ("CheckNodeDiskPressurePred", [], []),
        (
            "GeneralPredicates",
            ["NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"],
            ["NodeResourcesFit", "NodePorts", "NodeAffinity"],
        ),
    ],
)
def test_each_predicate_becomes_a_plugin(
    name: str, filters: list[str], pre_filters: list[str]
) -> None:
    expected = {"preFilter": pre_filters, "filter": filters}

    assert one(name) == {point: names for point, names in expected.items() if names}


@pytest.mark.parametrize("name", ["CheckVolumeBinding", "CheckVolumeBindingPred"])
def test_volume_binding_also_reserves_and_binds(name: str) -> None:
    binding = ["VolumeBinding"]

    assert one(name) == {
        "preFilter": binding,
        "filter": binding,
        "reserve": binding,
        "preBind": binding,
    }


def test_predicates_in_any_order_of_the_file_run_in_upstreams_order() -> None:
    names = list(reversed(PREDICATES))
    loaded = load(predicates=[{"name": name} for name in names], priorities=[])

    assert plugins(loaded)["filter"] == list(
        dict.fromkeys(plugin for uses in PREDICATES.values() for plugin, _ in uses)
    )
    assert set(DEFAULT_PREDICATES) <= set(names)


@pytest.mark.parametrize(
    ("name", "plugin", "pre_scores"),
    [
        ("LeastRequestedPriority", "NodeResourcesFit", True),
        ("LeastRequested", "NodeResourcesFit", True),
        ("MostRequested", "NodeResourcesFit", True),
        ("BalancedResourceAllocation", "NodeResourcesBalancedAllocation", True),
        ("BalancedResourceAllocationPriority", "NodeResourcesBalancedAllocation", True),
        ("SelectorSpread", "SelectorSpread", True),
        ("SelectorSpreadPriority", "SelectorSpread", True),
        ("ServiceSpreadingPriority", "SelectorSpread", True),
        ("ServiceSpreading", "SelectorSpread", True),
        ("EvenPodsSpreadPriority", "PodTopologySpread", True),
        ("NodeAffinityPriority", "NodeAffinity", True),
        ("ImageLocalityPriority", "ImageLocality", False),
        ("InterPodAffinityPriority", "InterPodAffinity", True),
        ("NodePreferAvoidPods", "NodePreferAvoidPods", False),
        ("TaintToleration", "TaintToleration", True),
    ],
)
def test_each_priority_becomes_a_score_plugin_with_its_weight(
    name: str, plugin: str, pre_scores: bool
) -> None:
    loaded = load(predicates=[], priorities=[{"name": name, "weight": 7}])

    assert scores(loaded) == {plugin: 7}
    assert plugins(loaded).get("preScore", []) == ([plugin] if pre_scores else [])


def test_most_and_least_requested_become_strategies_of_one_plugin() -> None:
    for name, strategy in (
        ("MostRequested", "MostAllocated"),
        ("LeastRequested", "LeastAllocated"),
    ):
        loaded = load(predicates=[], priorities=[{"name": name, "weight": 1}])

        assert args(loaded, "NodeResourcesFit").scoring_strategy.type == strategy
        assert (
            f"with the strategy {strategy} at score, weight 1"
            in notes_of(loaded, "priorities[0]")[0]
        )


def test_two_strategies_of_one_plugin_are_refused() -> None:
    both = [{"name": "MostRequestedPriority", "weight": 1}, {"name": "LeastRequested", "weight": 1}]

    (problem,) = refused(predicates=[], priorities=both)

    assert problem == (
        "priorities: name LeastRequestedPriority and MostRequestedPriority: each is the strategy "
        "of NodeResourcesFit, which has one"
    )


def test_equal_priority_is_dropped() -> None:
    loaded = load(predicates=[], priorities=[{"name": "EqualPriority", "weight": 1}])

    assert scores(loaded) == {}
    assert notes_of(loaded, "priorities[0]")[0].startswith('"EqualPriority" dropped')


def test_the_last_of_two_weights_counts() -> None:
    twice = [{"name": "SelectorSpread", "weight": 2}, {"name": "ServiceSpreading", "weight": 5}]
    loaded = load(predicates=[], priorities=twice)

    assert scores(loaded) == {"SelectorSpread": 5}
    assert notes_of(loaded, "priorities[1]")[-1].endswith("is listed twice: the last weight counts")


def test_even_pods_spread_has_no_default_constraints() -> None:
    loaded = load(predicates=[{"name": "EvenPodsSpread"}], priorities=[])

    assert args(loaded, "PodTopologySpread") == PodTopologySpreadArgs((), "List")


def test_predicates_with_arguments_may_have_any_name() -> None:
    made = [
        {"name": "Regional", "argument": {"serviceAffinity": {"labels": ["region"]}}},
        {"name": "CheckServiceAffinity", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
        {"name": "Zoned", "argument": {"labelsPresence": {"labels": ["zone"], "presence": True}}},
        {"name": "Old", "argument": {"labelsPresence": {"labels": ["retiring", "x"]}}},
    ]
    loaded = load(predicates=made, priorities=[])

    assert one("HostName")["filter"] == ["NodeName"]
    assert plugins(loaded)["filter"] == [*MANDATORY, "NodeLabel", "ServiceAffinity"]
    assert plugins(loaded)["preFilter"] == ["ServiceAffinity"]
    assert args(loaded, "ServiceAffinity") == ServiceAffinityArgs(("region", "zone"))
    assert args(loaded, "NodeLabel") == NodeLabelArgs(("zone",), ("retiring", "x"))
    assert notes_of(loaded, "predicates[2]") == ['"Zoned" → NodeLabel at filter with its argument']


def test_priorities_with_arguments_become_plugins_whose_weights_are_summed() -> None:
    made = [
        {"name": "rack", "weight": 3, "argument": {"serviceAntiAffinity": {"label": "rack"}}},
        {"name": "zone", "weight": 3, "argument": {"serviceAntiAffinity": {"label": "zone"}}},
        {
            "name": "NodeLabel",
            "weight": 2,
            "argument": {"labelPreference": {"label": "ssd", "presence": True}},
        },
        {"name": "no", "weight": 2, "argument": {"labelPreference": {"label": "retiring"}}},
    ]
    loaded = load(predicates=[], priorities=made)

    assert scores(loaded) == {"NodeLabel": 4, "ServiceAffinity": 6}
    assert args(loaded, "ServiceAffinity") == ServiceAffinityArgs((), ("rack", "zone"))
    assert args(loaded, "NodeLabel") == NodeLabelArgs((), (), ("ssd",), ("retiring",))
    assert plugins(loaded)["filter"] == MANDATORY


def ratio(shape: list[dict[str, int]], **others: Any) -> dict[str, Any]:
    argument = {"requestedToCapacityRatioArguments": {"shape": shape, **others}}
    return {"name": "RequestedToCapacityRatioPriority", "weight": 2, "argument": argument}


RISING = [{"utilization": 0, "score": 0}, {"utilization": 50, "score": 7}]


def test_requested_to_capacity_ratio_keeps_shape_and_resources() -> None:
    resources = [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu"}]
    loaded = load(predicates=[], priorities=[ratio(RISING, resources=resources)])

    fit = args(loaded, "NodeResourcesFit")
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.scoring_strategy.type == "RequestedToCapacityRatio"
    assert fit.scoring_strategy.resources == (
        ResourceSpec("cpu", 3),
        ResourceSpec("example.com/gpu"),
    )
    assert fit.scoring_strategy.requested_to_capacity_ratio is not None
    assert fit.scoring_strategy.requested_to_capacity_ratio.shape == (
        ShapePoint(0, 0),
        ShapePoint(50, 7),
    )
    assert scores(loaded) == {"NodeResourcesFit": 2}


@pytest.mark.parametrize(
    ("priority", "problem"),
    [
        (ratio([]), ".shape: at least one point must be specified"),
        (
            ratio(RISING[::-1]),
            ".shape[1].utilization: 0: values must be sorted in increasing order",
        ),
        (
            ratio([{"utilization": 101, "score": 1}]),
            ".shape[0].utilization: 101: not in valid range [0, 100]",
        ),
        (
            ratio(RISING, resources=[{"name": "cpu", "weight": 101}]),
            ".resources[0].weight: 101: resource weight of cpu not in valid range (0, 100]",
        ),
    ],
)
def test_an_invalid_shape_is_named_with_its_place(priority: dict[str, Any], problem: str) -> None:
    where = "priorities[0].argument.requestedToCapacityRatioArguments"

    assert refused(predicates=[], priorities=[priority]) == [where + problem]


def test_a_second_requested_to_capacity_ratio_is_refused() -> None:
    (problem,) = refused(predicates=[], priorities=[ratio(RISING), ratio(RISING)])

    assert problem.startswith(
        "priorities[1].argument.requestedToCapacityRatioArguments: is there twice"
    )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"predicates": [{"name": "PodFitsWishes"}]},
            'predicates[0].name: "PodFitsWishes": is not a predicate that kube-scheduler has had',
        ),
        (
            {"priorities": [{"name": "Luck", "weight": 1}]},
            'priorities[0].name: "Luck": is not a priority that kube-scheduler has had',
        ),
        (
            {"priorities": [{"name": "ServiceAntiAffinity", "weight": 1}]},
            'priorities[0].name: "ServiceAntiAffinity": needs argument.serviceAntiAffinity',
        ),
        (
            {"priorities": [{"name": "NodeLabel", "weight": 1}]},
            'priorities[0].name: "NodeLabel": needs argument.labelPreference',
        ),
        (
            {"priorities": [{"name": "RequestedToCapacityRatio", "weight": 1}]},
            'priorities[0].name: "RequestedToCapacityRatio": '
            "needs argument.requestedToCapacityRatioArguments",
        ),
        (
            {"priorities": [{"name": "NodeAffinity"}]},
            "priorities[0].weight: 0: must be a positive number that fits into 32 bits",
        ),
        (
            {"priorities": [{"name": "NodeAffinity", "weight": 2**31}]},
            "priorities[0].weight: 2147483648: must be a positive number that fits into 32 bits",
        ),
        (
            {"predicates": [{"name": "x", "argument": {}}]},
            "predicates[0].argument: must hold exactly one of serviceAffinity, labelsPresence, "
            "not 0",
        ),
        (
            {
                "priorities": [
                    {
                        "name": "x",
                        "weight": 1,
                        "argument": {
                            "labelPreference": {"label": "a"},
                            "serviceAntiAffinity": {"label": "a"},
                        },
                    }
                ]
            },
            "priorities[0].argument: must hold exactly one of serviceAntiAffinity, "
            "labelPreference, requestedToCapacityRatioArguments, not 2",
        ),
        (
            {"hardPodAffinitySymmetricWeight": 101},
            "hardPodAffinitySymmetricWeight: 101: not in valid range [0-100]",
        ),
        (
            {"extenders": [{"urlPrefix": "http://x", "httpTimeout": "5s"}]},
            'extenders[0].httpTimeout: "5s": must be an integer: nanoseconds, in a Policy',
        ),
        ({"predicate": []}, "predicate: list of 0: unknown field"),
        ({"predicates": [{"nam": "x"}]}, 'predicates[0].nam: "x": unknown field'),
        ({"predicates": {}}, "predicates: dict of 0: must be a list"),
        ({"extenders": ["x"]}, 'extenders[0]: "x": must be a mapping'),
        ({"extenders": [{"urlprefixes": "x"}]}, 'extenders[0].urlprefixes: "x": unknown field'),
    ],
)
def test_invalid_values_are_refused_by_field_and_rule(fields: dict[str, Any], problem: str) -> None:
    assert refused(**fields) == [problem]


def test_priorities_with_the_same_kind_of_argument_have_one_weight() -> None:
    made = [
        {"name": "a", "weight": 1, "argument": {"labelPreference": {"label": "a"}}},
        {"name": "b", "weight": 2, "argument": {"labelPreference": {"label": "b"}}},
    ]

    (problem,) = refused(priorities=made)

    assert (
        problem == "priorities[1].weight: 2: must be the same for all priorities of this argument"
    )


def test_the_symmetric_weight_is_passed_to_inter_pod_affinity() -> None:
    loaded = load(hardPodAffinitySymmetricWeight=10)
    without = load(hardPodAffinitySymmetricWeight=10, priorities=[])

    assert args(loaded, "InterPodAffinity") == InterPodAffinityArgs(10)
    assert notes_of(loaded, "hardPodAffinitySymmetricWeight") == [
        "→ hardPodAffinityWeight of InterPodAffinity: 10"
    ]
    assert notes_of(without, "hardPodAffinitySymmetricWeight") == [
        "has no effect without InterPodAffinityPriority"
    ]


def test_the_option_to_check_all_predicates_changes_no_decision() -> None:
    loaded = load(alwaysCheckAllPredicates=True)

    assert loaded.config == load().config
    assert notes_of(loaded, "alwaysCheckAllPredicates")[0].startswith(
        "dropped: decisions were the same"
    )
    assert notes_of(load(alwaysCheckAllPredicates=False), "alwaysCheckAllPredicates") == []


def test_extenders_are_read_in_any_spelling_and_with_nanoseconds() -> None:
    older = {
        "urlPrefix": "https://127.0.0.1:12346/scheduler",
        "filterVerb": "filter",
        "BindVerb": "bind",
        "weight": 5,
        "enableHttps": True,
        "TLSConfig": {"Insecure": True},
        "httpTimeout": 1_500_000_000,
        "nodeCacheCapable": True,
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        "ignorable": True,
    }
    loaded = load(extenders=[older, {"urlPrefix": "http://x"}])

    first, second = loaded.config.extenders
    assert (first.bind_verb, first.http_timeout_s) == ("bind", 1.5)
    assert loaded.document["extenders"][0]["enableHTTPS"]
    assert first.tls is not None
    assert first.tls.insecure
    assert first.node_cache_capable
    assert first.ignorable
    assert second.http_timeout_s == 5.0
    assert args(loaded, "NodeResourcesFit").ignored_resources == ("example.com/gpu",)
    assert notes_of(loaded, "extenders[0].BindVerb") == ["→ bindVerb"]
    assert notes_of(loaded, "extenders[0].tlsConfig.Insecure") == ["→ insecure"]
    assert notes_of(loaded, "extenders[0].httpTimeout") == ["1500000000 (nanoseconds) → 1.5s"]


def test_a_policy_may_be_yaml() -> None:
    text = "apiVersion: v1\nkind: Policy\npredicates: []\npriorities: []\n"

    assert load_config(text, source="p").config == load(predicates=[], priorities=[]).config


def test_a_policy_is_converted_to_an_equivalent_v1_configuration() -> None:
    made = [{"name": "x", "argument": {"serviceAffinity": {"labels": ["region"]}}}]
    loaded = load(predicates=made, priorities=[ratio(RISING)], hardPodAffinitySymmetricWeight=3)

    again = load_config(yaml.safe_dump(dict(loaded.document)), source="again")

    assert loaded.document["kind"] == "KubeSchedulerConfiguration"
    assert again.config.profiles == loaded.config.profiles
    assert again.document == loaded.document
    assert again.notes == ()


def test_every_name_is_accepted_with_its_suffix_or_without() -> None:
    names = [name.removesuffix("Pred") for name in PREDICATES]
    bare = load(predicates=[{"name": name} for name in names], priorities=[])
    full = load(predicates=[{"name": f"{name}Predicate"} for name in names], priorities=[])

    assert bare.config == full.config
    assert notes_of(full, "predicates[1]")[0].startswith(
        '"GeneralPredicatesPredicate", understood as GeneralPredicates, → NodeResourcesFit at'
    )
    plain = [name for name in PRIORITIES if name.startswith(("Node", "Image", "Taint"))]
    weighed = [{"name": n.removesuffix("Priority"), "weight": 1} for n in plain if "Label" not in n]
    assert len(scores(load(predicates=[], priorities=weighed))) == len(weighed)


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Pod\n",
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: Policy\n",
        "apiVersion: [v1]\nkind: Policy\n",
        "apiVersion: v1\nkind: {}\n",
        "- Policy",
        "",
    ],
)
def test_documents_other_than_policies_are_refused_as_before(text: str) -> None:
    with pytest.raises(ConfigError) as ours:
        load_config(text, source="x")
    with pytest.raises(ConfigError) as strict:
        load_config(text, source="x", as_upstream=True)

    assert str(ours.value) == str(strict.value)


def test_kube_scheduler_does_not_read_policies_any_more() -> None:
    with pytest.raises(ConfigError, match="is not a version that we read"):
        load_config("apiVersion: v1\nkind: Policy\n", source="x", as_upstream=True)
