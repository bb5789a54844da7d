"""Limit ranges and runtime classes change pods at their creation, and no other pods."""

import io
import json

import pytest

from roadstead.facts.requests import pod_requests
from roadstead.manifests import expand_workloads, read_manifests
from roadstead.manifests.creation import create
from roadstead.manifests.defaults import DEFAULT_TOLERATIONS
from roadstead.protocol.errors import InputError


def pod(name="p", *, resources=None, meta=None, init=None, **spec):
    containers = [{"name": "c", "image": "x", "resources": resources or {}}]
    inits = [{"name": "i", "image": "x", "resources": init}] if init is not None else []
    spec = {"containers": containers, "initContainers": inits} | spec
    return {"kind": "Pod", "metadata": {"name": name} | (meta or {}), "spec": spec}


def limit_range(name="l", kind="Container", namespace="default", **values):
    metadata = {"name": name, "namespace": namespace}
    return {
        "kind": "LimitRange",
        "metadata": metadata,
        "spec": {"limits": [{"type": kind} | values]},
    }


def runtime_class(name="kata", **fields):
    return {"kind": "RuntimeClass", "metadata": {"name": name}, "handler": "h"} | fields


def created(*documents):
    """Return the stored pods, and the notes except the one on tolerations."""
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": documents}).encode()
    manifests = read_manifests(["-"], stdin=io.BytesIO(text))
    found = create(manifests, manifests.pods, ())
    assert not found.refused
    return list(found.pods), [each for each in found.notes if DEFAULT_TOLERATIONS not in each]


def refusal(*documents):
    """Return the reason why the only pod or claim among the documents is not created."""
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": documents}).encode()
    manifests = read_manifests(["-"], stdin=io.BytesIO(text))
    found = create(manifests, manifests.pods, ())
    (refused,) = found.refused
    assert not found.pods
    assert not found.claims
    return refused.reason


def requests_of(pod):
    return {name: str(amount) for name, amount in pod_requests(pod).items()}


@pytest.mark.parametrize(
    ("values", "resources", "requests", "limits"),
    [
        ({"defaultRequest": {"cpu": "1"}}, {}, {"cpu": "1"}, {}),
        ({"default": {"cpu": "2"}}, {}, {"cpu": "2"}, {"cpu": "2"}),
        ({"max": {"cpu": "3"}}, {}, {"cpu": "3"}, {"cpu": "3"}),
        ({"min": {"cpu": "100m"}}, {}, {"cpu": "100m"}, {}),
        (
            {"max": {"cpu": "4"}, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
            {},
            {"cpu": "1"},
            {"cpu": "2"},
        ),
        (
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}},
            {"cpu": "500m"},
            {"cpu": "2"},
        ),
        (
            {"defaultRequest": {"memory": "1Gi"}},
            {"requests": {"cpu": "1"}},
            {"cpu": "1", "memory": "1Gi"},
            {},
        ),
    ],
)
def test_containers_without_amounts_get_the_defaults_of_their_namespace(
    values, resources, requests, limits
):
    (found,), notes = created(limit_range(**values), pod(resources=resources))

    (container,) = found.spec.containers
    assert {key: str(each) for key, each in container.resources.requests.items()} == requests
    assert {key: str(each) for key, each in container.resources.limits.items()} == limits
    assert notes == [
        "Applied, as when pods are created: LimitRange default/l, to 1 of them (default/p)."
    ]


def test_init_containers_get_the_defaults_too():
    (found,), _ = created(limit_range(defaultRequest={"cpu": "1"}), pod(init={}))
    assert str(found.spec.init_containers[0].resources.requests["cpu"]) == "1"


