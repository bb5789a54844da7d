"""The result of a run by pod and by workload: nodes, and reasons of pending pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from roadstead.facts.pod import TEMPLATE_HASH, Pod, PodFacts
from roadstead.report.result import Json, NotCreated, RunResult
from roadstead.report.summary import summarize, summary_document

BARE_PODS_MAX = 10
"""Up to this number, pods without a controller are listed singly; more are counted together."""


@dataclass(frozen=True, slots=True)
class PodLine:
    """One pod. workload: as `workload_of` returns it.

    node: "" if the pod is pending. reason: "" if it is placed. score: of the node, as in
    `PlacedPod`.
    """

    pod: str
    workload: str
    node: str
    reason: str
    score: int | None = None


@dataclass(slots=True)
class ControllerPods:
    """Pods of one controller. nodes: node → number of pods. The other fields are counts."""

    name: str
    nodes: Counter[str] = field(default_factory=Counter)
    pending: int = 0
    preempted: int = 0
    not_created: int = 0

    @property
    def placed(self) -> int:
        return self.nodes.total()

    def document(self) -> dict[str, Json]:
        """The workload as JSON."""
        nodes: dict[str, Json] = {name: self.nodes[name] for name in sorted(self.nodes)}
        counts = {"placed": self.placed, "pending": self.pending, "preempted": self.preempted}
        counts["not_created"] = self.not_created
        return {"workload": self.name, **counts, "nodes": nodes}


def workload_of(facts: PodFacts) -> str:
    """`Kind namespace/name` of the owner of a pod; "" for a pod without an owner.

    A ReplicaSet is replaced by its Deployment if its name ends with the hash of the pod's template.
    """
    owner = facts.owner
    if owner is None:
        return ""
    return workload_name(owner.kind, facts.namespace, owner.name, facts.labels)


def workload_name(kind: str, namespace: str, name: str, labels: Iterable[tuple[str, str]]) -> str:
    """`workload_of` a pod, from its controller and its labels."""
    if kind == "ReplicaSet":
        suffix = next((f"-{value}" for key, value in labels if key == TEMPLATE_HASH), "")
        if suffix and name.endswith(suffix):
            kind, name = "Deployment", name.removesuffix(suffix)
    return f"{kind} {namespace}/{name}"


def pod_lines(pods: Iterable[Pod], result: RunResult) -> Iterator[PodLine]:
    """A line for each pod that was to be scheduled, in input order."""
    placed = {each.uid: each for each in result.placements}
    reason_of = {each.uid: each.message for each in result.pending}
    reason_of |= {each.uid: f"preempted by {each.preemptor}" for each in result.preempted}
    for identity, facts in pods:
        uid = identity.uid
        reason, found = reason_of.get(uid, ""), placed.get(uid)
        node, score = ("", None) if found is None else (found.node, found.score)
        yield PodLine(identity.key, workload_of(facts), node, reason, score)


def lines_not_created(result: RunResult) -> Iterator[PodLine]:
    """A line for each pod that admission refuses, with its reason."""
    for each in result.not_created:
        if each.kind == "Pod":
            yield PodLine(each.name, each.workload, "", f"not created: {each.reason}")


def all_lines(pods: Iterable[Pod], result: RunResult) -> Iterator[PodLine]:
    """Lines of the pods that were to be scheduled, then those of pods that are not created."""
    yield from pod_lines(pods, result)
    yield from lines_not_created(result)


def workloads(pods: Sequence[Pod], result: RunResult) -> tuple[ControllerPods, ...]:
    """The workloads of the pods that were to be scheduled, in the order of their first pods.

    Workloads whose pods are all refused by admission come last.
    """
    node_of = {each.uid: each.node for each in result.placements}
    preempted = {each.uid for each in result.preempted}
    refused = [each for each in result.not_created if each.kind == "Pod"]
    bare = sum(facts.owner is None for _, facts in pods) + sum(
        not each.workload for each in refused
    )
    is_counted = bare > BARE_PODS_MAX
    found: dict[str, ControllerPods] = {}
    for identity, facts in pods:
        name = workload_of(facts) or _bare_name(identity.key, is_counted=is_counted)
        workload = found.get(name) or found.setdefault(name, ControllerPods(name))
        node_name = node_of.get(identity.uid)
        if node_name is not None:
            workload.nodes[node_name] += 1
        elif identity.uid in preempted:
            workload.preempted += 1
        else:
            workload.pending += 1
    for each in refused:
        name = each.workload or _bare_name(each.name, is_counted=is_counted)
        (found.get(name) or found.setdefault(name, ControllerPods(name))).not_created += 1
    return tuple(found.values())


def _bare_name(key: str, *, is_counted: bool) -> str:
    return "Pods without a controller" if is_counted else f"Pod {key}"


def bindings(pods: Iterable[Pod], result: RunResult) -> tuple[dict[str, Json], int]:
    """The placements as a List of Bindings, and the number of placed pods that it leaves out.

    Pods are left out that a controller has yet to create: their names in a cluster are not known.
    """
    node_of = {each.uid: each.node for each in result.placements}
    placed = [(identity, facts) for identity, facts in pods if identity.uid in node_of]
    items: list[Json] = [
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": identity.name, "namespace": identity.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_of[identity.uid]},
        }
        for identity, facts in placed
        # A pod that was derived from a controller's manifest has its key in place of a uid.
        if facts.owner is None or identity.uid != f"{identity.namespace}/{identity.name}"
    ]
    document: dict[str, Json] = {"apiVersion": "v1", "kind": "List", "items": items}
    return document, len(placed) - len(items)


def pods_document(
    pods: Iterable[PodLine], grouped: Iterable[ControllerPods], refused: Iterable[NotCreated] = ()
) -> dict[str, Json]:
    """Workloads, pods, and objects that are not created, as JSON."""
    return {
        "workloads": [each.document() for each in grouped],
        "pods": [dict(asdict(each)) for each in pods],
        "objects_not_created": [dict(asdict(each)) for each in refused],
    }


def result_document(result: RunResult, pods: Sequence[Pod]) -> dict[str, Json]:
    """The summary, workloads and pods of a run as JSON. pods: those to schedule, in this order."""
    lines, grouped = pod_lines(pods, result), workloads(pods, result)
    document = pods_document(lines, grouped, result.not_created)
    return {**summary_document(summarize(result)), **document}
