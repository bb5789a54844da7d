"""Workloads become the pods that their controllers would create, minus the existing ones."""

from __future__ import annotations

import io
import json
from functools import partial
from typing import Any

import pytest

from roadstead.facts.compile import compile_pod
from roadstead.facts.pod import PodFacts, Volume
from roadstead.manifests import Expansion, expand_workloads, read_manifests
from roadstead.manifests import expansion as expansion_module
from roadstead.manifests.names import PodNames, generated_name, joined_name
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import Pod

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}, "creationTimestamp": None},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}


def workload(kind: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "prod"}
    return {"kind": kind, "metadata": metadata, "spec": {"template": TEMPLATE} | spec}


def owned(kind: str, name: str, by: tuple[str, str], **parts: Any) -> dict[str, Any]:
    owner = {"kind": by[0], "name": by[1], "controller": True}
    metadata = {"name": name, "namespace": "prod", "ownerReferences": [owner]}
    return {"kind": kind, "metadata": metadata, **parts}


def a_pod(name: str, by: tuple[str, str], **spec: Any) -> dict[str, Any]:
    return owned("Pod", name, by, spec={"containers": [{"name": "c"}], **spec})


def a_node(name: str, **parts: Any) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": {"zone": name[0]}}, **parts}


def expand(*documents: object) -> Expansion:
    text = "\n".join(json.dumps(each) for each in documents)
    manifests = read_manifests(["-"], stdin=io.BytesIO(text.encode()))
    return expand_workloads(manifests, manifests.nodes)


def names(expansion: Expansion) -> list[str]:
    return [pod.metadata.name for pod in expansion.pods]


def facts(pod: Pod) -> PodFacts:
    return compile_pod(pod)[1]


def test_a_deployment_creates_pods_through_a_replica_set() -> None:
    made = expand(workload("Deployment", replicas=3, selector=SELECTOR))
    (replica_set,) = made.replica_sets
    revision = replica_set.metadata.labels["pod-template-hash"]
    assert replica_set.metadata.name == f"web-{revision}"
    assert replica_set.spec.selector is not None
    assert replica_set.spec.selector.match_labels == {"app": "web", "pod-template-hash": revision}
    assert len(set(names(made))) == 3
    for pod in made.pods:
        assert pod.metadata.name.startswith(f"web-{revision}-")
        found = facts(pod)
        assert dict(found.labels) == {"app": "web", "pod-template-hash": revision}
        assert found.owner is not None
        assert (found.owner.kind, found.owner.name) == ("ReplicaSet", f"web-{revision}")
        assert (found.namespace, dict(found.requests)) == ("prod", {"cpu": 1000})


def test_equal_manifests_create_equal_pods_and_other_templates_other_names() -> None:
    one = expand(workload("Deployment", replicas=2))
    assert one == expand(workload("Deployment", replicas=2))
    changed = {"spec": {"containers": [{"name": "c", "image": "other"}]}}
    assert names(expand(workload("Deployment", replicas=2, template=changed))) != names(one)


def test_pods_of_one_workload_are_one_class() -> None:
    made = expand(workload("Deployment", replicas=5))
    assert len({facts(pod) for pod in made.pods}) == 1


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_replica_sets_and_replication_controllers_create_pods_directly(kind: str) -> None:
    made = expand(workload(kind, replicas=2))
    assert [name[:4] for name in names(made)] == ["web-", "web-"]
    assert made.replica_sets == ()
    assert len(expand(workload(kind)).pods) == 1
    assert expand(workload(kind, replicas=0)).pods == ()


def test_existing_pods_are_not_created_again() -> None:
    replica_set = owned(
        "ReplicaSet", "web-1", ("Deployment", "web"), spec={"replicas": 3, "template": TEMPLATE}
    )
    old = owned("ReplicaSet", "web-0", ("Deployment", "web"), spec={"replicas": 0})
    made = expand(
        workload("Deployment", replicas=3),
        replica_set,
        old,
        a_pod("web-1-a", ("ReplicaSet", "web-1")),
    )
    assert made.replica_sets == ()
    assert len(made.pods) == 2
    assert all(name.startswith("web-1-") for name in names(made))


