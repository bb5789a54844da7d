"""Validation rules that the recorded cases do not cover."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from roadstead.config.errors import ConfigError
from roadstead.config.go_struct import to_document
from roadstead.config.load import LoadedConfig
from roadstead.config.schema import KubeSchedulerConfiguration

Load = Callable[..., LoadedConfig]


def errors_of(load: Load, given: Any) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load(given)
    assert refused.value.stage == "validate"
    return refused.value.errors


def requirement(**fields: Any) -> dict[str, Any]:
    term = {"matchExpressions": [fields]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": required}}]}


PREFIX = (
    "profiles[0].pluginConfig[0].args.addedAffinity."
    "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (
            {"key": "a", "operator": "Exists", "values": ["x"]},
            '.values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        ),
        (
            {"key": "a", "operator": "Gt", "values": ["1", "2"]},
            """.values: Invalid value: ["1","2"]: for 'Gt', 'Lt' operators, """
            "exactly one value is required",
        ),
        (
            {"key": "a", "operator": "Lt", "values": ["9223372036854775808"]},
            """.values[0]: Invalid value: "9223372036854775808": for 'Gt', 'Lt' operators, """
            "the value must be an integer",
        ),
        (
            {"key": "a", "operator": "NotIn", "values": []},
            ".values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
    ],
)
def test_requirement_of_added_affinity_is_checked_as_a_selector(
    load_profile: Load, fields: dict[str, Any], error: str
) -> None:
    assert errors_of(load_profile, requirement(**fields)) == [PREFIX + error]


def test_an_invalid_label_value_is_named_with_its_key(load_profile: Load) -> None:
    (error,) = errors_of(load_profile, requirement(key="a/b", operator="In", values=["ok", "<&>"]))

    assert error.startswith(
        f'{PREFIX}.values[1][a/b]: Invalid value: "\\u003c\\u0026\\u003e": a valid label'
    )


def test_a_field_selector_has_one_value(load_profile: Load) -> None:
    one = {"key": "metadata.name", "operator": "NotIn", "values": ["a"]}
    fields = [one, {"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]
    preferred = [{"weight": 1, "preference": {"matchFields": fields}}]
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    profile = {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}]}

    (error,) = errors_of(load_profile, profile)

    assert error.endswith('matchFields[1].values: Invalid value: ["a","b"]: must have one element')


def test_preferred_term_of_weight_zero_is_not_parsed(load_profile: Load) -> None:
    broken = {"matchExpressions": [{"key": "", "operator": "Near"}]}
    preferred = [{"weight": 0, "preference": broken}]
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    profile = {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}]}

    document = load_profile(profile).document

    args = document["profiles"][0]["pluginConfig"][0]["args"]
    assert args["addedAffinity"] == affinity


def test_times_of_a_leader_election_must_be_positive(load: Load) -> None:
    body = "leaderElection: {leaseDuration: -1s, renewDeadline: -1m, retryPeriod: -1ms}"

    assert errors_of(load, body) == [
        'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
        'leaderElection.renewDeadline: Invalid value: "-1m0s": must be greater than zero',
        'leaderElection.retryPeriod: Invalid value: "-1ms": must be greater than zero',
    ]


def test_a_disabled_leader_election_is_not_checked(load: Load) -> None:
    body = "leaderElection: {leaderElect: false, leaseDuration: -1s, resourceLock: configmaps}"

    election = load(body).document["leaderElection"]

    assert (election["leaderElect"], election["leaseDuration"]) == (False, "-1s")


def test_the_timeout_of_dynamic_resources_must_not_be_negative(load_profile: Load) -> None:
    profile = {"pluginConfig": [{"name": "DynamicResources", "args": {"filterTimeout": "-1s"}}]}

    assert errors_of(load_profile, profile) == [
        "profiles[0].pluginConfig[0].args.filterTimeout: "
        'Invalid value: "-1s": must be zero or positive'
    ]


def test_removed_plugin_cannot_be_configured(load_profile: Load) -> None:
    (error,) = errors_of(load_profile, {"pluginConfig": [{"name": "EBSLimits"}]})

    assert error.startswith('profiles[0].pluginConfig[0]: Invalid value: "EBSLimits": was invalid')


@pytest.mark.parametrize(
    ("args", "shown"), [({"b": 1, "a": "x"}, '{"a":"x","b":1}'), (None, '"null"')]
)
def test_a_plugin_with_the_name_of_upstreams_misnamed_validator_never_passes(
    load_profile: Load, args: object, shown: str
) -> None:
    profile = {"pluginConfig": [{"name": "NodeResourcesFitArgs", "args": args}]}

    assert errors_of(load_profile, profile) == [
        f"profiles[0].pluginConfig[0].args: Invalid value: {shown}: has to match plugin args"
    ]


def test_a_resource_has_one_extender(load: Load) -> None:
    body = """
extenders:
- {urlPrefix: "http://a.example", managedResources: [{name: a.b/c}]}
- {urlPrefix: "http://b.example", managedResources: [{name: a.b/c}]}
"""

    assert errors_of(load, body) == [
        'extenders[1].managedResources[0].name: Invalid value: "a.b/c": '
        "duplicate extender managed resource name"
    ]


def test_nulls_leave_defaults_and_empty_lists_are_left_out(load: Load) -> None:
    body = """
parallelism: null
extenders: []
delayCacheUntilActive: true
clientConnection: {qps: 0.1, burst: null}
profiles:
- null
"""

    document = load(body).document

    assert document["parallelism"] == 16
    assert document["clientConnection"]["qps"] == 0.1
    assert document["clientConnection"]["burst"] == 100
    assert document["delayCacheUntilActive"] is True
    assert "extenders" not in document


def test_unknown_field_is_refused_even_if_it_is_null(load: Load) -> None:
    with pytest.raises(ConfigError, match="foo: None: unknown field"):
        load("foo: null")


@pytest.mark.parametrize("qps", [3.4e38, 3.4028235e38, 1e-45, 16777217, 0.3, 123456.789])
def test_rate_is_printed_as_the_shortest_32_bit_float(load: Load, qps: float) -> None:
    import numpy as np

    printed = load(f"clientConnection: {{qps: {qps!r}}}").document["clientConnection"]["qps"]

    assert np.float32(printed) == np.float32(qps)
    assert len(str(printed)) <= len(repr(float(np.float32(qps)))) or isinstance(printed, int)


def test_the_schema_accepts_go_names_only_and_prints_zero_values_by_gos_rules() -> None:
    empty = KubeSchedulerConfiguration()

    document = to_document(empty)

    assert set(document) == {"leaderElection", "clientConnection"}
    assert document["leaderElection"]["leaderElect"] is None
    assert document["leaderElection"]["leaseDuration"] == "0s"
