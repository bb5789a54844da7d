"""Facts of the cluster: namespaces, objects that select pods, disruption budgets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.cluster import ClusterFacts, SelectsPods, compile_cluster
from roadstead.facts.disruption import DisruptionBudget, compile_budgets
from roadstead.facts.parse_selectors import SelectorError
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.objects import validate
from roadstead.protocol.plain_data import pack, unpack

WEB = LabelSelector((Requirement("app", "In", ("web",)),))
BROKEN = {"matchExpressions": [{"key": "a", "operator": "Near"}]}


def objects(kind, *specs, **metadata):
    meta = {"name": "x", "namespace": "prod"} | metadata
    return [validate(kind, {"metadata": meta, "spec": spec}, source="") for spec in specs]


def budget(spec=None, **status):
    manifest = {
        "metadata": {"name": "b", "namespace": "prod"}, "spec": spec or {}, "status": status
    }  # fmt: skip
    (found,) = compile_budgets([validate("PodDisruptionBudget", manifest, source="")])
    return found


def test_without_objects_a_cluster_has_no_facts():
    assert compile_cluster() == ClusterFacts()


def test_namespaces_have_their_labels_in_order():
    meta = {"name": "prod", "labels": {"b": "2", "a": "1"}}
    found = compile_cluster(namespaces=[validate("Namespace", {"metadata": meta}, source="")])

    assert found.namespaces == (("prod", (("a", "1"), ("b", "2"))),)


def test_objects_that_select_pods_are_in_the_order_of_their_kinds():
    labels = {"matchLabels": {"app": "web"}}
    found = compile_cluster(
        stateful_sets=objects("StatefulSet", {"selector": labels, "serviceName": "x"}),
        replica_sets=objects("ReplicaSet", {"selector": labels}),
        replication_controllers=objects("ReplicationController", {"selector": {"app": "web"}}),
        services=objects("Service", {"selector": {"app": "web"}}),
    )

    kinds = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
    assert found.selecting == tuple(SelectsPods(kind, "prod", "x", WEB) for kind in kinds)


@pytest.mark.parametrize("kind", ["Service", "ReplicationController"])
def test_a_label_map_that_is_empty_selects_nothing(kind):
    """An empty map of a Service selects no pod; an empty selector of a ReplicaSet selects all."""
    given_objects = {
        "Service": "services", "ReplicationController": "replication_controllers"
    }  # fmt: skip

    for spec in ({}, {"selector": {}}):
        found = compile_cluster(**{given_objects[kind]: objects(kind, spec)})
        assert found.selecting[0].selector is None, "nothing is selected"


def test_an_empty_selector_of_a_workload_selects_all_pods():
    found = compile_cluster(replica_sets=objects("ReplicaSet", {"selector": {}}))

    assert found.selecting[0].selector == LabelSelector()


def test_a_workload_whose_selector_does_not_parse_is_refused():
    with pytest.raises(SelectorError, match='"Near" is not a valid label selector operator'):
        compile_cluster(replica_sets=objects("ReplicaSet", {"selector": BROKEN}))


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from("123"), min_size=1))
def test_a_service_selects_the_pods_that_have_all_its_labels(labels):
    (service,) = compile_cluster(services=objects("Service", {"selector": labels})).selecting

    assert service.selector.matches(labels | {"more": "x"})
    for key in labels:
        assert not service.selector.matches({k: v for k, v in labels.items() if k != key})
        assert not service.selector.matches(labels | {key: "other"})


def test_a_budget_has_the_fields_that_preemption_reads():
    found = budget(
        {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        disruptionsAllowed=3,
        disruptedPods={"b": "2024-01-01T00:00:00Z", "a": None},
    )

    assert found == DisruptionBudget("prod", "b", WEB, 3, ("a", "b"))


@pytest.mark.parametrize(
    ("selector", "compiled"), [(None, None), (BROKEN, None), ({}, LabelSelector()), ]
)  # fmt: skip
def test_a_budget_with_a_broken_selector_selects_nothing_and_is_kept(selector, compiled):
    assert budget({"selector": selector}) == DisruptionBudget("prod", "b", compiled)


def test_facts_of_a_cluster_are_decoded_unchanged():
    found = compile_cluster(
        namespaces=objects("Namespace", {}, labels={"a": "1"}),
        services=objects("Service", {"selector": {"app": "web"}}),
        budgets=objects("PodDisruptionBudget", {"selector": {}}),
    )

    assert from_wire(ClusterFacts, unpack(pack(to_wire(found)))) == found
