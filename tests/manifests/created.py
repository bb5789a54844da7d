"""Small manifests and the objects that admission creates from them."""

from __future__ import annotations

import io
import json
from typing import Any

from roadstead.manifests import expand_workloads, read_manifests
from roadstead.manifests.creation import CreatedObjects, create

Document = dict[str, Any]


def container(name: str = "c", limits: Any = None, **requests: str) -> Document:
    """requests: cpu and memory; limits: a mapping, or None."""
    resources = {"requests": requests} | ({"limits": limits} if limits else {})
    return {"name": name, "image": "x", "resources": resources}


def pod(name: str = "p", *containers: Document, uid: str = "", **spec: Any) -> Document:
    metadata = {"name": name} | ({"uid": uid} if uid else {})
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": list(containers)} | spec}


def claim(name: str = "c", storage: str = "1Gi", uid: str = "", **spec: Any) -> Document:
    metadata = {"name": name} | ({"uid": uid} if uid else {})
    spec = {"resources": {"requests": {"storage": storage}}} | spec
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def limit_range(kind: str = "Container", name: str = "l", **values: Any) -> Document:
    spec = {"limits": [{"type": kind} | values]}
    return {"kind": "LimitRange", "metadata": {"name": name}, "spec": spec}


def quota(hard: Any, name: str = "q", used: Any = None, **spec: Any) -> Document:
    found = {"kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard} | spec}
    return found | ({"status": {"used": used}} if used else {})


def created(*documents: Document) -> CreatedObjects:
    """Return the objects after the workloads have created their pods and admission is done."""
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": documents}).encode()
    manifests = read_manifests(["-"], stdin=io.BytesIO(text))
    made = expand_workloads(manifests, manifests.nodes)
    return create(manifests, (*manifests.pods, *made.pods), made.claims)


def refusals(*documents: Document) -> dict[str, str]:
    """Return the reasons of the objects that are not created, by name."""
    return {each.manifest.metadata.name: each.reason for each in created(*documents).refused}


def reason(*documents: Document) -> str:
    """Return the reason of the only refused object; "" if there is none."""
    found = list(refusals(*documents).values())
    assert len(found) <= 1
    return found[0] if found else ""
