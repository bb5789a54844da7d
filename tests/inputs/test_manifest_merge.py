"""Merged manifests name the file of the object that is used."""

import io
import json
from dataclasses import replace

import pytest

from roadstead.inputs.manifest_merge import merged
from roadstead.manifests import read_manifests
from tests.manifests.test_expansion import a_node, workload


def read(source, *documents):
    text = "\n".join(map(json.dumps, documents))
    found = read_manifests(["-"], stdin=io.BytesIO(text.encode()))
    return replace(found, sources=dict.fromkeys(found.sources, source))


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        *((kind, {}) for kind in ("ReplicationController", "ReplicaSet", "StatefulSet")),
        *((kind, {}) for kind in ("Deployment", "DaemonSet", "Job")),
        ("CronJob", {"jobTemplate": {}}),
    ],
)
def test_a_workload_in_both_is_of_the_pods_and_so_is_its_file(kind, extra):
    cluster = read("cluster.yaml", workload(kind, **extra), workload(kind, "old", **extra))
    pods = read("pods.yaml", workload(kind, **extra))

    sources = merged(cluster, pods).sources

    assert sources == {
        (kind, "prod", "web"): "pods.yaml",
        (kind, "prod", "old"): "cluster.yaml",
    }


def test_another_object_in_both_is_of_the_cluster():
    node = a_node("a1")

    both = merged(read("cluster.yaml", node), read("pods.yaml", node))

    assert both.sources == {("Node", "", "a1"): "cluster.yaml"}
