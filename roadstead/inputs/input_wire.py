"""The inputs of a run as plain data, for the processes and machines that run a sweep."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod_list import PodList, pod_list
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.run import RunInputs


@dataclass(frozen=True, slots=True)
class InputColumns:
    """`RunInputs` and facts of the cluster in columns. running_on: the node of each running pod."""

    nodes: NodeList
    running: PodList
    running_on: tuple[str, ...]
    pending: PodList
    cluster: ClusterFacts


def encode_inputs(inputs: RunInputs, cluster: ClusterFacts) -> list[object]:
    """Return the inputs of a run as plain data."""
    columns = InputColumns(
        NodeList.of(inputs.nodes),
        pod_list((identity, facts) for identity, facts, _ in inputs.running),
        tuple(node for _, _, node in inputs.running),
        pod_list(inputs.pending),
        cluster,
    )
    return to_wire(columns)


def decode_inputs(data: object) -> tuple[RunInputs, ClusterFacts]:
    """Return the inputs that `encode_inputs` encoded. CodecError for anything else."""
    columns = from_wire(InputColumns, data)
    running = tuple(
        (identity, facts, node)
        for (identity, facts), node in zip(columns.running.pods(), columns.running_on, strict=True)
    )
    return RunInputs(columns.nodes, running, tuple(columns.pending.pods())), columns.cluster
