"""Scheduling of a sample fleet with a plugin under test, in batches or pod by pod.

A `DecisionPath` is one way to decide: by the plugins alone, in batches, or with workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from roadstead.cli.plugin.plugin_under_test import BATCH
from roadstead.cli.plugin.samples import SampleFleet, random_stream
from roadstead.cycle.batch import Decision
from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.local.decision_paths import DecisionPath

DELETED_PER_BATCH = 5
"""Placed pods that are deleted after each batch, so that rows change in both directions."""


class PodOutcome(NamedTuple):
    """The decision on a pod.

    key: of the pod. node_name: None if it was not placed. text: the decision as a sentence.
    error: why the attempt failed, or "".
    """

    key: str
    node_name: str | None
    text: str
    error: str


def play(path: DecisionPath, fleet: SampleFleet) -> list[PodOutcome]:
    """Schedule a fleet's pods in batches, and delete some placed pods after each batch."""
    _add_fleet(path, fleet)
    rng = random_stream(fleet.seed, "deletions")
    placed: list[tuple[str, PodFacts, PodIdentity]] = []
    # By UID.
    identities = {identity.uid: identity for identity, _ in fleet.pods}
    played: list[PodOutcome] = []
    for start in range(0, len(fleet.pods), BATCH):
        for decision in _decisions(path, fleet.pods[start : start + BATCH]):
            played.append(_outcome(decision))
            if decision.node_name is not None:
                pod = decision.pod
                placed.append((decision.node_name, pod.pod_class.facts, identities[pod.uid]))
        for _ in range(min(DELETED_PER_BATCH, len(placed))):
            path.remove_pod(*placed.pop(int(rng.integers(len(placed)))))
    return played


def play_each(
    path: DecisionPath, fleet: SampleFleet, before: Callable[[PodFacts], None] | None = None
) -> list[PodOutcome]:
    """Schedule pod by pod, without deletions.

    before: called with the facts of each pod just before it is decided.
    """
    _add_fleet(path, fleet)
    played: list[PodOutcome] = []
    for pod in fleet.pods:
        if before is not None:
            _, facts = pod
            before(facts)
        played += map(_outcome, _decisions(path, [pod]))
    return played


def _add_fleet(path: DecisionPath, fleet: SampleFleet) -> None:
    path.add_nodes(fleet.nodes)
    for identity, facts, name in fleet.running:
        path.add_pod(name, facts, identity)


def _decisions(path: DecisionPath, pods: Sequence[Pod]) -> Iterable[Decision]:
    prepared = [path.prepare(*pod) for pod in pods]
    while prepared:
        # A path may decide only the first pods of a batch.
        decisions = path.decide(prepared)
        yield from decisions
        prepared = prepared[len(decisions) :]


def _outcome(decision: Decision) -> PodOutcome:
    key = decision.pod.key
    if decision.node_name is not None:
        text = f"{key} is placed on {decision.node_name} with score {decision.total}"
    else:
        why = decision.error or (decision.diagnosis.message("") if decision.diagnosis else "")
        text = f"{key} is not placed: {why}"
    return PodOutcome(key, decision.node_name, text, decision.error)
