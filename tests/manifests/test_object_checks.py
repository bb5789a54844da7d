"""Objects that the API server refuses fail at reading: source, object, field, value, rule."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.manifests import Manifests, expand_workloads, read_manifests
from roadstead.protocol.errors import InputError, printable

SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
NAME_PART = "name part must consist of alphanumeric characters"
VALUE = "a valid label must be an empty string or consist of alphanumeric characters"
LARGEST = 2**63 - 1


def read(*documents: object) -> Manifests:
    text = "\n".join(json.dumps(each) for each in documents)
    return read_manifests(["-"], stdin=io.BytesIO(text.encode()))


def refusal(*documents: object) -> str:
    with pytest.raises(InputError) as caught:
        read(*documents)
    return str(caught.value)


def pod(spec: dict[str, Any] | None = None, **metadata: object) -> dict[str, Any]:
    meta = {"name": "web-0", **metadata}
    whole = {"containers": [{"name": "c"}], **(spec or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole}


def asking(**amounts: object) -> dict[str, Any]:
    return pod({"containers": [{"name": "c", "resources": {"requests": amounts}}]})


def asking_for(resource: str, amount: object) -> dict[str, Any]:
    return pod({"containers": [{"resources": {"requests": {resource: amount}}}]})


def node(**status: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-1"}, "status": status}


def thing(kind: str, version: str, **metadata: object) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", **metadata}}


@pytest.mark.parametrize(
    ("kind", "version", "wanted"),
    [
        ("Pod", "v2", "v1"),
        ("Pod", "v1beta1", "v1"),
        ("Pod", "apps/v1", "v1"),
        ("Pod", "", "v1"),
        ("Node", "v2", "v1"),
        ("Deployment", "v1", "apps/v1"),
        ("Deployment", "extensions/v1beta1", "apps/v1"),
        ("CronJob", "batch/v1beta1", "batch/v1"),
        ("PodDisruptionBudget", "policy/v1beta1", "policy/v1"),
        ("PodGroup", "scheduling.x-k8s.io/v1", "scheduling.x-k8s.io/v1alpha1"),
    ],
)
def test_an_unserved_api_version_is_refused(kind: str, version: str, wanted: str) -> None:
    assert refusal(thing(kind, version)) == (
        f'standard input: {kind} "x": apiVersion: "{version}" is not served for this kind by '
        f"Kubernetes 1.34 (want {wanted})"
    )


@pytest.mark.parametrize(
    "name",
    ["Web", "a_b", "../x", "a/b", "-a", "a-", "a..b", "a\u001b[31m", "a\n", "ä", "a b", "a\u0000"],
)
@pytest.mark.parametrize(
    ("kind", "version"), [("Pod", "v1"), ("Node", "v1"), ("Deployment", "apps/v1")]
)
def test_a_name_that_is_not_a_subdomain_is_refused(kind: str, version: str, name: str) -> None:
    text = refusal({**pod(), "kind": kind, "apiVersion": version, "metadata": {"name": name}})

    assert text.startswith(f'standard input: {kind} "')
    assert f" is not allowed: {SUBDOMAIN}" in text
    assert ": metadata.name: " in text
    assert text.isprintable()


@pytest.mark.parametrize(
    ("document", "field", "rule"),
    [
        (thing("StatefulSet", "apps/v1", name="a" * 53), "metadata.name", "must be no more"),
        (thing("Namespace", "v1", name="a.b"), "metadata.name", LABEL),
        (thing("Service", "v1", name="0a"), "metadata.name", "a DNS-1035 label must consist of"),
        (pod(namespace="Team"), "metadata.namespace", LABEL),
        (pod(namespace="a.b"), "metadata.namespace", LABEL),
        (pod(namespace="n" * 64), "metadata.namespace", "must be no more than 63 characters"),
        (pod(uid="a\u001b[2J"), "metadata.uid", "must not contain control characters"),
        (pod(labels={"a b": "v"}), "metadata.labels", NAME_PART),
        (pod(labels={"a": "x y"}), "metadata.labels.a", VALUE),
        (pod(labels={"a.b/c": "-"}), 'metadata.labels["a.b/c"]', VALUE),
        (pod(labels={"a": "v" * 64}), "metadata.labels.a", "must be no more than 63 characters"),
        (pod(annotations={"a b": "v"}), "metadata.annotations", NAME_PART),
        (pod({"nodeName": "N"}), "spec.nodeName", SUBDOMAIN),
        (pod() | {"status": {"nominatedNodeName": "N"}}, "status.nominatedNodeName", SUBDOMAIN),
        (pod({"nodeSelector": {"a": "\u001b"}}), "spec.nodeSelector.a", VALUE),
        (pod({"priorityClassName": "A"}), "spec.priorityClassName", SUBDOMAIN),
        (pod({"schedulingGates": [{"name": "a b"}]}), "spec.schedulingGates[0].name", NAME_PART),
        (pod({"tolerations": [{"key": "a b"}]}), "spec.tolerations[0].key", NAME_PART),
        (pod({"tolerations": [{"key": "a", "value": "b c"}]}), "spec.tolerations[0].value", VALUE),
        (pod({"tolerations": [{"value": "v"}]}), "spec.tolerations[0].operator", "must be Exists"),
        (pod({"volumes": [{"name": "A"}]}), "spec.volumes[0].name", LABEL),
        (pod({"containers": [{"name": "C"}]}), "spec.containers[0].name", LABEL),
        (pod({"initContainers": [{"name": "C"}]}), "spec.initContainers[0].name", LABEL),
        (pod({"overhead": {"gpu": 1}}), "spec.overhead", "must be a standard resource"),
        (asking_for("gpu", 1), "spec.containers[0].resources.requests", "must be a standard"),
        (asking_for("a.b/c d", 1), "spec.containers[0].resources.requests", NAME_PART),
        (node() | {"spec": {"taints": [{"key": "a b", "effect": "NoExecute"}]}},
         "spec.taints[0].key", NAME_PART),
        (node(allocatable={"a.b/g": "1.5"}), 'status.allocatable["a.b/g"]', "must be an integer"),
        (node(capacity={"pods": "0.5"}), "status.capacity.pods", "must be an integer"),
    ],
)  # fmt: skip
def test_objects_that_the_api_server_refuses_are_refused(
    document: object, field: str, rule: str
) -> None:
    text = refusal(document)

    assert f": {field}: " in text
    assert f" is not allowed: {rule}" in text
    assert text.isprintable()
    assert len(text) < 700


def test_terms_of_pod_affinity_are_checked() -> None:
    term = {"topologyKey": "a b"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    where = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"

    assert f": {where}.topologyKey: " in refusal(pod({"affinity": affinity}))


def bounded(requests: object, limits: object) -> dict[str, Any]:
    resources = {"requests": requests, "limits": limits}
    return pod({"containers": [{"name": "c", "resources": resources}]})


@pytest.mark.parametrize(
    ("resource", "request_", "limit", "rule"),
    [
        ("cpu", "2", "1500m", "must be less than or equal to cpu limit of 1500m"),
        ("memory", "1Gi", "1G", "must be less than or equal to memory limit of 1G"),
        ("nvidia.com/gpu", 2, 1, "must be equal to nvidia.com/gpu limit of 1"),
        ("nvidia.com/gpu", 1, 2, "must be equal to nvidia.com/gpu limit of 2"),
        ("hugepages-2Mi", "2Mi", "4Mi", "must be equal to hugepages-2Mi limit of 4Mi"),
    ],
)
def test_a_request_that_contradicts_its_limit_is_refused(
    resource: str, request_: object, limit: object, rule: str
) -> None:
    text = refusal(bounded({resource: request_}, {resource: limit}))

    assert "spec.containers[0].resources.requests" in text
    assert text.endswith(f" is not allowed: {rule}")


@pytest.mark.parametrize(
    ("requests", "limits"),
    [
        ({"cpu": "1", "memory": "1G"}, {"cpu": "1000m"}),
        ({}, {"cpu": "1", "nvidia.com/gpu": 1}),
        ({"nvidia.com/gpu": 1}, {"cpu": "1"}),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": 1}),
    ],
)
def test_requests_within_their_limits_are_accepted(requests: object, limits: object) -> None:
    assert len(read(bounded(requests, limits)).pods) == 1


@pytest.mark.parametrize("amount", ["0.5", "1500m", "0.0001", 1.5])
def test_a_fraction_of_an_extended_resource_is_refused(amount: object) -> None:
    text = refusal(asking_for("nvidia.com/gpu", amount))

    assert 'spec.containers[0].resources.requests["nvidia.com/gpu"]: ' in text
    assert text.endswith(" is not allowed: must be an integer")


@pytest.mark.parametrize("amount", ["2", "2000m", "2.0", "1e1", 3])
def test_integers_of_an_extended_resource_are_accepted(amount: object) -> None:
    assert len(read(asking_for("nvidia.com/gpu", amount)).pods) == 1


@pytest.mark.parametrize(
    ("resource", "amount", "largest"),
    [
        ("cpu", "1e1000000", f"{LARGEST}m"),
        ("cpu", str(LARGEST), f"{LARGEST}m"),
        ("memory", "1e1000000", str(LARGEST)),
        ("memory", str(2**63), str(LARGEST)),
        ("nvidia.com/gpu", "1e30", str(LARGEST)),
    ],
)
def test_an_uncountable_amount_is_refused(resource: str, amount: str, largest: str) -> None:
    for document in (asking_for(resource, amount), node(allocatable={resource: amount})):
        assert refusal(document).endswith(f" is not allowed: must be no more than {largest}")


def test_the_largest_amounts_are_accepted() -> None:
    (found,) = read(asking_for("memory", str(LARGEST))).pods
    assert found.spec.containers[0].resources is not None
    assert found.spec.containers[0].resources.requests["memory"].value() == LARGEST
    assert read(asking_for("cpu", f"{LARGEST}m")).pods


def test_templates_are_checked_at_their_place() -> None:
    template = {"metadata": {"labels": {"a": "b c"}}, "spec": pod()["spec"]}
    job = {"template": {"spec": {"containers": [{"name": "C"}]}}}

    deployment = refusal(thing("Deployment", "apps/v1") | {"spec": {"template": template}})
    cron = refusal(thing("CronJob", "batch/v1") | {"spec": {"jobTemplate": {"spec": job}}})

    assert 'Deployment "x": spec.template.metadata.labels.a: "b c" is not allowed' in deployment
    assert 'CronJob "x": spec.jobTemplate.spec.template.spec.containers[0].name: "C"' in cron


def test_an_error_in_equal_parts_of_many_pods_is_reported_for_the_first() -> None:
    pods = [asking_for("gpu", 1) | {"metadata": {"name": f"p-{i}"}} for i in range(3)]

    assert 'Pod "p-0"' in refusal(pod(), *pods)


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
VALUES = st.recursive(
    SCALAR, lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXT, each, max_size=3)
)
FIELDS = st.sampled_from(
    (
        *("apiVersion", "kind", "metadata", "spec", "status", "items", "name", "namespace"),
        *("labels", "containers", "resources", "requests", "cpu", "a.b/c", "tolerations"),
        *("nodeSelector", "affinity", "volumes", "template", "replicas", "allocatable", "taints"),
    )
)
DOCUMENTS = st.recursive(
    SCALAR | st.sampled_from(["v1", "Pod", "Node", "List", "Deployment", "apps/v1", "1e999"]),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(FIELDS, each, max_size=6),
    max_leaves=25,
)


def check_reading(data: bytes) -> None:
    """Reading returns objects, or raises an error with its position."""
    error = None
    try:
        manifests = read_manifests(["-"], stdin=io.BytesIO(data))
        expand_workloads(manifests, manifests.nodes)
    except InputError as refused:
        error = refused
    assert error is None or error.source == "standard input", error
    assert error is None or printable(str(error)) == str(error)


@settings(max_examples=150)
@given(st.binary(max_size=64))
def test_any_bytes_give_objects_or_an_error_with_its_position(data: bytes) -> None:
    check_reading(data)


@settings(max_examples=150)
@given(DOCUMENTS, st.sampled_from(["Pod", "Node", "Deployment", "CronJob", "Service"]))
def test_any_document_gives_objects_or_an_error_with_its_position(
    document: object, kind: str
) -> None:
    if isinstance(document, dict):
        document = {"kind": kind, **document}
    check_reading(json.dumps(document).encode())


@settings(max_examples=150)
@given(st.dictionaries(FIELDS, DOCUMENTS, max_size=4), DOCUMENTS)
def test_any_spec_of_a_pod_gives_a_pod_or_an_error_with_its_position(
    spec: Any, labels: object
) -> None:
    document = pod({"containers": [{"name": "c", "resources": {"requests": spec}}], **spec})
    document["metadata"]["labels"] = labels

    check_reading(json.dumps(document).encode())


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
def test_a_selector_that_does_not_match_the_pods_of_its_workload_is_refused(kind: str) -> None:
    template = {"metadata": {"labels": {"app": "api"}}, **{"spec": pod()["spec"]}}
    workload = thing(kind, "apps/v1", namespace="shop")

    def with_selector(selector: object) -> dict[str, Any]:
        return workload | {"spec": {"selector": selector, "template": template}}

    message = refusal(with_selector({"matchLabels": {"app": "web"}}))
    assert "spec.template.metadata.labels: \"{'app': 'api'}\"" in message
    assert "`selector` does not match template `labels`" in message
    assert read(with_selector({"matchLabels": {"app": "api"}})) is not None
    assert read(with_selector(None)) is not None
