"""The fleet that the runs of these tests schedule."""

import pytest
import yaml


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Manifests of 60 nodes and 6,000 pods."""
    folder = tmp_path_factory.mktemp("fleet")
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{index}"},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"}},
        }
        for index in range(60)
    ]
    resources = {"requests": {"cpu": "100m", "memory": "200Mi"}}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 6_000,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
            },
        },
    }
    (folder / "nodes.yaml").write_text(yaml.safe_dump_all(nodes))
    (folder / "pods.yaml").write_text(yaml.safe_dump(workload))
    return folder
