"""Scenario files for tests: a valid one, whose parts a test replaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from roadstead.config.scenario.read import ScenarioFile, load_scenario, read_scenario
from roadstead.scenario.compile import compile_scenario
from roadstead.simulator.scenario import CompiledScenario

HEAD = "apiVersion: roadstead.dev/v1\nkind: Scenario\nmetadata: {name: test}\n"
FLEET = "fleet: [{generate: {nodes: 4, shape: cpu-8, zones: 2}}]\n"
POD = {"spec": {"containers": [{"name": "main", "image": "task:1"}]}}
NAMED_POD = {"metadata": {"name": "task", "labels": {"app": "task"}}, **POD}
TASKS = "arrivals: {poisson: {per_hour: 60}}, pods: [{template: " + json.dumps(NAMED_POD) + "}]"
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "api", "namespace": "shop"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "api"}},
        "template": {"metadata": {"labels": {"app": "api"}}, **POD},
    },
}


def scenario(body: str = "", fleet: str = FLEET) -> str:
    """Return the text of a scenario; its fleet is in line 4."""
    return f"{HEAD}{fleet}{body}"


def read(text: str, directory: Path = Path()) -> ScenarioFile:
    return read_scenario(text, source="test.yaml", directory=directory)


def compiled(text: str, directory: Path = Path()) -> CompiledScenario:
    return compile_scenario(read(text, directory))


def written(folder: Path, text: str, name: str = "test.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def loaded(path: Path) -> CompiledScenario:
    return compile_scenario(load_scenario(path))


def write_json(folder: Path, name: str, *documents: object) -> Path:
    """Write documents to a file, as YAML of several documents."""
    return written(folder, "\n---\n".join(map(json.dumps, documents)), name)
