"""Raw manifests get the API server's defaults, and a second defaulting changes nothing."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.compile import compile_node, compile_pod
from roadstead.manifests.defaults import default_node, default_pod
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import Node, Pod, PriorityClass, validate

MIB = 1024 * 1024
HUGE = "hugepages-2Mi"
REQUIRED, PREFERRED = (
    f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred")
)


def raw(*, labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    whole = {"containers": [{"name": "c"}]} | spec
    manifest = {"metadata": {"name": "web", "labels": labels}, "spec": whole}
    return cast("Pod", validate("Pod", manifest, source=""))


def requests_of(pod: Pod) -> dict[str, int]:
    return dict(compile_pod(pod)[1].requests)


def limits(**amounts: str) -> dict[str, Any]:
    return {"resources": {"limits": amounts}}


def priority_class(name: str, value: int, **fields: object) -> PriorityClass:
    manifest = {"metadata": {"name": name}, "value": value, **fields}
    return cast("PriorityClass", validate("PriorityClass", manifest, source=""))


def test_namespace_scheduler_and_priority_have_defaults() -> None:
    found = default_pod(raw())
    assert found.metadata.namespace == "default"
    assert found.spec.scheduler_name == "default-scheduler"
    assert found.spec.priority == 0


def test_a_complete_pod_stays_the_same_object() -> None:
    whole = default_pod(raw(containers=[{"name": "c", **limits(cpu="1")}]))
    assert default_pod(whole) is whole


def test_requests_default_to_limits_resource_by_resource() -> None:
    resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Mi"}}
    found = default_pod(
        raw(
            containers=[{"name": "c", "resources": resources}, {"name": "d"}],
            initContainers=[{"name": "i", **limits(cpu="2")}],
        )
    )
    assert requests_of(found) == {"cpu": 2000, "memory": MIB}
    assert requests_of(raw(containers=[{"name": "c", **limits(cpu="1")}])) == {}


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        ({"limits": {"cpu": "4"}}, {"cpu": 1000, "memory": MIB}),
        ({"limits": {"memory": "4Mi"}, "requests": {"cpu": "2"}}, {"cpu": 2000, "memory": MIB}),
        (
            {"limits": {"hugepages-2Mi": "4Mi"}},
            {"cpu": 1000, "hugepages-2Mi": 4 * MIB, "memory": MIB},
        ),
        ({"limits": {"x.io/gpu": "4"}}, {"cpu": 1000, "memory": MIB}),
        ({}, {"cpu": 1000, "memory": MIB}),
    ],
)
def test_pod_level_requests_default_to_those_of_containers_then_to_limits(
    resources: dict[str, Any], requests: dict[str, int]
) -> None:
    pod = raw(containers=[{"name": "c", **limits(cpu="1", memory="1Mi")}], resources=resources)
    assert requests_of(default_pod(pod)) == requests


def test_resources_for_containers_only_stay_with_them() -> None:
    containers = [{"name": "c", **limits(**{"x.io/gpu": "1", HUGE: "2Mi"})}]
    found = default_pod(raw(containers=containers, resources={"requests": {"cpu": "1"}}))
    assert found.spec.resources is not None
    assert set(found.spec.resources.requests) == {"cpu"}
    assert requests_of(found) == {"cpu": 1000, HUGE: 2 * MIB, "x.io/gpu": 1}


def test_pod_level_limits_apply_to_resources_that_no_container_names() -> None:
    assert requests_of(default_pod(raw(resources={"limits": {"cpu": "3"}}))) == {"cpu": 3000}


def test_host_networking_makes_container_ports_host_ports() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 9}]
    pod = raw(containers=[{"name": "c", "ports": ports}], hostNetwork=True)
    found = compile_pod(default_pod(pod))[1]
    assert [each.port for each in found.host_ports] == [9, 80]
    again = default_pod(default_pod(pod))
    assert compile_pod(again)[1] == found


def test_priorities_are_those_of_their_class() -> None:
    classes = {
        each.metadata.name: each
        for each in (
            priority_class("high", 1000, preemptionPolicy="Never"),
            priority_class("usual", 10, globalDefault=True),
            priority_class("lower", 5, globalDefault=True),
        )
    }
    high = default_pod(raw(priorityClassName="high"), classes).spec
    assert (high.priority, high.preemption_policy) == (1000, "Never")
    assert default_pod(raw(), classes).spec.priority == 5
    assert default_pod(raw(priority=3), classes).spec.priority == 3
    node_critical = default_pod(raw(priorityClassName="system-node-critical"))
    assert node_critical.spec.priority == 2_000_001_000
    assert default_pod(raw(priorityClassName="high", priority=7)).spec.priority == 7


def test_an_unknown_priority_class_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        default_pod(raw(priorityClassName="high"), source="a.yaml")
    assert str(caught.value) == (
        'a.yaml: Pod "web": spec.priorityClassName: "high" is not a priority class'
        " among the manifests"
    )


def test_a_pod_without_containers_is_refused() -> None:
    with pytest.raises(InputError, match=r'Pod "web": spec\.containers: must not be empty'):
        default_pod(raw(containers=[]))


def test_keys_to_match_are_merged_into_pod_affinity_once() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["rev", "missing"],
        "mismatchLabelKeys": ["tenant"],
    }
    blind = {"topologyKey": "zone", "matchLabelKeys": ["rev"]}
    affinity = {
        "podAffinity": {REQUIRED: [term, blind]},
        "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]},
    }
    pod = default_pod(raw(labels={"rev": "1", "tenant": "a"}, affinity=affinity))
    found = compile_pod(pod)[1]
    for each in (found.pod_affinity[0], found.preferred_pod_anti_affinity[0]):
        assert each.selector is not None
        assert [(r.key, r.operator, r.values) for r in each.selector.requirements] == [
            ("app", "In", ("web",)), ("rev", "In", ("1",)), ("tenant", "NotIn", ("a",)),
        ]  # fmt: skip
    assert found.pod_affinity[1].selector is None
    assert compile_pod(default_pod(pod))[1] == found


def test_affinity_without_keys_is_unchanged() -> None:
    affinity = {"podAffinity": {REQUIRED: [{"topologyKey": "zone"}]}}
    pod = raw(affinity=affinity)
    assert default_pod(pod).spec.affinity is pod.spec.affinity


def test_allocatable_defaults_to_capacity() -> None:
    def node(**status: object) -> Node:
        return cast(
            "Node", validate("Node", {"metadata": {"name": "n"}, "status": status}, source="")
        )

    full = {"cpu": "4", "pods": "10"}
    assert compile_node(default_node(node(capacity=full))).allocatable_pods == 10
    facts = node(capacity=full, allocatable={"cpu": "3"})
    assert default_node(facts) is facts
    assert compile_node(default_node(node())).allocatable == ()


def amounts(*sizes: str) -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(sizes))


def resources_of(requests: Any, limits: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={"requests": requests, "limits": limits})


# No request exceeds its limit, which would be refused; nor does the sum of a pod's containers
# exceed the pod's own requests.
RESOURCES = resources_of(amounts("1", "500m", "2"), amounts("2", "2500m", "3"))
WHOLE = resources_of(amounts("19", "20"), amounts("20", "30"))
CONTAINERS = st.lists(st.fixed_dictionaries({"resources": RESOURCES}), min_size=1, max_size=3)


@given(CONTAINERS, CONTAINERS, st.none() | WHOLE, st.booleans())
def test_setting_defaults_twice_changes_nothing(
    containers: list[Any], init: list[Any], resources: Any, host_network: bool
) -> None:
    pod = raw(
        containers=containers, initContainers=init, resources=resources, hostNetwork=host_network
    )
    once = default_pod(pod)
    assert default_pod(once) == once
    assert compile_pod(default_pod(once)) == compile_pod(once)


def test_amounts_are_rounded_up_to_thousandths_container_by_container() -> None:
    tiny = {"resources": {"requests": {"cpu": "0.1m"}, "limits": {"cpu": "0.00011"}}}
    found = default_pod(raw(containers=[{"name": "a", **tiny}, {"name": "b", **tiny}]))

    assert requests_of(found)["cpu"] == 2
    first = found.spec.containers[0].resources
    assert first is not None
    assert (str(first.requests["cpu"]), str(first.limits["cpu"])) == ("1m", "1m")


def test_overhead_and_pod_level_requests_are_rounded_up_too() -> None:
    whole = {"requests": {"cpu": "1.0001"}, "limits": {"cpu": "2.0001"}}
    found = default_pod(raw(resources=whole, overhead={"cpu": "0.0001"}))

    assert requests_of(found)["cpu"] == 1002
    assert found.spec.resources is not None
    assert str(found.spec.resources.limits["cpu"]) == "2001m"


def test_amounts_of_nodes_are_rounded_up() -> None:
    manifest = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1.0001"}}}
    node = cast("Node", validate("Node", manifest, source=""))

    assert dict(compile_node(default_node(node)).allocatable) == {"cpu": 1001}
    assert default_node(default_node(node)) == default_node(node)


NOT_READY, UNREACHABLE = (f"node.kubernetes.io/{state}" for state in ("not-ready", "unreachable"))


def tolerated(pod: Pod) -> list[tuple[str, str, str, int | None]]:
    return [
        (each.key, each.operator, each.effect, each.toleration_seconds)
        for each in pod.spec.tolerations
    ]


def test_pods_tolerate_unready_and_unreachable_nodes_for_five_minutes() -> None:
    own = {"key": "mine", "operator": "Exists"}

    assert tolerated(default_pod(raw(tolerations=[own]))) == [
        ("mine", "Exists", "", None),
        (NOT_READY, "Exists", "NoExecute", 300),
        (UNREACHABLE, "Exists", "NoExecute", 300),
    ]


@pytest.mark.parametrize(
    ("given_tolerations", "added"),
    [
        ([{"operator": "Exists"}], []),
        ([{"operator": "Exists", "effect": "NoExecute"}], []),
        ([{"operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
        ([{"key": NOT_READY, "operator": "Exists"}], [UNREACHABLE]),
        ([{"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}], [NOT_READY]),
        (
            [{"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}],
            [NOT_READY, UNREACHABLE],
        ),
    ],
)
def test_a_pods_own_toleration_replaces_the_default(
    given_tolerations: list[dict[str, str]], added: list[str]
) -> None:
    found = default_pod(raw(tolerations=given_tolerations))

    assert [each.key for each in found.spec.tolerations[len(given_tolerations) :]] == added
