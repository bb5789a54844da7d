"""Files of test cases that tests write."""

from pathlib import Path

import yaml

from roadstead.bench.build import build_script
from roadstead.bench.reading import read_cases
from roadstead.bench.script import AddNodes, SubmitPods

POD = {
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
    },
}
NODES = {"opcode": "createNodes", "countParam": "$nodes"}
PODS = {"opcode": "createPods", "count": 2, "collectMetrics": True}


def case(*ops, params=None, name="Case", workload="small", **more):
    """Return a test case with one workload."""
    params = {"nodes": 3} if params is None else params
    workloads = [{"name": workload, "params": params}]
    return {"name": name, "workloadTemplate": list(ops), "workloads": workloads, **more}


def write_cases(folder: Path, *cases, **templates):
    """Write a file of test cases, with named templates in the same folder."""
    for name, content in templates.items():
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        (folder / f"{name}.yaml").write_text(text)
    path = folder / "cases.yaml"
    path.write_text(yaml.safe_dump(list(cases)))
    return path


def script_of(folder: Path, *ops, params=None, more=None, **templates):
    """Return the script of a test case's only workload."""
    path = write_cases(folder, case(*ops, params=params, **(more or {})), **templates)
    (found,) = read_cases(path)
    return build_script(found, found.spec.workloads[0])


def measured_pods(script) -> int:
    """Return the number of a script's pods that are measured when they are submitted."""
    submits = (step for step in script.steps if isinstance(step, SubmitPods) and step.measured)
    return sum(step.series.count for step in submits)


def node_count(script) -> int:
    """Return the number of nodes that a script adds."""
    return sum(step.series.count for step in script.steps if isinstance(step, AddNodes))
