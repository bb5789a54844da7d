"""The pods of a deployment of which some exist already: a change of a running cluster."""

import copy
import io
import json
from collections import Counter
from dataclasses import replace

import pytest

from roadstead.inputs.manifest_inputs import load_manifests
from roadstead.manifests import expand_workloads, read_manifests
from roadstead.protocol.objects import Pod
from tests.manifests.test_expansion import TEMPLATE, a_pod, owned, workload

HASH = "7f9c"
NODE = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "110"}}}


def template(cpu="1", labels=None, scheduler=None):
    found = copy.deepcopy(TEMPLATE)
    found["spec"]["containers"][0]["resources"]["limits"]["cpu"] = cpu
    found["metadata"]["labels"] |= labels or {}
    if scheduler:
        found["spec"]["schedulerName"] = scheduler
    return found


def replica_set(replicas, name="web-7f9c", **how):
    # The API server stores the hash and its defaults, too.
    stored = template(labels={"pod-template-hash": HASH}, scheduler="default-scheduler", **how)
    spec = {"replicas": replicas, "template": stored}
    return owned("ReplicaSet", name, ("Deployment", "web"), spec=spec)


def running(count):
    pods = [a_pod(f"web-7f9c-{n}", ("ReplicaSet", "web-7f9c"), nodeName="n") for n in range(count)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web", "pod-template-hash": HASH}
    return pods


def made_by(*documents):
    text = "\n".join(json.dumps(each) for each in documents)
    manifests = read_manifests(["-"], stdin=io.BytesIO(text.encode()))
    made = expand_workloads(manifests, manifests.nodes)
    return [pod.metadata.name for pod in made.pods], made.notes


def test_a_scaled_up_deployment_creates_the_pods_that_its_replica_set_lacks():
    names, notes = made_by(workload("Deployment", replicas=5), replica_set(3), *running(3))

    assert (len(names), notes) == (2, ())
    assert all(name.startswith("web-7f9c-") for name in names)


@pytest.mark.parametrize("replicas", [3, 1])
def test_an_unscaled_deployment_creates_and_deletes_no_pods(replicas):
    assert made_by(workload("Deployment", replicas=replicas), replica_set(3), *running(3)) == (
        [],
        (),
    )


def test_replicas_of_an_older_replica_set_are_not_created_twice():
    old = replica_set(2, "web-old", cpu="2")

    others = [a_pod(f"web-old-{n}", ("ReplicaSet", "web-old"), nodeName="n") for n in range(2)]
    pods = [*running(2), *others]

    names, notes = made_by(workload("Deployment", replicas=4), replica_set(2), old, *pods)

    assert (names, notes) == ([], ())


@pytest.mark.parametrize("name", ["web", "x" * 253])
def test_pods_of_a_replica_set_that_is_missing_count_for_the_deployment_of_that_name(name):
    replica_set_name = f"{name[: 253 - len(HASH) - 1]}-{HASH}"
    pods = [a_pod(f"web-{n}", ("ReplicaSet", replica_set_name), nodeName="n") for n in range(2)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web", "pod-template-hash": HASH}
    others = [workload("Deployment", other, replicas=1) for other in ("we", f"web-{HASH}")]

    names, _ = made_by(workload("Deployment", name, replicas=5), *others, *pods)

    assert len(names) == 5


def test_each_pod_is_read_for_the_whole_of_the_deployments_not_for_each():
    reads = Counter()

    class CountedPod(Pod):
        def __getattribute__(self, name):
            if name == "metadata":
                reads["metadata"] += 1
            return super().__getattribute__(name)

    def reads_with(deployments):
        text = "\n".join(json.dumps(workload("Deployment", f"d{n}")) for n in range(deployments))
        manifests = read_manifests(["-"], stdin=io.BytesIO(text.encode()))
        reads.clear()
        pods = (CountedPod.model_validate({"metadata": {"name": "p"}}),)
        expand_workloads(replace(manifests, pods=pods), ())
        return reads["metadata"]

    assert reads_with(2) == reads_with(20)


def test_another_template_creates_all_replicas_beside_running_ones_with_a_note():
    changed = workload("Deployment", replicas=3, template=template(cpu="2"))

    names, notes = made_by(changed, replica_set(3), *running(3))

    assert len(names) == 3
    assert not any(name.startswith("web-7f9c-") for name in names)
    assert notes == (
        "Deployment prod/web has another template than the pods that run: 3 new ones are placed "
        "next to 3 old ones, which stay.",
    )


def test_running_pods_count_if_their_replica_set_is_not_among_the_manifests():
    other = a_pod("other", ("ReplicaSet", "other-7f9c"), nodeName="n")
    other["metadata"]["labels"] = {"pod-template-hash": HASH}

    assert len(made_by(workload("Deployment", replicas=5), *running(3), other)[0]) == 2
    assert made_by(workload("Deployment", replicas=2), *running(3))[0] == []


def test_a_change_of_an_exported_cluster_creates_its_pods(tmp_path):
    dump, change = tmp_path / "dump.json", tmp_path / "web.json"
    items = [NODE, workload("Deployment", replicas=2), replica_set(2), *running(2)]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    change.write_text(json.dumps(workload("Deployment", replicas=6)))

    loaded = load_manifests([str(dump)], [str(change)], with_digests=False)

    assert (len(loaded.inputs.running), len(loaded.inputs.pending)) == (2, 4)
