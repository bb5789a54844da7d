"""Ten pod classes and the nodes for them, for measurements.

Taints, labels, node selectors and affinities, tolerations, host ports and images are all in use, so
that every plugin that evaluates single nodes has something to decide.
"""

from __future__ import annotations

from dataclasses import replace

from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL, NodeFacts
from roadstead.facts.pod import HostPort, PodFacts, PreferredNodeTerm
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint, Toleration
from roadstead.fleet.openb import GPU_RESOURCE, MIB_BYTES, MODEL_LABEL, task_facts

TEN_NAMESPACE = "bench"
ZONES = 5
PODS_PER_NODE = 110
IMAGE_BYTES = 300 * MIB_BYTES

_GPU_TAINT = Taint("dedicated", "gpu", "NoSchedule")
_SPOT_TAINT = Taint("pool", "spot", "PreferNoSchedule")
_GPU_TOLERATION = Toleration("dedicated", "Equal", "gpu", "NoSchedule")
_SPOT_TOLERATION = Toleration("pool", "Exists")


def ten_node(index: int) -> NodeFacts:
    """Return node `index`: of ten, two have GPUs and a taint, three are spot, the rest general."""
    name, digit = f"node-{index:05}", index % 10
    labels = {
        HOSTNAME_LABEL: name,
        ZONE_LABEL: f"zone-{index // 10 % ZONES}",
        "disk": "ssd" if digit % 2 else "hdd",
        "pool": "gpu" if digit < 2 else "spot" if digit < 5 else "general",
    }
    cpus = 32 if digit < 5 else 16
    allocatable = {"cpu": cpus * 1000, "memory": cpus * 4096 * MIB_BYTES}
    taints: tuple[Taint, ...] = ()
    if digit < 2:
        labels[MODEL_LABEL] = "T4" if digit else "G2"
        allocatable[GPU_RESOURCE] = 8000
        taints = (_GPU_TAINT,)
    elif digit < 5:
        taints = (_SPOT_TAINT,)
    return NodeFacts(
        name=name,
        labels=tuple(sorted(labels.items())),
        allocatable=tuple(sorted(allocatable.items())),
        allocatable_pods=PODS_PER_NODE,
        taints=taints,
        images=(("bench/web:1", IMAGE_BYTES),) if index % 3 == 0 else (),
    )


def _pod(
    app: str, cpu_milli: int, memory_mib: int, gpu_milli: int = 0, models: tuple[str, ...] = ()
) -> PodFacts:
    return task_facts(
        TEN_NAMESPACE,
        (("app", app),),
        cpu_milli=cpu_milli,
        memory_bytes=memory_mib * MIB_BYTES,
        gpu_milli=gpu_milli,
        models=models,
        image=f"bench/{app}:1",
    )


def _term(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(expressions=(Requirement(key, operator, values),))


def _prefers(weight: int, term: NodeSelectorTerm) -> tuple[PreferredNodeTerm, ...]:
    return (PreferredNodeTerm(weight, term),)


_SSD = _term("disk", "In", "ssd")
_NO_SPOT = _term("pool", "NotIn", "gpu", "spot")

TEN_CLASSES: tuple[PodFacts, ...] = (
    _pod("web", 100, 256),
    replace(_pod("front", 250, 512), preferred_node_terms=_prefers(10, _SSD)),
    replace(_pod("api", 500, 1024), node_selector=(("pool", "general"),)),
    replace(_pod("cache", 500, 4096), required_node_terms=(_SSD,)),
    replace(
        _pod("database", 2000, 8192),
        required_node_terms=(_NO_SPOT,),
        preferred_node_terms=_prefers(50, _SSD),
    ),
    replace(_pod("batch", 1000, 1024), tolerations=(_SPOT_TOLERATION,)),
    replace(
        _pod("inference", 1000, 4096, 500, ("G2", "T4")),
        tolerations=(_GPU_TOLERATION,),
    ),
    replace(_pod("training", 4000, 16384, 2000), tolerations=(_GPU_TOLERATION,)),
    replace(_pod("agent", 50, 64), host_ports=(HostPort("0.0.0.0", "TCP", 9100),)),  # noqa: S104
    replace(
        _pod("cron", 0, 0),
        requests=(),
        nonzero_cpu_milli=100,
        nonzero_memory_bytes=200 * MIB_BYTES,
    ),
)
