"""Files of test cases, written where a test wants them."""

from pathlib import Path

import yaml

from roadstead.bench.build import build_script
from roadstead.bench.reading import read_cases

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
    """A test case with one workload."""
    params = {"nodes": 3} if params is None else params
    workloads = [{"name": workload, "params": params}]
    return {"name": name, "workloadTemplate": list(ops), "workloads": workloads, **more}


def write_cases(folder: Path, *cases, **templates):
    """A file of test cases, with templates by name beside it."""
    for name, content in templates.items():
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        (folder / f"{name}.yaml").write_text(text)
    path = folder / "cases.yaml"
    path.write_text(yaml.safe_dump(list(cases)))
    return path


def script_of(folder: Path, *ops, params=None, more=None, **templates):
    """The script of a test case's only workload."""
    path = write_cases(folder, case(*ops, params=params, **(more or {})), **templates)
    (found,) = read_cases(path)
    return build_script(found, found.spec.workloads[0])
