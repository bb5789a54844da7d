"""Algorithm providers by v1alpha1 documents and by preset."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from roadstead.config.errors import ConfigError
from roadstead.config.legacy.alpha import PROVIDERS
from roadstead.config.load import LoadedConfig, load_config
from roadstead.config.plugin_args import InterPodAffinityArgs, VolumeBindingArgs
from roadstead.config.presets import load_preset, preset_text
from roadstead.protocol.errors import InputError


def load(**fields: Any) -> LoadedConfig:
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
        "kind": "KubeSchedulerConfiguration",
    }
    return load_config(yaml.safe_dump({**head, **fields}), source="alpha.yaml")


def notes_of(loaded: LoadedConfig, field: str) -> list[str]:
    return [note.text for note in loaded.notes if note.field == field]


def at(loaded: LoadedConfig, point: str) -> list[str]:
    return [ref.name for ref in loaded.config.profiles[0].at(point)]


def policy() -> LoadedConfig:
    return load_config("apiVersion: v1\nkind: Policy\n", source="policy.yaml")


def strategy(loaded: LoadedConfig) -> str:
    args: Any = loaded.config.profiles[0].args["NodeResourcesFit"]
    return str(args.scoring_strategy.type)


def test_the_default_provider_has_the_default_predicates_and_priorities() -> None:
    named = load(algorithmSource={"provider": "DefaultProvider"})

    assert named.config.profiles == load().config.profiles == policy().config.profiles
    assert strategy(named) == "LeastAllocated"


def test_the_autoscaler_provider_differs_only_in_preferring_full_nodes() -> None:
    loaded = load(algorithmSource={"provider": "ClusterAutoscalerProvider"})

    assert loaded.effective() == policy().effective()
    assert strategy(loaded) == "MostAllocated"
    assert "MostRequestedPriority 1" in notes_of(loaded, "priorities")[0]
    assert notes_of(loaded, "algorithmSource.provider") == [
        "ClusterAutoscalerProvider: MostRequestedPriority in place of LeastRequestedPriority"
    ]


def test_every_provider_is_a_preset() -> None:
    by_name = {name: load_preset(name) for name in PROVIDERS}

    assert strategy(by_name["DefaultProvider"]) == "LeastAllocated"
    assert strategy(by_name["ClusterAutoscalerProvider"]) == "MostAllocated"
    with pytest.raises(InputError, match="spread, DefaultProvider, ClusterAutoscalerProvider"):
        preset_text("NoProvider")


def test_fields_of_v1alpha1_are_moved_to_their_current_place() -> None:
    loaded = load(
        schedulerName="mine",
        hardPodAffinitySymmetricWeight=7,
        bindTimeoutSeconds=30,
        percentageOfNodesToScore=40,
        leaderElection={"leaderElect": False, "lockObjectName": "lock"},
        healthzBindAddress="0.0.0.0:10251",
    )

    (profile,) = loaded.config.profiles
    assert profile.scheduler_name == "mine"
    assert profile.args["InterPodAffinity"] == InterPodAffinityArgs(7)
    assert profile.args["VolumeBinding"] == VolumeBindingArgs(30)
    assert loaded.config.percentage_of_nodes_to_score == 40
    assert loaded.document["leaderElection"]["resourceName"] == "lock"
    assert notes_of(loaded, "leaderElection.lockObjectName") == ["→ leaderElection.resourceName"]
    assert notes_of(loaded, "healthzBindAddress")[0].startswith("dropped")
    assert notes_of(loaded, "schedulerName") == ["→ profiles[0].schedulerName"]


def test_preemption_can_be_disabled() -> None:
    loaded = load(disablePreemption=True)

    assert at(loaded, "postFilter") == []
    assert at(loaded, "preEnqueue") == ["SchedulingGates"]
    assert notes_of(loaded, "disablePreemption") == ["→ DefaultPreemption is off"]
    assert load(disablePreemption=False).config.profiles == load().config.profiles


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"algorithmSource": {"provider": "Other"}},
            'algorithmSource.provider: "Other": supported values: "DefaultProvider", '
            '"ClusterAutoscalerProvider"',
        ),
        (
            {"algorithmSource": {"policy": {"file": {"path": "policy.json"}}}},
            "algorithmSource.policy: names a Policy kept elsewhere: give that file itself as the "
            "configuration",
        ),
        ({"profiles": []}, "profiles: list of 0: unknown field"),
        ({"plugins": {}}, "plugins: dict of 0: unknown field"),
        ({"hardPodAffinitySymmetricWeight": -1}, "hardPodAffinitySymmetricWeight: -1: not in"),
    ],
)
def test_impossible_values_are_refused_by_field_and_rule(
    fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(**fields)

    assert caught.value.problems[0].short_text.startswith(problem)
