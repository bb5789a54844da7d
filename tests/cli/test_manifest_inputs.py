"""Manifests as inputs of a run: running, pending and workloads' pods, and selectors of pods."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path

import pytest

from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.inputs.loaded import Loaded
from roadstead.inputs.manifest_inputs import load_manifests
from roadstead.protocol.errors import InputError
from tests.cli.manifests import Manifest, deployment, node, owned_by, pod, thing, write

HIGH = thing("scheduling.k8s.io/v1", "PriorityClass", "high", value=7)


class Files:
    """The two sets of manifests, written to files and loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(
        self, cluster: list[Manifest], pods: list[Manifest], *, reschedules_lost: bool = False
    ) -> Loaded:
        sources = (
            [write(self.folder / "cluster.json", *cluster)],
            [write(self.folder / "pods.json", *pods)] if pods else [],
        )
        return load_manifests(*sources, with_digests=False, reschedules_lost=reschedules_lost)

    def refusal(self, cluster: list[Manifest], pods: list[Manifest]) -> str:
        with pytest.raises(InputError) as caught:
            self.load(cluster, pods)
        return str(caught.value)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def pending_names(loaded: Loaded) -> list[str]:
    return [identity.key for identity, _ in loaded.inputs.pending]


def other_notes(loaded: Loaded) -> tuple[str, ...]:
    """Return the notes, except the one on default tolerations, which almost every pod has."""
    return tuple(each for each in loaded.notes if "tolerations of nodes" not in each)


def replica_set(name: str, replicas: int = 0, **selector: object) -> Manifest:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]}
    wanted = {"replicas": replicas, "selector": selector, "template": template}
    return thing("apps/v1", "ReplicaSet", name, spec=wanted)


def test_nodes_are_sorted_bytewise_by_name_like_the_api_server_does(files: Files) -> None:
    loaded = files.load([node("n-2"), node("n.1"), node("n-10"), node("n-1")], [])

    assert [each.name for each in loaded.inputs.nodes] == ["n-1", "n-10", "n-2", "n.1"]


def test_pods_with_a_node_are_running_in_whichever_set_they_are(files: Files) -> None:
    loaded = files.load(
        [node("n"), pod("a", nodeName="n"), pod("b")], [pod("c", nodeName="n"), pod("d")]
    )

    running = [(identity.name, on) for identity, _, on in loaded.inputs.running]
    assert running == [("a", "n"), ("c", "n")]
    assert pending_names(loaded) == ["default/b", "default/d"]


def test_equal_running_pods_on_any_nodes_are_one_class(
    files: Files,
) -> None:
    loaded = files.load(
        [node("n"), node("m"), pod("a", nodeName="n"), pod("b", nodeName="m"), pod("c"), pod("d")],
        [],
    )

    one, other = (facts for _, facts, _ in loaded.inputs.running)
    assert one is other
    assert one.node_name == ""
    first, second = (facts for _, facts in loaded.inputs.pending)
    assert first is second


def test_running_pods_on_unknown_nodes_are_left_out_and_reported(files: Files) -> None:
    loaded = files.load([node("n"), pod("a", nodeName="gone"), pod("b", nodeName="n")], [])

    assert [on for _, _, on in loaded.inputs.running] == ["n"]
    note = "Left out: 1 running pod on nodes that the manifests do not have (gone)."
    assert loaded.notes == (note,)


def test_omitted_objects_are_reported_with_counts(files: Files) -> None:
    done = pod("done") | {"status": {"phase": "Succeeded"}}
    again = pod("again") | {"status": {"phase": "Failed"}}
    maps = [thing("v1", "ConfigMap", "a"), thing("v1", "ConfigMap", "b")]

    loaded = files.load([node("n"), done, maps[0]], [again, maps[1], thing("v1", "Secret", "s")])

    assert loaded.notes == (
        "Left out: 2 finished pods.",
        "Left out, because scheduling does not use them: ConfigMap 2, Secret 1.",
    )


