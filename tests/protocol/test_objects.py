"""API objects are read strictly, and errors name the path of the field."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest
from pydantic import ValidationError

from roadstead.protocol import objects
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import Node, Pod, base, validate
from roadstead.protocol.objects.base import INTERNED_MAX_VALUES, ApiModel, without_nulls
from roadstead.protocol.quantity import parse_quantity


def pod(**spec: object) -> dict[str, Any]:
    containers = [{"name": "c", "image": "busybox"}]
    return {"metadata": {"name": "web"}, "spec": {"containers": containers} | spec}


def container(**fields: object) -> dict[str, Any]:
    return pod(containers=[{"name": "c"} | fields])


def requests(amount: object) -> dict[str, Any]:
    return container(resources={"requests": {"cpu": amount}})


def node(**parts: object) -> dict[str, Any]:
    return {"metadata": {"name": "n7"}, **parts}


def refusal(kind: str, manifest: object) -> str:
    with pytest.raises(InputError) as caught:
        validate(kind, manifest, source="in.yaml")
    assert len(str(caught.value)) < 400
    return str(caught.value)


def read_pod(manifest: object) -> Pod:
    return cast("Pod", validate("Pod", manifest, source=""))


def test_an_error_names_source_object_field_value_and_rule() -> None:
    assert refusal("Node", node(status={"allocatable": {"cpu": "12x"}})) == (
        'in.yaml: Node "n7": status.allocatable.cpu: "12x" is not a quantity'
        ' (want e.g. "500m", "4", "2Gi")'
    )
    assert refusal("Pod", requests(True)) == (
        'in.yaml: Pod "web": spec.containers[0].resources.requests.cpu: True is not a quantity'
        ' (want e.g. "500m", "4", "2Gi")'
    )


CPU = "spec.containers[0].resources.requests.cpu"
TERM: dict[str, Any] = {"topologyKey": "zone"}


def anti(**term: object) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM | term]}
    return pod(affinity={"podAntiAffinity": required})


def spread(**fields: object) -> dict[str, Any]:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} | fields
    return pod(topologySpreadConstraints=[{k: v for k, v in whole.items() if v is not ...}])


@pytest.mark.parametrize(
    ("kind", "manifest", "message"),
    [
        ("Pod", requests(True), f"{CPU}: True is not a quantity"),
        ("Pod", requests(math.nan), f"{CPU}: nan is not a quantity"),
        ("Pod", requests(math.inf), f"{CPU}: inf is not a quantity"),
        ("Pod", requests([1]), f"{CPU}: list of 1 is not a quantity"),
        ("Pod", requests({"x": {"y": 1}}), f"{CPU}: dict of 1 is not a quantity"),
        ("Pod", requests("1e9999999999999"), "is not a quantity"),
        ("Pod", requests("9" * 100_000), "is not a quantity"),
        ("Pod", requests(10**5000), "an integer of 16610 bits is not a quantity"),
        ("Pod", requests("-1"), f'{CPU}: "-1" must not be negative'),
        ("Pod", requests(-0.5), "must not be negative"),
        ("Pod", requests(""), "is not a quantity"),
        ("Pod", requests("NaN"), "is not a quantity"),
        ("Pod", container(resources={"requests": ["cpu"]}), "requests: list of 1 must be a map"),
        (
            "Pod",
            container(resources={"requests": {1: "2"}}),
            "requests: 1 must be a string to be a key",
        ),
        ("Pod", container(resources=7), "resources: 7 must be a map"),
        ("Pod", container(name=["c"]), "containers[0].name: list of 1 must be a string"),
        ("Pod", container(image=1.5), "containers[0].image: 1.5 must be a string"),
        ("Pod", container(image="x" * 5000), 'image: "xxx'),
        (
            "Pod",
            container(ports=[{"hostPort": 65536}]),
            "hostPort: 65536 must be no more than 65535",
        ),
        ("Pod", container(ports=[{"hostPort": -1}]), "hostPort: -1 must be no less than 0"),
        ("Pod", container(ports=[{"hostPort": "80"}]), 'hostPort: "80" must be a whole number'),
        ("Pod", container(ports=[{"hostPort": 80.5}]), "hostPort: 80.5 must be a whole number"),
        ("Pod", container(ports=[{"protocol": "tcp"}]), 'protocol: "tcp" must be one of'),
        ("Pod", container(ports={"hostPort": 1}), "ports: dict of 1 must be a list"),
        ("Pod", container(restartPolicy="Sometimes"), "must be one of"),
        ("Pod", pod(containers="c"), 'spec.containers: "c" must be a list'),
        ("Pod", pod(containers=["c"]), 'spec.containers[0]: "c" must be a map'),
        ("Pod", pod(containers=[None]), "spec.containers[0]: None must be a map"),
        ("Pod", pod(priority=2**31), "spec.priority: 2147483648 must be no more than"),
        ("Pod", pod(priority=True), "spec.priority: True must be a whole number"),
        ("Pod", pod(priority="high"), 'spec.priority: "high" must be a whole number'),
        ("Pod", pod(preemptionPolicy="Maybe"), 'spec.preemptionPolicy: "Maybe" must be one of'),
        ("Pod", pod(nodeSelector={"a": 1}), "spec.nodeSelector.a: 1 must be a string"),
        ("Pod", pod(nodeSelector={"a/b.c": None, "d": True}), "spec.nodeSelector.d: True must be"),
        ("Pod", pod(nodeSelector={"a/b.c": 1}), 'spec.nodeSelector["a/b.c"]: 1 must be a string'),
        ("Pod", pod(nodeName="n" * 254), 'spec.nodeName: "nnn'),
        ("Pod", pod(hostNetwork="yes"), 'spec.hostNetwork: "yes" must be true or false'),
        ("Pod", pod(tolerations=[{"operator": "In"}]), 'spec.tolerations[0].operator: "In"'),
        ("Pod", pod(tolerations=[{"effect": "Never"}]), 'spec.tolerations[0].effect: "Never"'),
        ("Pod", pod(schedulingGates=[{}]), "spec.schedulingGates[0].name: is missing"),
        ("Pod", pod(schedulingGates=[{"name": ""}]), 'name: "" must not be empty'),
        ("Pod", pod(volumes=[{"persistentVolumeClaim": {}}]), "claimName: is missing"),
        ("Pod", pod(overhead={"cpu": "-1m"}), 'spec.overhead.cpu: "-1m" must not be negative'),
        ("Pod", anti(topologyKey=""), 'topologyKey: "" must not be empty'),
        ("Pod", anti(labelSelector=[]), "labelSelector: list of 0 must be a map"),
        ("Pod", anti(labelSelector={"matchLabels": {"a": 1}}), "matchLabels.a: 1 must be a string"),
        (
            "Pod",
            anti(labelSelector={"matchExpressions": [{"values": "x"}]}),
            'values: "x" must be a list',
        ),
        ("Pod", anti(namespaces=[1]), "namespaces[0]: 1 must be a string"),
        ("Pod", spread(maxSkew=0), "maxSkew: 0 must be no less than 1"),
        ("Pod", spread(maxSkew=...), "maxSkew: is missing"),
        ("Pod", spread(minDomains=0), "minDomains: 0 must be no less than 1"),
        ("Pod", spread(whenUnsatisfiable="Cry"), 'whenUnsatisfiable: "Cry" must be one of'),
        ("Pod", spread(nodeTaintsPolicy="honor"), 'nodeTaintsPolicy: "honor" must be one of'),
        ("Pod", {"metadata": {}}, "metadata.name: is missing"),
        ("Pod", {"metadata": {"name": ""}}, 'metadata.name: "" must not be empty'),
        ("Pod", {"metadata": {"name": "x" * 254}}, "must be no more than 253 characters"),
        ("Pod", {"metadata": {"name": "\ud800"}}, "is not valid Unicode"),
        ("Pod", {"metadata": {"name": "x", "labels": {"a": 5}}}, "metadata.labels.a: 5 must be"),
        (
            "Pod",
            {"metadata": {"name": "x", "labels": {5: "a"}}},
            "labels: 5 must be a string to be a key",
        ),
        (
            "Pod",
            {"metadata": {"name": "x", "ownerReferences": [{"controller": 1}]}},
            "controller: 1",
        ),
        ("Pod", {"metadata": []}, "metadata: list of 0 must be a map"),
        ("Pod", {}, "metadata: is missing"),
        ("Pod", [], "list of 0 must be a map"),
        ("Pod", None, "None must be a map"),
        ("Pod", "x" * 10_000, "must be a map"),
        (
            "Node",
            node(spec={"taints": [{"key": "a", "effect": "no"}]}),
            'effect: "no" must be one of',
        ),
        ("Node", node(spec={"taints": [{"key": "a"}]}), "spec.taints[0].effect: is missing"),
        ("Node", node(spec={"unschedulable": "true"}), 'spec.unschedulable: "true" must be true'),
        ("Node", node(status={"images": [{"sizeBytes": -1}]}), "sizeBytes: -1 must be no less"),
        ("Node", node(status={"images": [{"names": "x"}]}), 'images[0].names: "x" must be a list'),
        ("PersistentVolume", node(spec={"accessModes": ["RW"]}), 'accessModes[0]: "RW" must be'),
        ("CSINode", node(spec={"drivers": [{"name": ""}]}), 'drivers[0].name: "" must not be'),
        ("CSIStorageCapacity", node(capacity="x"), 'capacity: "x" is not a quantity'),
        ("PodDisruptionBudget", node(spec={"minAvailable": 1.5}), "want a number or a percentage"),
        ("PodDisruptionBudget", node(spec={"minAvailable": True}), "want a number or a percentage"),
        ("Deployment", node(spec={"replicas": -1}), "spec.replicas: -1 must be no less than 0"),
        ("Deployment", node(spec={"replicas": 10**30}), "spec.replicas"),
        ("Thing", {}, '"Thing" is not a kind that scheduling looks at'),
    ],
)
def test_hostile_objects_are_refused(kind: str, manifest: object, message: str) -> None:
    assert message in refusal(kind, manifest)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def test_excessive_depth_is_refused_in_read_fields_and_ignored_in_others() -> None:
    assert read_pod({"metadata": {"name": "x", "managedFields": nested(100_000)}})
    assert "too deep" in refusal("Pod", {"metadata": {"name": "x", "labels": nested(100_000)}})


def test_quantities_may_be_strings_or_numbers() -> None:
    for amount, same in ((2, "2"), (0.5, "500m"), (1e3, "1k"), (" 250m ", "250m"), ("1Gi", "1Gi")):
        found = read_pod(requests(amount)).spec.containers[0].resources
        assert found is not None
        assert found.requests == {"cpu": parse_quantity(same)}


def test_null_means_absent_for_lists_maps_strings_and_parts() -> None:
    manifest = pod(
        containers=[{"name": "c", "ports": None, "resources": {"requests": None}}],
        tolerations=None, nodeSelector=None, nodeName=None, affinity=None, overhead=None,
        volumes=[{"name": "v", "emptyDir": None, "persistentVolumeClaim": None}],
    )  # fmt: skip
    found = read_pod({**manifest, "status": None})
    assert found.spec.containers[0].ports == found.spec.tolerations == ()
    assert found.spec.node_selector == found.spec.overhead == {}
    assert found.spec.node_name == ""
    assert found.status == objects.PodStatus()


def test_unknown_fields_and_python_names_are_ignored() -> None:
    found = read_pod(pod(node_name="n", nodeName="m", futureField={"x": [1]}))
    assert found.spec.node_name == "m"
    assert read_pod(pod(node_name="n")).spec.node_name == ""


def test_models_are_built_by_name_in_code_and_immutable() -> None:
    port = objects.ContainerPort(host_ip="10.0.0.1", host_port=80)
    assert port == objects.ContainerPort.read({"hostIP": "10.0.0.1", "hostPort": 80})
    with pytest.raises(ValidationError):
        port.host_port = 81


def test_parts_built_in_code_are_used_unchanged() -> None:
    part = objects.Container(name="c")
    assert objects.PodSpec(containers=(part,)).containers == (part,)


def test_budgets_are_numbers_or_percentages() -> None:
    budget = validate("PodDisruptionBudget", node(spec={"minAvailable": "50%"}), source="")
    assert cast("objects.PodDisruptionBudget", budget).spec.min_available == "50%"


def test_equal_parts_of_two_objects_are_one_object_and_different_ones_are_not() -> None:
    one, other = (read_pod(container(ports=[{"hostPort": 80}])) for _ in range(2))
    third = read_pod(container(ports=[{"hostPort": 81}]))
    assert one.spec.containers is other.spec.containers
    assert third.spec.containers != one.spec.containers


def test_the_cache_of_parts_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "INTERNED_MAX_VALUES", 2)
    pods = [read_pod(container(image=f"i{number}")) for number in range(8)]
    assert [each.spec.containers[0].image for each in pods] == [f"i{n}" for n in range(8)]
    assert INTERNED_MAX_VALUES > 1000


def test_quantities_are_printed_as_strings() -> None:
    found = read_pod(requests("0.5"))
    assert found.model_dump(by_alias=True)["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "500m"
    }


def test_nulls_are_removed_from_maps_only() -> None:
    assert without_nulls({"a": None, "b": [None, {"c": None}]}) == {"b": [None, {}]}


WITH_SPEC = {"ResourceSlice", "DeviceTaintRule"}


@pytest.mark.parametrize("kind", sorted(objects.KINDS.keys() - WITH_SPEC))
def test_most_kinds_need_only_a_name(kind: str) -> None:
    found = validate(kind, {"metadata": {"name": "x"}}, source="")
    assert type(found).__name__ == kind
    assert found.metadata.name == "x"
    assert found.metadata.controller is None
    assert kind in objects.API_GROUPS


def test_the_controller_is_the_owner_marked_as_controller() -> None:
    owners = [{"name": "a", "kind": "X"}, {"name": "b", "kind": "ReplicaSet", "controller": True}]
    meta = {"name": "x", "ownerReferences": owners}
    controller = read_pod({"metadata": meta}).metadata.controller
    assert controller is not None
    assert controller.name == "b"


def test_every_model_has_a_description_or_a_single_part() -> None:
    top = [model for model in objects.KINDS.values() if issubclass(model, ApiModel)]
    assert all(model.__doc__ for model in top)
    assert Node in top