@pytest.mark.parametrize(
    ("limits", "given"),
    [
        (limit_range(defaultRequest={"cpu": "1"}), pod(meta={"uid": "u-1"})),
        (limit_range(defaultRequest={"cpu": "1"}), pod(nodeName="n")),
        (limit_range(namespace="other", defaultRequest={"cpu": "1"}), pod()),
        (limit_range(kind="Pod", defaultRequest={"cpu": "1"}), pod()),
        (limit_range(defaultRequest={"cpu": "1"}), pod(resources={"requests": {"cpu": "1"}})),
        (limit_range(defaultRequest={"cpu": "1"}), pod(resources={"limits": {"cpu": "3"}})),
    ],
)
def test_stored_and_unaffected_pods_are_unchanged(limits, given):
    ((found,), notes), ((plain,), _) = created(limits, given), created(given)
    assert (found, notes) == (plain, [])


def test_the_first_limit_range_by_name_sets_the_defaults():
    two = limit_range("b", defaultRequest={"cpu": "2", "memory": "1Gi"})
    (found,), notes = created(two, limit_range("a", defaultRequest={"cpu": "1"}), pod())

    assert requests_of(found) == {"cpu": "1", "memory": "1Gi"}
    assert len(notes) == 2


KATA = runtime_class(
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={
        "nodeSelector": {"kata": "yes"},
        "tolerations": [{"key": "kata", "operator": "Exists"}],
    },
)


def test_a_runtime_class_adds_its_overhead_and_node_selector():
    (found,), notes = created(KATA, pod(runtimeClassName="kata", nodeSelector={"zone": "a"}))

    assert requests_of(found) == {"cpu": "250m"}
    assert found.spec.node_selector == {"zone": "a", "kata": "yes"}
    assert [each.key for each in found.spec.tolerations][-1] == "kata"
    assert notes == [
        "Applied, as when pods are created: RuntimeClass kata, to 1 of them (default/p)."
    ]


def test_a_missing_runtime_class_is_reported_as_unknown():
    (found,), notes = created(pod(runtimeClassName="gvisor"))
    assert not found.spec.overhead
    assert notes == [
        'RuntimeClass "gvisor" of 1 pod is not in the cluster: its overhead, node selector and '
        "tolerations are not applied."
    ]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"overhead": {"cpu": "1"}},
            'spec.overhead is not that of RuntimeClass "kata"',
        ),
        (
            {"nodeSelector": {"kata": "no"}},
            'spec.nodeSelector contradicts RuntimeClass "kata" in "kata"',
        ),
    ],
)
def test_a_pod_that_contradicts_its_runtime_class_is_not_created(spec, text):
    assert refusal(KATA, pod(runtimeClassName="kata", **spec)) == text


def test_a_wrong_template_of_an_ephemeral_volume_is_refused_with_its_place():
    claim = {"spec": {"resources": {"requests": {"storage": "abc"}}}}
    volumes = [{"name": "w", "emptyDir": {}}, {"name": "v", "ephemeral": {}}]
    volumes[1]["ephemeral"]["volumeClaimTemplate"] = claim
    document = pod(volumes=volumes)
    manifests = read_manifests(["-"], stdin=io.BytesIO(json.dumps(document).encode()))

    with pytest.raises(InputError) as refused:
        create(manifests, manifests.pods, ())

    field = "spec.volumes[1].ephemeral.volumeClaimTemplate.spec.resources.requests.storage"
    place = f'standard input: Pod "p": {field}: "abc"'
    assert str(refused.value).startswith(f"{place} is not a quantity")


def test_the_template_of_a_workload_is_refused_with_the_file_of_the_workload():
    claim = {"spec": {"resources": {"requests": {"storage": "abc"}}}}
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": claim}}]
    document = {
        "kind": "Job",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": pod(volumes=volumes)["spec"]}},
    }
    manifests = read_manifests(["-"], stdin=io.BytesIO(json.dumps(document).encode()))

    with pytest.raises(InputError, match=r'^standard input: Pod "web-\w+": spec.volumes\[0\]'):
        create(manifests, expand_workloads(manifests, ()).pods, ())