def test_a_cluster_without_nodes_is_reported(files: Files) -> None:
    loaded = files.load([pod("a")], [])

    assert other_notes(loaded) == ("The cluster has no nodes: no pod can be placed.",)
    assert pending_names(loaded) == ["default/a"]


def test_only_workloads_of_the_pods_set_create_pods(files: Files) -> None:
    loaded = files.load([node("n"), deployment("standing", 3)], [deployment("new", 2)])

    assert len(pending_names(loaded)) == 2
    assert all(name.startswith("default/new-") for name in pending_names(loaded))


def test_a_workload_creates_only_the_missing_pods(files: Files) -> None:
    set_of = owned_by(replica_set("web-1", 3, matchLabels={"app": "web"}), "Deployment", "web")
    there = owned_by(pod("web-1-x", nodeName="n"), "ReplicaSet", "web-1")

    loaded = files.load([node("n"), deployment("web", 3), set_of, there], [deployment("web", 3)])

    assert len(loaded.inputs.running) == 1
    assert len(pending_names(loaded)) == 2
    assert all(name.startswith("default/web-1-") for name in pending_names(loaded))


def test_a_cron_job_creates_no_pods_for_its_completed_jobs(files: Files) -> None:
    job = {"completions": 1, "template": {"spec": pod("x")["spec"]}}
    cron = thing("batch/v1", "CronJob", "tick", spec={"jobTemplate": {"spec": job}})
    run = owned_by(thing("batch/v1", "Job", "tick-1", spec=job), "CronJob", "tick")
    done = owned_by(pod("tick-1-x", nodeName="n"), "Job", "tick-1")
    done |= {"status": {"phase": "Succeeded"}}
    assert pending_names(files.load([node("n"), run, done], [cron])) == []


def test_daemon_sets_create_a_pod_for_each_node(files: Files) -> None:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": pod("x")["spec"]}
    wanted = {"selector": {"matchLabels": {"app": "d"}}, "template": template}

    loaded = files.load([node("n"), node("m")], [thing("apps/v1", "DaemonSet", "d", spec=wanted)])

    assert len(pending_names(loaded)) == 2


def test_a_priority_class_of_the_cluster_applies_to_new_pods(files: Files) -> None:
    loaded = files.load(
        [node("n"), HIGH],
        [pod("p", priorityClassName="high"), deployment("web", 1, priorityClassName="high")],
    )

    assert [facts.priority for _, facts in loaded.inputs.pending] == [7, 7]


def test_a_deployment_selects_pods_through_its_replica_set(files: Files) -> None:
    loaded = files.load([node("n")], [deployment("web", 1)])

    (facts,) = (facts for _, facts in loaded.inputs.pending)
    (owner,) = loaded.cluster.selecting
    assert facts.owner is not None
    assert (owner.kind, owner.namespace, owner.name) == ("ReplicaSet", "default", facts.owner.name)
    assert owner.selector is not None
    assert owner.selector.matches(dict(facts.labels))


def test_all_selectors_of_pods_are_loaded_with_their_namespaces(files: Files) -> None:
    by_labels = {"selector": {"app": "web"}}
    controller = by_labels | {"replicas": 0, "template": {"spec": pod("x")["spec"]}}
    stateful = {
        "replicas": 0,
        "serviceName": "s",
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]},
    }
    loaded = files.load(
        [
            node("n"),
            thing("v1", "Service", "svc", spec=by_labels),
            thing("v1", "Service", "far", metadata={"namespace": "far"}, spec=by_labels),
            thing("v1", "ReplicationController", "rc", spec=controller),
        ],
        [
            replica_set("rs", matchLabels={"app": "web"}),
            thing("apps/v1", "StatefulSet", "sts", spec=stateful),
        ],
    )

    web = LabelSelector((Requirement("app", "In", ("web",)),))
    assert [(each.kind, each.namespace, each.name) for each in loaded.cluster.selecting] == [
        ("Service", "default", "svc"),
        ("Service", "far", "far"),
        ("ReplicationController", "default", "rc"),
        ("ReplicaSet", "default", "rs"),
        ("StatefulSet", "default", "sts"),
    ]
    assert {each.selector for each in loaded.cluster.selecting} == {web}


