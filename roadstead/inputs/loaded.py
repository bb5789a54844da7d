"""The inputs of a run with their source: a trace or the generator. Manifests: `manifest_inputs`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.fleet.trace import Trace
from roadstead.report.result import InputDigest, NotCreated, digest_of_file
from roadstead.run import RunInputs

RunningPod = tuple[PodIdentity, PodFacts, str]
"""(identity, facts, name of its node)."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The inputs of a run. source: for people. digests: of every input. notes: for the user.

    not_created: pods and claims of the manifests that admission refuses. local_storage: UIDs of
    pods with an emptyDir.
    """

    source: str
    inputs: RunInputs
    cluster: ClusterFacts
    digests: tuple[InputDigest, ...] = ()
    notes: tuple[str, ...] = ()
    not_created: tuple[NotCreated, ...] = ()
    local_storage: frozenset[str] = frozenset()


def load_trace(path: Path, *, with_digests: bool) -> Loaded:
    """Load a trace file, nodes and pods in its order; InputError if it is not one."""
    from roadstead.fleet.trace_file import read_trace

    return inputs_of_trace(read_trace(path), (digest_of_file(path),) if with_digests else ())


def load_generated(nodes: int, pods: int, seed: int, *, with_digests: bool) -> Loaded:
    """Generate the fleet of the demo."""
    from roadstead.fleet.generate import generate_fleet
    from roadstead.fleet.trace_file import trace_digest

    trace = generate_fleet(nodes, pods, seed)
    digests = (InputDigest(trace.source, trace_digest(trace)),) if with_digests else ()
    return inputs_of_trace(trace, digests)


def inputs_of_trace(trace: Trace, digests: tuple[InputDigest, ...] = ()) -> Loaded:
    """Return the nodes and pods of a trace as inputs."""
    running, pending = split_pods(trace.pods())
    return Loaded(
        source=trace.source,
        inputs=RunInputs(trace.node_list(), running, pending),
        cluster=ClusterFacts(namespaces=trace.namespaces),
        digests=digests,
    )


def split_pods(pods: Iterable[Pod]) -> tuple[tuple[RunningPod, ...], tuple[Pod, ...]]:
    """Split into (running pods, pending pods): a pod with a node runs there.

    The facts of a running pod have no node name: otherwise each node would have classes of its own.
    """
    running: list[RunningPod] = []
    pending: list[Pod] = []
    unbound: dict[PodFacts, PodFacts] = {}
    for identity, facts in pods:
        if facts.node_name:
            free = replace(facts, node_name="")
            running.append((identity, unbound.setdefault(free, free), facts.node_name))
        else:
            pending.append((identity, facts))
    return tuple(running), tuple(pending)