def test_a_stateful_set_numbers_its_pods_and_gives_them_claims() -> None:
    claim = {
        "metadata": {"name": "data", "labels": {"tier": "db"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "x", "ephemeral": {}}]
    template = {"spec": TEMPLATE["spec"] | {"volumes": volumes}}
    present = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-db-4", "namespace": "prod"},
    }
    made = expand(
        workload(
            "StatefulSet", "db", replicas=3, template=template, volumeClaimTemplates=[claim],
            ordinals={"start": 3},
        ),
        a_pod("db-5", ("StatefulSet", "db")),
        present,
    )  # fmt: skip
    assert names(made) == ["db-3", "db-4"]
    first = facts(made.pods[0])
    assert first.volumes == (
        Volume("data", "persistentVolumeClaim", (("claimName", "data-db-3"),)),
        Volume(
            "x",
            "ephemeral",
            (("claimName", "db-3-x"), ("podName", "db-3"), ("podUID", "prod/db-3")),
        ),
    )
    labels = dict(first.labels)
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-3"
    assert labels["apps.kubernetes.io/pod-index"] == "3"
    assert labels["controller-revision-hash"].startswith("db-")
    assert [each.metadata.name for each in made.claims] == ["data-db-3", "data-db-5"]
    assert made.claims[0].metadata.labels == {"tier": "db"}
    assert str(made.claims[0].spec.resources.requests["storage"]) == "1Gi"


def test_a_stateful_set_without_claims_keeps_volumes_unchanged() -> None:
    made = expand(workload("StatefulSet", "db", replicas=1))
    assert names(made) == ["db-0"]
    assert made.claims == ()


def taint(key: str, effect: str) -> dict[str, Any]:
    return {"spec": {"taints": [{"key": key, "effect": effect}]}}


def test_a_daemon_set_creates_a_pod_for_each_possible_node() -> None:
    spec = TEMPLATE["spec"] | {"nodeSelector": {"zone": "a"}}
    made = expand(
        workload("DaemonSet", "agent", template={"spec": spec}),
        a_node("a1"),
        a_node("a2", **taint("node.kubernetes.io/unschedulable", "NoSchedule")),
        a_node("a3", **taint("mine", "NoSchedule")),
        a_node("a4", **taint("mine", "NoExecute")),
        a_node("a5", **taint("mine", "PreferNoSchedule")),
        a_node("a6"),
        a_node("b1"),
        a_pod("agent-x", ("DaemonSet", "agent"), nodeName="a6"),
    )
    pinned = [facts(pod).required_node_terms for pod in made.pods]
    assert [terms and terms[0].fields[0].values for terms in pinned] == [("a1",), ("a2",), ("a5",)]
    tolerated = {(each.key, each.effect) for each in facts(made.pods[0]).tolerations}
    assert ("node.kubernetes.io/not-ready", "NoExecute") in tolerated
    assert len(tolerated) == 6
    assert dict(facts(made.pods[0]).labels)["pod-template-generation"] == "1"