def test_namespaces_have_their_name_label_and_those_of_pods_exist(files: Files) -> None:
    shop = thing("v1", "Namespace", "shop", metadata={"labels": {"team": "a"}})

    loaded = files.load(
        [node("n"), shop], [pod("p", namespace="shop"), pod("q"), pod("r", namespace="b")]
    )

    name = "kubernetes.io/metadata.name"
    assert loaded.cluster.namespaces == (
        ("shop", ((name, "shop"), ("team", "a"))),
        ("b", ((name, "b"),)),
        ("default", ((name, "default"),)),
    )


def test_an_object_in_both_sets_is_loaded_once(files: Files) -> None:
    everything = [node("n"), pod("p"), deployment("web", 2), HIGH]

    loaded = files.load(everything, everything)

    assert len(loaded.inputs.nodes) == 1
    assert len(pending_names(loaded)) == 3


def test_a_workload_in_both_sets_is_the_new_one(files: Files) -> None:
    loaded = files.load([node("n"), deployment("web", 9)], [deployment("web", 1)])

    assert len(pending_names(loaded)) == 1


def test_an_object_that_differs_between_the_sets_is_refused(files: Files) -> None:
    text = files.refusal([node("n"), pod("p", "1")], [pod("p", "2")])

    assert (
        text == 'Pod "p": is in --cluster and in --pods, with different content: keep one of them'
    )


def test_a_uid_of_two_pods_is_refused(files: Files) -> None:
    one, two = pod("one"), pod("two")
    one["metadata"]["uid"] = two["metadata"]["uid"] = "u"

    text = files.refusal([node("n"), one], [two])

    assert (
        text == 'Pod "two": metadata.uid: "u" is also the UID of default/one: a UID must be unique'
    )


def test_a_selector_that_does_not_parse_is_refused_with_its_object(files: Files) -> None:
    bad = [{"key": "app", "operator": "Near", "values": ["x"]}]

    text = files.refusal([node("n"), replica_set("rs", matchExpressions=bad)], [])

    assert 'ReplicaSet "rs": spec.selector' in text
    assert "Near" in text


def test_requests_that_cannot_be_added_are_refused_with_their_pod(files: Files) -> None:
    containers = [
        {"name": f"c{i}", "image": "x", "resources": {"requests": {"cpu": amount}}}
        for i, amount in enumerate(("1e999999", "1n"))
    ]

    text = files.refusal([node("n")], [pod("odd", containers=containers)])

    assert 'Pod "odd": spec.containers' in text


