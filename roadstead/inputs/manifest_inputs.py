"""The inputs of a run, from the user's manifests."""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from roadstead.facts.compile import (
    FactsPool,
    compile_node,
    compile_pod,
    name_in_errors,
    pod_identity,
)
from roadstead.facts.pod import Pod
from roadstead.facts.pod_groups import pod_groups
from roadstead.inputs.cluster_facts import cluster_facts
from roadstead.inputs.device_notes import unknown_device_notes
from roadstead.inputs.loaded import Loaded, RunningPod, split_pods
from roadstead.inputs.manifest_merge import merged, workloads_to_expand
from roadstead.inputs.not_created import not_created, not_created_notes
from roadstead.manifests import Manifests, expand_workloads, read_manifests
from roadstead.manifests.creation import create
from roadstead.manifests.files import STDIN
from roadstead.manifests.templates import namespaced_name
from roadstead.protocol import objects
from roadstead.protocol.documents import SIZE_MAX_BYTES
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.quantity import QuantityError
from roadstead.report.result import InputDigest
from roadstead.report.units import counted
from roadstead.run import RunInputs

SOURCE_MAX_CHARS = 60
"""Maximum length of a list of paths for display; a longer one is shown as a path and a count."""

UNKNOWN_FIELDS_SHOWN = 10
MISSING_NODES_SHOWN = 3
BOUND_TO_NODES = "DaemonSet", "Node"
"""Kinds of owners whose pods cannot move to another node: daemon sets, and, for static pods, the
node itself."""


def load_manifests(
    cluster: Sequence[str],
    pods: Sequence[str],
    *,
    with_digests: bool,
    is_strict: bool = False,
    reschedules_lost: bool = False,
) -> Loaded:
    """Load nodes, sorted by name as by the API server, and pods, the cluster's pending ones first.

    cluster: paths of the manifests of a cluster. pods: paths of the manifests to be scheduled on
    it, whose workloads are expanded: replaced by the pods that their controllers would create.
    is_strict: as in `read_manifests`. reschedules_lost: running pods of missing nodes become
    pending, behind the others.

    Raises:
        InputError: a path, text or object that is wrong, or one that occurs twice and differs.
    """
    digests = _Digests()
    on_text = digests.add if with_digests else None
    # Standard input can be read once only, and may be among both the `cluster` and the `pods`.
    content = sys.stdin.buffer.read(SIZE_MAX_BYTES + 1) if STDIN in (*cluster, *pods) else b""
    existing = read_manifests(
        cluster, stdin=io.BytesIO(content), is_strict=is_strict, on_text=on_text
    )
    wanted = read_manifests(
        pods,
        stdin=io.BytesIO(content),
        priority_classes=existing.priority_classes,
        is_strict=is_strict,
        on_text=on_text,
    )
    everything = merged(existing, wanted)
    nodes = tuple(sorted(everything.nodes, key=lambda each: each.metadata.name.encode()))
    expansion = expand_workloads(workloads_to_expand(existing, wanted, everything), nodes)
    all_pods = (*everything.pods, *expansion.pods)
    created = create(everything, all_pods, expansion.claims)
    refused = not_created(created.refused, all_pods, expansion.owner_of, everything.sources)
    running, pending = split_pods(compile_pods(created.pods, served_resources(everything)))
    known, lost = on_known_nodes(running, {each.metadata.name for each in nodes})
    recreated = _recreated(lost) if reschedules_lost else ()
    paths = tuple(dict.fromkeys((*cluster, *pods)))
    facts = replace(
        cluster_facts(
            everything,
            expansion.replica_sets,
            created.claims,
            created.pods,
            created.device_claims,
        ),
        pod_groups=pod_groups(everything.pod_groups, (each for _, each, _ in known)),
    )
    return Loaded(
        source=_source(paths),
        inputs=RunInputs(tuple(map(compile_node, nodes)), known, (*pending, *recreated)),
        cluster=facts,
        digests=digests.found(),
        notes=(
            *lost_notes(lost, len(recreated)),
            *manifest_notes((existing, wanted), has_nodes=bool(nodes)),
            *expansion.notes,
            *created.notes,
            *unknown_device_notes(known, facts.devices.claims),
            *not_created_notes(refused),
        ),
        not_created=refused,
        local_storage=frozenset(_with_local_storage(created.pods)),
    )


def _with_local_storage(pods: Iterable[objects.Pod]) -> Iterator[str]:
    """Yield the UIDs of pods with an emptyDir: their data are on the node."""
    for pod in pods:
        if any(each.empty_dir is not None for each in pod.spec.volumes):
            yield pod_identity(pod).uid


def served_resources(manifests: Manifests) -> frozenset[str]:
    """Return the extended resources that classes of devices serve."""
    names = (each.spec.extended_resource_name for each in manifests.device_classes)
    return frozenset(name for name in names if name)


