"""Small recordings in which tests plant differences: one cluster, with Roadstead's own answers."""

import copy
import gzip
import json

from scripts.recordings.cases import compile_case, read_document
from scripts.recordings.replay import replay

NODES = ("n1", "n2", "n3")


def node(name, cpu="4", taints=()):
    capacity = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": capacity, "capacity": capacity},
    }


def pod(name, cpu="1", **spec):
    container = {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
    }


def claiming(name):
    """Return a pod that is not supported with the gate of `GATED`: half a device of a class."""
    found = pod(name)
    found["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "500m"
    return found


GATED = {"gates": {"DRAExtendedResource": True}}


BAD_TERM = {"key": "cores", "operator": "Gt", "values": ["-5"]}
UNREADABLE_PREFERENCE = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [BAD_TERM]}}
        ]
    }
}


def header(suite, nodes):
    taint = {"key": "t", "effect": "NoSchedule"}
    tainted = [node(name, taints=[taint] if name == "n3" else ()) for name in nodes]
    served = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    objects = {"nodes": tainted, "deviceClasses": [served]}
    return {"suite": suite, "name": f"{suite}-000", "config": None, "objects": objects}


def static(*pending, bound=(), suite="static"):
    """Return a recording of single decisions, without answers."""
    document = {**header(suite, NODES), "pending": list(pending), "nodes": list(NODES)}
    document["objects"]["pods"] = list(bound)
    return document | {"expected": []}


def sequence(*ops, pending):
    """Return a recording of a sequence; an op is a pod's number, a key to delete, or a node."""
    named = [
        {"op": "schedule", "pod": op}
        if isinstance(op, int)
        else {"op": "delete", "key": op}
        if isinstance(op, str)
        else {"op": "addNode", "node": op}
        for op in ops
    ]
    document = {**header("sequence", NODES), "workload": "planted", "pending": list(pending)}
    return document | {"ops": named, "steps": [{} for _ in named]}


def sampling(*ops, pending):
    """Return a recording of samples over nodes of which the first cannot be used."""
    document = sequence(*ops, pending=pending)
    taint = {"key": "t", "effect": "NoSchedule"}
    names = [f"n{index:03}" for index in range(120)]
    nodes = [node(name, taints=[taint] if name == "n004" else ()) for name in names]
    document["objects"]["nodes"] = nodes
    named = {"suite": "sampling", "name": "sampling-000", "percentageOfNodesToScore": 5}
    return document | named | {"steps": [{**each, "next": 0} for each in document["steps"]]}


def write(folder, document, name=None):
    path = folder / f"{name or document['name']}.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path


def answered(folder, document, key):
    """Return the document with Roadstead's answers in place of the recording's.

    Each step is answered on the state after the recorded steps before it, so each turn makes one
    more step right.
    """
    document = blank(document, key)
    while True:
        ours = json.loads(json.dumps(replayed(folder, document, name="blank").ours[key]))
        if ours == document[key]:
            return document
        document = document | {key: ours}


def blank(document, key):
    return document if key == "steps" else document | {key: [BLANK for _ in document["pending"]]}


BLANK = {"best": [], "feasible": []}


def changed(document, change):
    """Return a copy of a document with a planted difference."""
    planted = copy.deepcopy(document)
    change(planted)
    return planted


def replayed(folder, document, path_name="plain", name=None, explains=True):
    written = write(folder, document, name)
    case = compile_case(written, read_document(written))
    return replay(case, path_name, explains=explains)
