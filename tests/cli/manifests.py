"""Manifests for the command line's tests, as JSON documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Manifest = dict[str, Any]


def node(name: str, cpu: str = "4", zone: str = "", **spec: Any) -> Manifest:
    labels = {"kubernetes.io/hostname": name}
    if zone:
        labels["topology.kubernetes.io/zone"] = zone
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def pod(name: str, cpu: str = "1", namespace: str = "", **spec: Any) -> Manifest:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container]} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def thing(api_version: str, kind: str, name: str, **fields: Any) -> Manifest:
    metadata = {"name": name} | fields.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def deployment(name: str, replicas: int, cpu: str = "1", **spec: Any) -> Manifest:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod("x", cpu, **spec)["spec"]}
    wanted = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return thing("apps/v1", "Deployment", name, spec=wanted)


def owned_by(manifest: Manifest, kind: str, name: str) -> Manifest:
    """Return the manifest with a controlling owner."""
    owner = {"kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    owner["apiVersion"] = "apps/v1"
    return manifest | {"metadata": manifest["metadata"] | {"ownerReferences": [owner]}}


def text_of(*manifests: Manifest) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})


def write(path: Path, *manifests: Manifest) -> str:
    path.write_text(text_of(*manifests))
    return str(path)
