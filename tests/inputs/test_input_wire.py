"""Inputs that are sent to other processes are the same there, whatever they contain."""

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.inputs.input_wire import decode_inputs, encode_inputs
from roadstead.inputs.loaded import load_generated
from roadstead.inputs.manifest_inputs import load_manifests
from roadstead.lab.scenarios import constraint_heavy
from roadstead.protocol.plain_data import CodecError, pack, unpack
from roadstead.run import RunInputs
from tests.cli.manifests import node, pod, write


def sent(inputs, cluster):
    """The inputs as another process receives them."""
    return decode_inputs(unpack(pack(encode_inputs(inputs, cluster))))


def assert_same(inputs, cluster):
    found, found_cluster = sent(inputs, cluster)

    assert list(found.nodes) == list(inputs.nodes)
    assert found.running == inputs.running
    assert found.pending == inputs.pending
    assert found_cluster == cluster


def test_a_generated_fleet_and_a_scenario_arrive_unchanged():
    loaded = load_generated(40, 200, 3, with_digests=False)
    facts, pending = constraint_heavy(32, 60, 1)

    assert_same(loaded.inputs, loaded.cluster)
    assert_same(RunInputs(tuple(facts), (), tuple(pending)), ClusterFacts())


def test_manifests_with_storage_budgets_and_running_pods_arrive_unchanged(tmp_path):
    objects = [
        node("n-1", zone="a"),
        node("n-2", zone="b", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
        pod("old", "500m", nodeName="n-1"),
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "fast"},
            "provisioner": "x.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "old"}}},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s"},
            "spec": {"selector": {"app": "x"}},
        },
    ]
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster = write(tmp_path / "cluster.json", *objects)
    pods = write(tmp_path / "pods.json", pod("a", "100m", volumes=volumes), pod("b", "1"))
    loaded = load_manifests((cluster,), (pods,), with_digests=True)

    assert len(loaded.inputs.running) == 1
    assert len(loaded.inputs.pending) == 2
    assert loaded.cluster.storage.claims
    assert loaded.cluster.budgets
    assert_same(loaded.inputs, loaded.cluster)


@pytest.mark.parametrize("data", [None, [], [1, 2, 3, 4, 5], {"nodes": []}])
def test_other_data_is_refused(data):
    with pytest.raises(CodecError):
        decode_inputs(data)