def affinity(*names: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_a_daemon_set_respects_affinity_node_name_and_host_network() -> None:
    nodes = [
        a_node("a1"),
        a_node("a2", **taint("node.kubernetes.io/network-unavailable", "NoSchedule")),
    ]
    by_affinity = TEMPLATE["spec"] | {"affinity": affinity("a1")}
    by_name = TEMPLATE["spec"] | {"nodeName": "a1"}
    on_host = TEMPLATE["spec"] | {"hostNetwork": True}
    for spec, count in ((by_affinity, 1), (by_name, 1), (on_host, 2), (TEMPLATE["spec"], 1)):
        assert len(expand(workload("DaemonSet", template={"spec": spec}), *nodes).pods) == count


def test_a_daemon_pod_created_for_a_node_counts_before_it_is_bound() -> None:
    waiting = a_pod("web-x", ("DaemonSet", "web"), affinity=affinity("a1"))
    unpinned = a_pod("web-y", ("DaemonSet", "web"))
    made = expand(workload("DaemonSet"), a_node("a1"), a_node("a2"), waiting, unpinned)
    assert len(made.pods) == 1


def test_daemon_pods_keep_preferences_and_own_tolerations() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    preferred = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]
    }
    spec = TEMPLATE["spec"] | {
        "tolerations": [own],
        "affinity": {"nodeAffinity": preferred},
    }
    made = expand(workload("DaemonSet", template={"spec": spec}), a_node("a1"))
    found = facts(made.pods[0])
    assert len(found.preferred_node_terms) == 1
    assert len(found.tolerations) == 6


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"parallelism": 3, "completions": 2}, 2),
        ({"completions": 5}, 1),
        ({"parallelism": 0}, 0),
        ({"parallelism": 3, "suspend": True}, 0),
    ],
)
def test_a_job_creates_the_pods_that_run_in_parallel(spec: dict[str, Any], count: int) -> None:
    made = expand(workload("Job", **spec))
    assert len(made.pods) == count
    assert all(dict(facts(pod).labels)["job-name"] == "web" for pod in made.pods)


def test_an_indexed_job_numbers_its_pods_and_creates_only_missing_ones() -> None:
    made = expand(
        workload("Job", parallelism=3, completions=3, completionMode="Indexed"),
        a_pod("web-0-x", ("Job", "web")),
    )
    indexes = [dict(facts(p).labels)["batch.kubernetes.io/job-completion-index"] for p in made.pods]
    assert indexes == ["1", "2"]
    assert [name[:6] for name in names(made)] == ["web-1-", "web-2-"]


def job_pod(name: str, index: int, phase: str) -> dict[str, Any]:
    made = a_pod(name, ("Job", "web"))
    made["metadata"]["labels"] = {"batch.kubernetes.io/job-completion-index": str(index)}
    return made | {"status": {"phase": phase}}


@pytest.mark.parametrize(
    ("spec", "phases", "count"),
    [
        ({"parallelism": 2, "completions": 3}, ["Succeeded"], 2),
        ({"parallelism": 2, "completions": 3}, ["Succeeded", "Succeeded"], 1),
        ({"parallelism": 2, "completions": 3}, ["Succeeded", "Succeeded", "Running"], 0),
        ({"parallelism": 2, "completions": 3}, ["Succeeded"] * 3, 0),
        ({"parallelism": 2, "completions": 3}, ["Failed", "Failed"], 2),
        ({"parallelism": 2}, ["Succeeded"], 0),
    ],
)
def test_a_job_creates_pods_for_the_remaining_completions_only(
    spec: dict[str, Any], phases: list[str], count: int
) -> None:
    existing = [job_pod(f"web-{i}", i, phase) for i, phase in enumerate(phases)]
    assert len(expand(workload("Job", **spec), *existing).pods) == count


def test_new_pods_of_an_indexed_job_have_free_indices() -> None:
    made = expand(
        workload("Job", parallelism=3, completions=5, completionMode="Indexed"),
        job_pod("web-0-x", 0, "Succeeded"),
        job_pod("web-2-x", 2, "Running"),
    )
    indices = [dict(facts(p).labels)["batch.kubernetes.io/job-completion-index"] for p in made.pods]
    assert indices == ["1", "3"]


def cron(**spec: Any) -> dict[str, Any]:
    job = {"spec": {"parallelism": 2, "template": TEMPLATE}}
    metadata = {"name": "tick", "namespace": "prod"}
    return {"kind": "CronJob", "metadata": metadata, "spec": {"jobTemplate": job} | spec}


