"""Properties of any configuration: its output reads back as itself, and no text causes a crash."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roadstead.config.errors import ConfigError
from roadstead.config.intree import EXTENSION_POINTS, IN_TREE_POINTS
from roadstead.config.load import load_config

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
GOLDEN = Path(__file__).parents[1] / "golden" / "config" / "config.json.gz"
INPUTS: list[str] = [
    case["input"] for case in json.loads(gzip.decompress(GOLDEN.read_bytes()))["cases"]
]


def refusal_of(text: str) -> ConfigError | None:
    try:
        load_config(text, source="damaged.yaml")
    except ConfigError as refused:
        return refused
    return None


@st.composite
def plugin_sets(draw: st.DrawFn, point: str) -> dict[str, Any]:
    here = [name for name, points in IN_TREE_POINTS.items() if point in points]
    enabled = draw(st.lists(st.sampled_from(here), unique=True, max_size=3)) if here else []
    disabled = draw(st.lists(st.sampled_from([*IN_TREE_POINTS, "*", "Other"]), max_size=3))
    weights = st.integers(min_value=0, max_value=100)
    return {
        "enabled": [{"name": name, "weight": draw(weights)} for name in enabled],
        "disabled": [{"name": name} for name in disabled],
    }


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    free = [point for point in EXTENSION_POINTS if point not in ("bind", "queueSort")]
    points = draw(st.lists(st.sampled_from(free), unique=True, max_size=4))
    profile = {"plugins": {point: draw(plugin_sets(point)) for point in points}}
    numbers = st.integers(min_value=1, max_value=100)
    return {
        **HEAD,
        "parallelism": draw(numbers),
        "percentageOfNodesToScore": draw(numbers),
        "clientConnection": {"qps": draw(st.floats(min_value=0.5, max_value=1e6))},
        "leaderElection": {"leaseDuration": f"{draw(numbers) + 20}s"},
        "profiles": [profile],
    }


@given(configurations())
@settings(max_examples=60, deadline=None)
def test_printed_configuration_reads_back_as_itself(document: dict[str, Any]) -> None:
    first = load_config(yaml.safe_dump(document), source="")

    again = load_config(json.dumps(first.document), source="")

    assert again.config == first.config
    assert again.document == first.document


@given(configurations())
@settings(max_examples=60, deadline=None)
def test_no_plugin_runs_twice_or_at_a_point_that_it_does_not_implement(
    document: dict[str, Any],
) -> None:
    (profile,) = load_config(json.dumps(document), source="").config.profiles

    for point in EXTENSION_POINTS:
        names = [ref.name for ref in profile.at(point)]
        assert len(names) == len(set(names))
        assert all(point in IN_TREE_POINTS[name] for name in names)
    assert all(ref.weight >= 1 for ref in profile.at("score"))


@given(
    st.sampled_from(INPUTS),
    st.integers(min_value=0),
    st.integers(min_value=0, max_value=30),
    st.text(alphabet="{}[]:-*&!<>\"'|#%@,?\n\t \\0123.eExyn~é\ud800", max_size=12),
)
@settings(max_examples=300, deadline=None)
@example(INPUTS[0], 0, 0, "{")
def test_damaged_text_is_read_or_refused_without_other_errors(
    text: str, at: int, length: int, patch: str
) -> None:
    at %= len(text) + 1
    damaged = text[:at] + patch + text[at + length :]

    refused = refusal_of(damaged)

    if refused is not None:
        assert str(refused).startswith("damaged.yaml: ")
        assert refused.errors


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
FIELDS = (
    *("parallelism", "profiles", "extenders", "leaderElection", "clientConnection"),
    *("enableProfiling", "percentageOfNodesToScore", "podMaxBackoffSeconds", "unknown"),
)


@given(st.sampled_from(FIELDS), json_values)
@settings(max_examples=200, deadline=None)
def test_any_value_in_any_field_is_read_or_refused_at_that_field(field: str, value: Any) -> None:
    refused = refusal_of(json.dumps({**HEAD, field: value}))

    prefix = "pod" if field == "podMaxBackoffSeconds" else field
    problems = refused.problems if refused is not None else ()
    assert all(not problem.field or problem.field.startswith(prefix) for problem in problems)
