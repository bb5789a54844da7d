"""Quotas: the counted usage, the admitted objects, and the messages of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.manifests.created import (
    claim,
    container,
    created,
    limit_range,
    pod,
    quota,
    reason,
    refusals,
)

ONE = container(cpu="1")
GPU = "nvidia.com/gpu"
SET = {"kind": "StatefulSet", "metadata": {"name": "db"}}


def of_set(replicas: int) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"name": "data"}, "spec": wanted}
    return SET | {
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "template": {"spec": {"containers": [ONE]}},
            "volumeClaimTemplates": [template],
        }
    }


def test_pods_are_admitted_in_order_until_the_quota_is_used() -> None:
    pods = [pod(f"p-{n}", ONE) for n in range(4)]
    stored = pod("runs", container(cpu="500m"), nodeName="n")

    found = refusals(quota({"requests.cpu": "2500m"}), *pods, stored)

    text = "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2500m, limited: "
    assert found == {"p-2": f"{text}requests.cpu=2500m", "p-3": f"{text}requests.cpu=2500m"}


def test_a_smaller_pod_after_a_refused_one_may_fit() -> None:
    found = refusals(quota({"cpu": "2"}), pod("a", container(cpu="3")), pod("b", ONE))
    assert list(found) == ["a"]


def test_all_resources_that_are_exceeded_are_named() -> None:
    text = reason(
        quota({"requests.cpu": "1", "limits.memory": "1Gi", "pods": "5"}),
        pod("p", container(limits={"memory": "2Gi"}, cpu="2")),
    )
    assert text == (
        "exceeded quota: q, requested: limits.memory=2Gi,requests.cpu=2, "
        "used: limits.memory=0,requests.cpu=0, limited: limits.memory=1Gi,requests.cpu=1"
    )


@pytest.mark.parametrize(
    ("hard", "of", "used"),
    [
        ({"pods": "0"}, {}, "pods=1"),
        ({"count/pods": "0"}, {}, "count/pods=1"),
        ({"cpu": "100m"}, {}, "cpu=1"),
        ({"requests.cpu": "100m"}, {"overhead": {"cpu": "250m"}}, "requests.cpu=1250m"),
        (
            {"requests.cpu": "100m"},
            {"initContainers": [container("i", cpu="3")]},
            "requests.cpu=3",
        ),
        (
            {"requests.cpu": "100m"},
            {"initContainers": [container("s", cpu="3") | {"restartPolicy": "Always"}]},
            "requests.cpu=4",
        ),
        (
            {"requests.cpu": "100m"},
            {"resources": {"requests": {"cpu": "6"}}},
            "requests.cpu=6",
        ),
        (
            {"limits.cpu": "1"},
            {"resources": {"limits": {"cpu": "6"}}, "overhead": {"cpu": "1"}},
            "limits.cpu=7",
        ),
        (
            {f"requests.{GPU}": "1"},
            {"containers": [container(limits={GPU: "2"})]},
            f"requests.{GPU}=2",
        ),
        (
            {"requests.ephemeral-storage": "1Gi"},
            {"containers": [container(limits={"ephemeral-storage": "2Gi"})]},
            "requests.ephemeral-storage=2Gi",
        ),
        (
            {"hugepages-2Mi": "2Mi"},
            {"containers": [container(limits={"hugepages-2Mi": "4Mi"}, cpu="1")]},
            "hugepages-2Mi=4Mi",
        ),
    ],
)
def test_the_usage_of_a_pod_is_computed_like_upstream(hard: Any, of: Any, used: str) -> None:
    text = reason(quota(hard), pod("p", ONE, **of))
    assert text.startswith(f"exceeded quota: q, requested: {used}, used: ")


def test_each_container_must_name_the_resources_of_a_quota() -> None:
    text = reason(
        quota({"requests.cpu": "9", "limits.memory": "9Gi", "requests.ephemeral-storage": "1Gi"}),
        pod("p", container("b"), container("a"), initContainers=[container("i", cpu="1")]),
    )
    assert text == "failed quota: q: must specify limits.memory for: a,b,i; requests.cpu for: a,b"


def test_pod_level_amounts_replace_those_of_containers() -> None:
    whole = {"requests": {"cpu": "1"}}
    assert not refusals(quota({"requests.cpu": "9"}), pod("p", container(), resources=whole))


def test_defaults_of_limit_ranges_are_set_before_quotas_are_checked() -> None:
    ranges = limit_range(defaultRequest={"cpu": "1"})
    assert not refusals(quota({"requests.cpu": "9"}), ranges, pod("p", container()))


def scope(name: str, operator: str = "Exists", *values: str) -> dict[str, Any]:
    requirement = {"scopeName": name, "operator": operator} | ({"values": values} if values else {})
    return {"scopeSelector": {"matchExpressions": [requirement]}}


OTHERS = {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": "zone", "namespaces": ["other"], "labelSelector": {}}
]}  # fmt: skip


@pytest.mark.parametrize(
    ("scopes", "counted"),
    [
        ({"scopes": ["BestEffort"]}, ["plain"]),
        ({"scopes": ["NotBestEffort"]}, ["asks", "ends", "critical", "looks"]),
        ({"scopes": ["Terminating"]}, ["ends"]),
        ({"scopes": ["NotTerminating"]}, ["plain", "asks", "critical", "looks"]),
        ({"scopes": ["NotTerminating", "BestEffort"]}, ["plain"]),
        ({"scopes": ["CrossNamespacePodAffinity"]}, ["looks"]),
        ({"scopes": ["PriorityClass"]}, ["critical"]),
        (scope("PriorityClass", "In", "system-node-critical"), ["critical"]),
        (scope("PriorityClass", "In", "other"), []),
        (scope("PriorityClass", "NotIn", "other"), ["plain", "asks", "ends", "critical", "looks"]),
        (scope("PriorityClass", "DoesNotExist"), ["plain", "asks", "ends", "looks"]),
        (scope("VolumeAttributesClass"), []),
    ],
)
def test_a_quota_counts_the_pods_in_all_its_scopes(scopes: Any, counted: list[str]) -> None:
    pods = [
        pod("plain", container()),
        pod("asks", ONE),
        pod("ends", ONE, activeDeadlineSeconds=60),
        pod("critical", ONE, priorityClassName="system-node-critical"),
        pod("looks", ONE, affinity={"podAntiAffinity": OTHERS}),
    ]

    assert list(refusals(quota({"pods": "0"}, **scopes), *pods)) == counted


def test_pods_without_a_priority_class_have_the_global_default() -> None:
    default = {
        "kind": "PriorityClass", "metadata": {"name": "normal"}, "value": 5, "globalDefault": True,
    }  # fmt: skip
    found = created(
        default, quota({"pods": "0"}, **scope("PriorityClass", "In", "normal")), pod("p", ONE)
    )

    assert [each.manifest.spec.priority for each in found.refused] == [5]
    assert "Applied, as when pods are created: PriorityClass normal, to 1 of them (default/p)." in (
        found.notes
    )


def test_a_pod_refused_by_one_quota_counts_for_none() -> None:
    quotas = quota({"pods": "1"}, "a"), quota({"cpu": "1"}, "b")

    found = refusals(*quotas, pod("large", container(cpu="2")), pod("small", ONE))

    assert list(found) == ["large"]


def test_finished_pods_count_as_objects_only() -> None:
    done = pod("done", ONE, uid="u") | {"status": {"phase": "Succeeded"}}

    assert not refusals(quota({"pods": "1", "cpu": "1"}), done, pod("p", ONE))
    assert list(refusals(quota({"count/pods": "1"}), done, pod("p", ONE))) == ["p"]


def test_the_status_usage_counts_only_if_no_objects_are_given() -> None:
    limited = quota({"pods": "2"}, used={"pods": "2"})

    alone = created(limited, pod("p", ONE))
    text = "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
    assert [each.reason for each in alone.refused] == [text]
    assert "Used of ResourceQuota default/q: as its status has it" in alone.notes[-1]

    assert not refusals(limited, pod("runs", ONE, nodeName="n"), pod("p", ONE))


def test_uncounted_resources_are_named() -> None:
    found = created(quota({"services": "1", "count/deployments.apps": "2", "pods": "5"}))
    assert found.notes == (
        "Not applied: count/deployments.apps, services of ResourceQuota default/q, since only pods "
        "and claims are counted.",
    )


FAST = {
    "kind": "StorageClass", "metadata": {
        "name": "fast", "annotations": {"storageclass.beta.kubernetes.io/is-default-class": "true"},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("hard", "used"),
    [
        ({"persistentvolumeclaims": "1"}, "persistentvolumeclaims=1"),
        ({"count/persistentvolumeclaims": "1"}, "count/persistentvolumeclaims=1"),
        ({"requests.storage": "1Gi"}, "requests.storage=1Gi"),
        (
            {"fast.storageclass.storage.k8s.io/requests.storage": "1Gi"},
            "fast.storageclass.storage.k8s.io/requests.storage=1Gi",
        ),
        (
            {"fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1"},
            "fast.storageclass.storage.k8s.io/persistentvolumeclaims=1",
        ),
    ],
)
def test_the_usage_of_a_claim_includes_the_default_class(hard: Any, used: str) -> None:
    found = created(FAST, quota(hard), claim("stored", uid="u"), claim("new"))

    (refused,) = found.refused
    assert refused.manifest.metadata.name == "new"
    assert refused.reason.startswith(f"exceeded quota: q, requested: {used}, used: {used}, ")
    note = "Applied, as when claims are created: default StorageClass fast, to 2 of them"
    assert f"{note} (first default/stored)." in found.notes


def test_claims_of_other_classes_are_not_counted_for_a_class() -> None:
    hard = {"fast.storageclass.storage.k8s.io/persistentvolumeclaims": "0"}
    assert not refusals(quota(hard), claim(storageClassName="slow"), claim("b"))


def test_a_stateful_set_creates_no_pod_whose_claim_is_refused() -> None:
    found = refusals(quota({"persistentvolumeclaims": "1"}), of_set(2))

    assert list(found) == ["data-db-1", "db-1"]
    assert found["db-1"] == "PersistentVolumeClaim default/data-db-1 of the pod is not created"


def test_claims_of_stored_pods_count_as_stored() -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    runs = pod("db-0", ONE, nodeName="n", volumes=[volume])

    found = created(quota({"persistentvolumeclaims": "0"}), runs, of_set(1))

    assert not found.refused
    assert [each.metadata.name for each in found.claims] == ["data-db-0"]


def test_a_pod_with_a_refused_ephemeral_claim_is_created_without_it() -> None:
    template = {"spec": {"resources": {"requests": {"storage": "9Gi"}}}}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}

    found = created(
        limit_range("PersistentVolumeClaim", max={"storage": "1Gi"}),
        pod("p", ONE, volumes=[scratch]),
    )

    assert [each.metadata.name for each in found.pods] == ["p"]
    assert [each.manifest.metadata.name for each in found.refused] == ["p-scratch"]
    assert not found.claims