def compile_pods(
    pods: Iterable[objects.Pod], device_resources: Container[str] = frozenset()
) -> Iterator[Pod]:
    """Compile pods; equal facts become one object, and a UID that occurs twice is an error.

    device_resources: extended resources that are claimed as devices (`served_resources`).
    """
    pool = FactsPool()
    # By UID.
    key_of: dict[str, str] = {}
    for pod in pods:
        try:
            identity, facts = compile_pod(pod, device_resources)
        except QuantityError as error:
            raise InputError(
                str(error), obj=name_in_errors(pod), field="spec.containers"
            ) from error
        other = key_of.get(identity.uid)
        key_of[identity.uid] = identity.key
        if other is not None:
            whose = "another pod of this name" if other == identity.key else other
            raise InputError(
                f"is also the UID of {whose}: a UID must be unique",
                obj=name_in_errors(pod),
                field="metadata.uid",
                value=cut_short(identity.uid),
            )
        yield identity, pool.intern(facts)


def on_known_nodes(
    running: Sequence[RunningPod], nodes: set[str]
) -> tuple[tuple[RunningPod, ...], tuple[RunningPod, ...]]:
    """Split into (pods on existing nodes, lost pods: those on nodes that are missing).

    Upstream's snapshot has no lost pods.
    """
    known = tuple(each for each in running if each[2] in nodes)
    return known, tuple(each for each in running if each[2] not in nodes)


def _recreated(lost: Sequence[RunningPod]) -> tuple[Pod, ...]:
    """Return the lost pods that are pending again: neither terminating nor bound to their node."""
    return tuple(
        (replace(identity, started_s=None), facts)
        for identity, facts, _ in lost
        if not facts.is_terminating
        and (facts.owner is None or facts.owner.kind not in BOUND_TO_NODES)
    )


def _source(paths: Sequence[str]) -> str:
    """Return the paths as one text for display."""
    names = [path if path != STDIN else "standard input" for path in paths]
    text = ", ".join(names)
    if len(text) <= SOURCE_MAX_CHARS or len(names) == 1:
        return text
    return f"{names[0]} and {len(names) - 1:,} more"


class _Digests:
    """The digest of each text that is read: a pipe has no text left for a second reading."""

    def __init__(self) -> None:
        # By the real path.
        self._by_file: dict[str, InputDigest] = {}

    def add(self, source: str, text: bytes) -> None:
        file = os.path.realpath(source)
        if file not in self._by_file:
            self._by_file[file] = InputDigest(source, hashlib.sha256(text).hexdigest())

    def found(self) -> tuple[InputDigest, ...]:
        """Return one for each file, in the order of reading."""
        return tuple(self._by_file.values())


def lost_notes(lost: Sequence[RunningPod], pending: int) -> Iterator[str]:
    """Yield notes on running pods of missing nodes. pending: how many are pending again."""
    names = sorted({node_name for _, _, node_name in lost})
    more = (
        f" and {len(names) - MISSING_NODES_SHOWN:,} more"
        if len(names) > MISSING_NODES_SHOWN
        else ""
    )
    where = f"nodes that the manifests do not have ({', '.join(names[:MISSING_NODES_SHOWN])}{more})"
    if pending:
        yield f"Pending again: {counted(pending, 'pod')} of {where}."
    if len(lost) > pending:
        yield f"Left out: {counted(len(lost) - pending, 'running pod')} on {where}."


def manifest_notes(read: Sequence[Manifests], *, has_nodes: bool) -> Iterator[str]:
    """Yield notes on the parts of manifests that are not used. has_nodes: of the cluster."""
    if not has_nodes:
        yield "The cluster has no nodes: no pod can be placed."
    finished = sum(len(each.finished_pods) for each in read)
    if finished:
        yield f"Left out: {counted(finished, 'finished pod')}."
    unknown = [text for each in read for text in each.unknown]
    yield from (f"Left out: {text}" for text in unknown[:UNKNOWN_FIELDS_SHOWN])
    if len(unknown) > UNKNOWN_FIELDS_SHOWN:
        yield f"Left out: {counted(len(unknown) - UNKNOWN_FIELDS_SHOWN, 'more unknown field')}."
    budgets = [each for manifests in read for each in manifests.pod_disruption_budgets]
    if unread := [each for each in budgets if "status" not in each.model_fields_set]:
        yield (
            f"Without a status: {counted(len(unread), 'disruption budget')} (first "
            f"{'/'.join(namespaced_name(unread[0]))}); as kube-scheduler reads them, they allow no "
            "disruption."
        )
    custom_workloads: dict[str, list[str]] = {}
    for kind, names in chain.from_iterable(each.workload_documents.items() for each in read):
        custom_workloads.setdefault(kind, []).extend(names)
    for kind, names in sorted(custom_workloads.items()):
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        rule = "its own controller creates its pods: add them to the manifests"
        yield f"Left out: {kind} {names[0]}{more}; {rule}."
    ignored: Counter[str] = Counter()
    for each in read:
        ignored.update(each.ignored)
    if ignored:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(ignored.items()))
        yield f"Left out, because scheduling does not use them: {kinds}."
