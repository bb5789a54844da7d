"""What a run works on, with where it came from: from a trace, or made here. Manifests: apart."""

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


@dataclass(frozen=True, slots=True)
class Loaded:
    """source: for people. digests: of every input. notes: what a person should know of them.

    not_created: pods and claims of the manifests that admission refuses.
    """

    source: str
    inputs: RunInputs
    cluster: ClusterFacts
    digests: tuple[InputDigest, ...] = ()
    notes: tuple[str, ...] = ()
    not_created: tuple[NotCreated, ...] = ()


def load_trace(path: Path, *, with_digests: bool) -> Loaded:
    """A trace file, nodes and pods in its own order. InputError if it is not one."""
    from roadstead.fleet.trace_file import read_trace

    return of_trace(read_trace(path), (digest_of_file(path),) if with_digests else ())


def load_generated(nodes: int, pods: int, seed: int, *, with_digests: bool) -> Loaded:
    """The fleet of the demo."""
    from roadstead.fleet.generate import generate_fleet
    from roadstead.fleet.trace_file import trace_digest

    trace = generate_fleet(nodes, pods, seed)
    digests = (InputDigest(trace.source, trace_digest(trace)),) if with_digests else ()
    return of_trace(trace, digests)


def of_trace(trace: Trace, digests: tuple[InputDigest, ...] = ()) -> Loaded:
    running, pending = split_pods(trace.pods())
    return Loaded(
        source=trace.source,
        inputs=RunInputs(trace.node_list(), running, pending),
        cluster=ClusterFacts(namespaces=trace.namespaces),
        digests=digests,
    )


def split_pods(pods: Iterable[Pod]) -> tuple[tuple[RunningPod, ...], tuple[Pod, ...]]:
    """(running pods, pending pods): those with a node run there.

    The class of a running pod says nothing of its node: else each node would have its own.
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