def test_a_cron_job_runs_once() -> None:
    made = expand(cron(schedule="* * * * *"))
    assert len(made.pods) == 2
    owner = facts(made.pods[0]).owner
    assert owner is not None
    assert owner.kind == "Job"
    assert owner.name.startswith("tick-")
    assert expand(cron(suspend=True)).pods == ()
    assert (
        len(
            expand(
                cron(), owned("Job", "tick-1", ("CronJob", "tick"), spec={"parallelism": 0})
            ).pods
        )
        == 0
    )


def test_priority_classes_apply_to_created_pods_too() -> None:
    priority = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    template = {"spec": TEMPLATE["spec"] | {"priorityClassName": "high"}}
    made = expand(workload("ReplicaSet", template=template), priority)
    assert facts(made.pods[0]).priority == 9


def test_too_large_replica_counts_are_refused_before_any_pod_is_created(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expansion_module, "PODS_MAX", 100)
    for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
        with pytest.raises(InputError, match=rf'{kind} "web": spec: 101 makes the pods'):
            expand(workload(kind, replicas=101))
    with pytest.raises(InputError, match='Job "web"'):
        expand(workload("Job", parallelism=101))
    with pytest.raises(InputError, match="more than 100"):
        expand(workload("ReplicaSet", replicas=60), workload("StatefulSet", replicas=60))
    with pytest.raises(InputError, match=r'CronJob "tick": spec: 101 makes the pods'):
        expand(cron(jobTemplate={"spec": {"parallelism": 101, "template": TEMPLATE}}))


def test_only_pods_that_workloads_run_at_the_same_time_count_for_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expansion_module, "PODS_MAX", 100)
    of_web = owned(
        "ReplicaSet", "web-1", ("Deployment", "web"), spec={"replicas": 80, "template": TEMPLATE}
    )

    assert len(expand(workload("Job", parallelism=101, completions=5)).pods) == 5
    assert expand(workload("Job", parallelism=101, suspend=True)).pods == ()
    assert len(expand(workload("Deployment", replicas=80), of_web).pods) == 80


def test_a_template_without_containers_is_refused() -> None:
    with pytest.raises(InputError, match=r"spec\.containers: must not be empty"):
        expand({"kind": "Deployment", "metadata": {"name": "web"}})


def test_names_stay_within_the_limit_for_names() -> None:
    # Pods of stateful sets and jobs have the name in a label, too.
    labelled = {"StatefulSet": 52, "Job": 63}
    for kind in ("Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet"):
        made = expand(workload(kind, "x" * labelled.get(kind, 253), replicas=1), a_node("a1"))
        assert len(made.pods) == 1
        assert all(len(name) <= 253 for name in names(made))
    assert joined_name("x" * 300, "y" * 300) == "x" + "-" + "y" * 251
    assert len(generated_name("x" * 300, 0)) == 63


def test_every_pod_of_a_large_workload_has_a_name_of_its_own() -> None:
    nodes = [a_node(f"a{number}") for number in range(2)]
    made = expand(
        workload("Deployment", replicas=20_000),
        workload("Job", parallelism=10_000),
        workload("DaemonSet"),
        *nodes,
    )

    assert len(made.pods) == 30_002
    assert len({(pod.metadata.namespace, pod.metadata.name) for pod in made.pods}) == 30_002


def test_a_name_that_is_in_use_is_drawn_again() -> None:
    taken = generated_name("web-", 0)
    names = PodNames([("default", taken)])

    first = names.allocate("default", partial(generated_name, "web-", 0))
    again = names.allocate("default", partial(generated_name, "web-", 0))

    assert len({taken, first, again}) == 3
    assert names.allocate("other", partial(generated_name, "web-", 0)) == taken


def test_without_workloads_no_pod_is_created() -> None:
    assert expand(a_node("a1")) == Expansion(pods=())
