"""Requests of a pod follow rules that hold for any containers, not only for chosen ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.compile import compile_node, compile_pod, parse_time_s
from roadstead.facts.pod import PodFacts
from roadstead.facts.requests import DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES, amounts
from roadstead.facts.resources import is_counted_resource, is_scalar_resource
from roadstead.protocol.objects import Node, Pod, validate
from roadstead.protocol.quantity import parse_quantity

RESOURCES = ("cpu", "memory", "x.io/gpu")
CONTAINERS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 5))
"""Requests of a container, in whole units of each resource."""


def facts(running: list[dict[str, int]], init: Any = (), **spec: Any) -> PodFacts:
    def container(requests: Mapping[str, int], restart: str = "") -> dict[str, Any]:
        texts = {name: str(amount) for name, amount in requests.items()}
        return {"name": "c", "restartPolicy": restart, "resources": {"requests": texts}}

    whole = {
        "containers": [container(each) for each in running],
        "initContainers": [container(each, "Always" * sidecar) for each, sidecar in init],
        **spec,
    }
    manifest = {"metadata": {"name": "web"}, "spec": whole}
    return compile_pod(cast("Pod", validate("Pod", manifest, source="")))[1]


def milli(name: str, amount: int) -> int:
    return amount * 1000 if name == "cpu" else amount


@given(st.lists(CONTAINERS, min_size=1, max_size=4))
def test_containers_request_their_sum_in_any_order(running: list[dict[str, int]]) -> None:
    found = facts(running)

    named = {name for each in running for name in each}
    assert dict(found.requests) == {
        name: milli(name, sum(each.get(name, 0) for each in running)) for name in named
    }
    again = facts(running[::-1])
    assert (again.requests, again.nonzero_cpu_milli) == (found.requests, found.nonzero_cpu_milli)


@given(st.lists(CONTAINERS, min_size=1, max_size=4))
def test_for_scores_each_container_that_requests_none_counts_the_default(
    running: list[dict[str, int]],
) -> None:
    found = facts(running)

    cpu = [each["cpu"] * 1000 if "cpu" in each else DEFAULT_CPU_MILLI for each in running]
    memory = [each.get("memory", DEFAULT_MEMORY_BYTES) for each in running]
    assert (found.nonzero_cpu_milli, found.nonzero_memory_bytes) == (sum(cpu), sum(memory))


@given(
    st.lists(CONTAINERS, min_size=1, max_size=2),
    st.lists(st.tuples(CONTAINERS, st.booleans()), max_size=3),
    CONTAINERS,
    st.booleans(),
)
def test_another_init_container_never_lowers_a_request(
    running: list[dict[str, int]],
    init: list[tuple[dict[str, int], bool]],
    more: dict[str, int],
    is_sidecar: bool,
) -> None:
    before, after = dict(facts(running, init).requests), facts(running, [*init, (more, is_sidecar)])

    for name, amount in after.requests:
        assert amount >= before.get(name, 0), f"{name} is not lowered"
        assert amount >= milli(name, more.get(name, 0)), f"the container itself fits by {name}"
    assert before.keys() <= dict(after.requests).keys()


@given(st.lists(CONTAINERS, min_size=1, max_size=3), CONTAINERS)
def test_overhead_is_added_to_any_requests_of_containers(
    running: list[dict[str, int]], overhead: dict[str, int]
) -> None:
    texts = {name: str(amount) for name, amount in overhead.items()}

    before, after = dict(facts(running).requests), dict(facts(running, overhead=texts).requests)

    names = before.keys() | overhead.keys()
    assert after == {
        name: before.get(name, 0) + milli(name, overhead.get(name, 0)) for name in names
    }


@given(st.lists(CONTAINERS, min_size=1, max_size=3), CONTAINERS)
def test_requests_of_the_pod_replace_those_of_containers_for_cpu_and_memory_alone(
    running: list[dict[str, int]], of_pod: dict[str, int]
) -> None:
    texts = {name: str(amount) for name, amount in of_pod.items()}

    found = dict(facts(running, resources={"requests": texts}).requests)

    own = {name: milli(name, of_pod[name]) for name in ("cpu", "memory") if name in of_pod}
    assert found == dict(facts(running).requests) | own


@pytest.mark.parametrize(
    ("name", "text", "amount"),
    [
        ("cpu", "0.0001", 1),
        ("cpu", "1.0005", 1001),
        ("cpu", "1e3", 1_000_000),
        ("memory", "1.5", 2),
        ("memory", "500m", 1),
        ("memory", "1Ki", 1024),
        ("memory", "1k", 1000),
        ("memory", "0.5Gi", 2**29),
        ("memory", "7Ei", 7 * 2**60),
        ("memory", "9223372036854775807", 2**63 - 1),
        ("x.io/gpu", "3", 3),
    ],
)
def test_amounts_are_rounded_up_to_whole_units_and_cpu_to_thousandths(
    name: str, text: str, amount: int
) -> None:
    assert amounts({name: parse_quantity(text)}) == ((name, amount),)


@pytest.mark.parametrize(
    ("name", "is_counted", "is_scalar"),
    [
        ("cpu", True, False),
        ("memory", True, False),
        ("ephemeral-storage", True, False),
        ("x.io/gpu", True, True),
        ("hugepages-2Mi", True, True),
        ("attachable-volumes-csi", True, True),
        ("kubernetes.io/odd", True, True),
        ("sub.kubernetes.io/odd", True, True),
        ("pods", False, False),
        ("storage", False, False),
        ("requests.cpu", False, False),
        ("", False, False),
    ],
)
def test_resources_are_counted_by_their_names(name: str, is_counted: bool, is_scalar: bool) -> None:
    assert is_counted_resource(name) is is_counted
    assert is_scalar_resource(name) is is_scalar


@given(st.dictionaries(st.sampled_from([*RESOURCES, "pods", "plain"]), st.integers(0, 9)))
def test_a_node_has_its_counted_resources_in_order_and_its_pods_apart(
    allocatable: dict[str, int],
) -> None:
    texts = {name: str(amount) for name, amount in allocatable.items()}
    manifest = {"metadata": {"name": "n"}, "status": {"allocatable": texts}}

    found = compile_node(cast("Node", validate("Node", manifest, source="")))

    counted = {name: milli(name, allocatable[name]) for name in RESOURCES if name in allocatable}
    assert found.allocatable == tuple(sorted(counted.items()))
    assert found.allocatable_pods == allocatable.get("pods", 0)


@pytest.mark.parametrize(
    ("text", "time_s"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("1970-01-02T00:00:00Z", 86400.0),
        ("1970-01-01T02:00:00+01:00", 3600.0),
        ("1970-01-01T00:00:00.5Z", 0.5),
        ("1970-01-01T00:00:00", None),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_times_are_seconds_since_1970_if_they_have_an_offset(
    text: str | None, time_s: float | None
) -> None:
    assert parse_time_s(text) == time_s
