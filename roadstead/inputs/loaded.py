"""Loading of a run's inputs from a trace or the generator; `manifest_inputs` loads manifests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from roadstead.devices.claim_maker import ClaimMaker
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.fleet.gpu_devices import with_gpu_devices
from roadstead.fleet.trace import Trace
from roadstead.protocol.errors import InputError
from roadstead.report.result import InputDigest, NotCreated, digest_of_file
from roadstead.run import RunInputs

RunningPod = tuple[PodIdentity, PodFacts, str]
"""(identity, facts, name of its node)."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The inputs of a run, with what a report says about them.

    source: names of the files, for display. digests: of every input. notes: for the user.
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


def load_trace(path: Path, *, with_digests: bool, gpus_are_devices: bool = False) -> Loaded:
    """Load a trace file, nodes and pods in its order.

    gpus_are_devices: the GPUs of its nodes become devices, and each pod with GPUs gets a claim.

    Raises:
        InputError: the file is no trace, or its GPUs cannot be devices.
    """
    from roadstead.fleet.trace_file import read_trace

    trace = read_trace(path)
    digests = (digest_of_file(path),) if with_digests else ()
    if not gpus_are_devices:
        return inputs_of_trace(trace, digests)
    try:
        return _with_gpu_devices(trace, digests)
    except InputError as error:
        raise error.at(source=str(path)) from error


def _with_gpu_devices(trace: Trace, digests: tuple[InputDigest, ...]) -> Loaded:
    trace, devices = with_gpu_devices(trace)
    loaded = inputs_of_trace(trace, digests)
    for identity, facts, _ in loaded.inputs.running:
        if facts.device_claims:
            problem = "runs already, and the trace does not know on which GPUs"
            raise InputError(problem, obj=f"Pod {identity.key}")
    pending, claims = ClaimMaker(devices.templates).with_claims(loaded.inputs.pending)
    return replace(
        loaded,
        inputs=replace(loaded.inputs, pending=tuple(pending)),
        cluster=replace(loaded.cluster, devices=replace(devices, claims=claims, templates=())),
    )


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
    # Facts without a node name → the first such object, which all equal pods share.
    unbound_facts: dict[PodFacts, PodFacts] = {}
    for identity, facts in pods:
        if facts.node_name:
            unbound = replace(facts, node_name="")
            shared = unbound_facts.setdefault(unbound, unbound)
            running.append((identity, shared, facts.node_name))
        else:
            pending.append((identity, facts))
    return tuple(running), tuple(pending)