def test_digests_include_every_file_once(tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", node("n"))
    write(tmp_path / "b.json", pod("p"))

    loaded = load_manifests([first, str(tmp_path)], [first], with_digests=True)

    assert [each.name for each in loaded.digests] == [first, str(tmp_path / "b.json")]


def test_pods_of_missing_nodes_are_pending_again_on_request(
    files: Files,
) -> None:
    ending = pod("ending", nodeName="gone")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = [
        node("n"),
        pod("runs", nodeName="n"),
        pod("lost", nodeName="gone"),
        owned_by(pod("web-1", nodeName="gone"), "ReplicaSet", "web"),
        owned_by(pod("log-1", nodeName="gone"), "DaemonSet", "log"),
        ending,
        pod("waits"),
    ]

    loaded = files.load(cluster, [pod("new")], reschedules_lost=True)

    assert [identity.name for identity, _, _ in loaded.inputs.running] == ["runs"]
    assert pending_names(loaded) == [
        "default/waits",
        "default/new",
        "default/lost",
        "default/web-1",
    ]
    assert all(not facts.node_name for _, facts in loaded.inputs.pending)
    assert other_notes(loaded) == (
        "Pending again: 2 pods of nodes that the manifests do not have (gone).",
        "Left out: 2 running pods on nodes that the manifests do not have (gone).",
    )


def test_only_the_first_of_many_missing_nodes_are_named(files: Files) -> None:
    lost = [pod(f"p-{n}", nodeName=f"gone-{n}") for n in range(5)]

    loaded = files.load([node("n"), *lost], [])

    assert loaded.notes == (
        "Left out: 5 running pods on nodes that the manifests do not have (gone-0, gone-1, gone-2 "
        "and 2 more).",
    )


def test_custom_resources_that_create_pods_are_reported(files: Files, tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    rollout = thing("argoproj.io/v1alpha1", "Rollout", "r", spec={"template": template})
    other = thing("argoproj.io/v1alpha1", "AppProject", "a", spec={"containers": "none"})

    cluster = [node("n"), rollout, rollout | {"metadata": {"generateName": "s-"}}, other]

    loaded = files.load(cluster, [])

    path = tmp_path / "cluster.json"
    assert loaded.notes == (
        f"Left out: Rollout.argoproj.io default/r ({path}) and 1 more; its own controller "
        "creates its pods: add them to the manifests.",
        "Left out, because scheduling does not use them: AppProject.argoproj.io 1.",
    )


def test_pods_of_workloads_get_the_limits_of_their_namespace(files: Files) -> None:
    limits = {"limits": [{"type": "Container", "defaultRequest": {"memory": "1Gi"}}]}
    cluster = [node("n"), thing("v1", "LimitRange", "l", spec=limits), pod("old", nodeName="n")]

    loaded = files.load(cluster, [deployment("web", 2)])

    asked = [dict(facts.requests).get("memory", 0) for _, facts in loaded.inputs.pending]
    assert asked == [1 << 30, 1 << 30]
    assert "memory" not in dict(loaded.inputs.running[0][1].requests)
    first = pending_names(loaded)[0]
    assert loaded.notes == (
        f"Applied, as when pods are created: LimitRange default/l, to 2 of them (first {first}).",
        "Applied, as when pods are created: tolerations of nodes not ready or unreachable for "
        f"300 s, to 2 of them (first {first}).",
    )


def test_budgets_without_a_status_allow_no_disruption_with_a_note(files: Files) -> None:
    selector = {"matchLabels": {"app": "web"}}
    spec = {"maxUnavailable": 1, "selector": selector}
    unread = thing("policy/v1", "PodDisruptionBudget", "web", spec=spec)
    read = thing(
        "policy/v1", "PodDisruptionBudget", "db", spec=spec, status={"disruptionsAllowed": 1}
    )

    loaded = files.load([node("n1"), unread, read], [])

    assert other_notes(loaded) == (
        "Without a status: 1 disruption budget (first default/web); as kube-scheduler reads them, "
        "they allow no disruption.",
    )
    assert [each.disruptions_allowed for each in loaded.cluster.budgets] == [0, 1]


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no paths of open files")
def test_a_pipe_is_read_once_also_for_its_digest(tmp_path: Path) -> None:
    # More than a pipe holds: it is written to its end only while it is read.
    nodes = json.dumps({"kind": "Node", "metadata": {"name": "n1"}}).encode() + b"\n" * (1 << 20)
    pods = write(tmp_path / "pods.json", pod("p"))
    reader, writer = os.pipe()

    def fill() -> None:
        with os.fdopen(writer, "wb") as file:
            file.write(nodes)

    thread = threading.Thread(target=fill)
    thread.start()
    loaded = load_manifests([f"/dev/fd/{reader}"], [pods], with_digests=True)
    thread.join()
    os.close(reader)

    assert [each.name for each in loaded.inputs.nodes] == ["n1"]
    assert loaded.digests[0].sha256 == hashlib.sha256(nodes).hexdigest()
