"""Manifests of two small nodes and of a workload that fits only in part."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import roadstead


def node(name: str, zone: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def web(replicas: int) -> dict[str, object]:
    requests = {"cpu": "2", "memory": "1Gi"}
    container = {"name": "web", "image": "web", "resources": {"requests": requests}}
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


@pytest.fixture
def manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory with `nodes.json` and `app/web.json`."""
    nodes = {"apiVersion": "v1", "kind": "List", "items": [node("n1", "a"), node("n2", "b")]}
    (tmp_path / "app").mkdir()
    (tmp_path / "nodes.json").write_text(json.dumps(nodes))
    (tmp_path / "app" / "web.json").write_text(json.dumps(web(5)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cluster(manifests: Path) -> roadstead.Cluster:
    return roadstead.load("nodes.json", "app")


@pytest.fixture
def fill_disk_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function after which no file of a name can be put in place: the disk is full."""
    replace = os.replace

    def fill_at(name: str) -> None:
        def full(source: Path, target: Path) -> None:
            if target.name == name:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            replace(source, target)

        monkeypatch.setattr(os, "replace", full)

    return fill_at
