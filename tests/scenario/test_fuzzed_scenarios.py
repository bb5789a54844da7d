"""Scenarios with any value in any place: each compiles, or is refused with an `InputError`."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from roadstead.config.scenario.examples import example_text
from roadstead.protocol.errors import InputError
from tests.scenario.files import compiled

EXAMPLES = {name: yaml.safe_load(example_text(name)) for name in ("small", "zone-loss", "gpu")}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        (
            *("1h", "-1h", "0s", "1d12h", "9" * 30 + "d", "1%", "200%", "0.5%", "measured", "a b"),
            *("zone-1", "cpu-8", "openb", "..", "/", "-", "\0", "x" * 300, "é", "{}", "1ms", "."),
        )
    ),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.sampled_from([[1, 2], ["a"], [{}], {"at": "1h"}, {"fixed": "1h"}, {"per_hour": 1}]),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        yield (*path, key)
        if isinstance(each, (dict, list)):
            yield from places(each, (*path, key))


LONGEST_MESSAGE = 10_000
PLACES = [(name, path) for name, document in EXAMPLES.items() for path in places(document)]


def changed(document: Any, path: tuple[Any, ...], value: object) -> Any:
    """Return a copy with another value at a path; a value of `...` removes the key or item."""
    whole = copy.deepcopy(document)
    parent = whole
    for key in path[:-1]:
        parent = parent[key]
    if value is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return whole


def refusal(document: object) -> str:
    """Return why a scenario is refused; "" if it compiles and its pods can be drawn."""
    try:
        plan = compiled(json.dumps(document), Path("/nonexistent"))
    except InputError as refused:
        return str(refused)
    for source in plan.sources:
        next(source.arrivals(0), None)
    return ""


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(PLACES), VALUES | st.just(...))
@example(("gpu", ("fleet", 0, "generate", "nodes")), True)
@example(("small", ("workload", 0, "pods", 0, "template")), {"kind": "List", "items": [1]})
@example(("zone-loss", ("workload", 0, "deployment", "name")), ...)
def test_a_scenario_with_any_value_compiles_or_is_refused(
    place: tuple[str, tuple[Any, ...]], value: object
) -> None:
    name, path = place

    message = refusal(changed(EXAMPLES[name], path, value))

    assert len(message) < LONGEST_MESSAGE
    assert not message or message.startswith(("test.yaml: ", "preset "))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_scenario_without_one_of_its_keys_compiles_or_is_refused(name: str) -> None:
    messages = [refusal(changed(EXAMPLES[name], path, ...)) for path in places(EXAMPLES[name])]

    assert any(messages)
    assert not all(messages)
    assert all(not each or each.startswith("test.yaml: ") for each in messages)
