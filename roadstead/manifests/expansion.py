"""Expansion of workloads to the pods that their controllers create (upstream pkg/controller, 1.34).

A workload creates only what is missing: pods, replica sets and jobs that are among the manifests
are not created again. Names are generated, but equal manifests give equal names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from roadstead.facts.compile import DEFAULT_NAMESPACE, name_in_errors
from roadstead.manifests.collection import Manifests
from roadstead.manifests.daemons import daemon_pods
from roadstead.manifests.defaults import default_pod
from roadstead.manifests.deployments import owned_meta, replica_sets_for
from roadstead.manifests.names import (
    PodNames,
    generated_name,
    joined_name,
)
from roadstead.manifests.stateful import stateful_claims, stateful_pods
from roadstead.manifests.templates import (
    OwnerKey,
    Workload,
    controller_key,
    kind_and_name,
    namespaced_name,
    pod_of,
)
from roadstead.protocol.errors import InputError
from roadstead.protocol.generated_names import suffix_of
from roadstead.protocol.objects import (
    CronJob,
    Job,
    Node,
    PersistentVolumeClaim,
    Pod,
    ReplicaSet,
    ReplicationController,
)

PODS_MAX = 20_000_000
"""Pods of all workloads, to refuse a mistyped number of replicas before it fills the memory."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """Objects that the controllers create, defaults filled in.

    owner_of: key of each created replica set, job and claim → key of its workload.
    notes: messages for the user.
    """

    pods: tuple[Pod, ...]
    replica_sets: tuple[ReplicaSet, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()
    owner_of: Mapping[OwnerKey, OwnerKey] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def expand_workloads(manifests: Manifests, nodes: Sequence[Node]) -> Expansion:
    """Create the pods that the workloads among `manifests` lack on a cluster of `nodes`.

    Raises:
        InputError: the pod of a template is invalid, or the workloads have too many pods.
    """
    _check_total(manifests)
    # By controller: how many of its pods are among the manifests.
    existing = Counter(controller_key(each) for each in manifests.pods)
    names = PodNames(map(namespaced_name, manifests.pods))
    replica_sets = replica_sets_for(manifests)
    pods: list[Pod] = []
    for controller in manifests.replication_controllers:
        pods += _replicas(controller, existing[kind_and_name(controller)], names)
    for replica_set in (*replica_sets.existing, *replica_sets.created):
        pods += _replicas(replica_set, existing[kind_and_name(replica_set)], names)
    for stateful in manifests.stateful_sets:
        pods += stateful_pods(stateful, manifests.pods)
    for daemon in manifests.daemon_sets:
        pods += daemon_pods(daemon, nodes, manifests.pods, names)
    created_jobs = tuple(_jobs(manifests))
    for job in (*manifests.jobs, *created_jobs):
        pods += _job_pods(job, existing[kind_and_name(job)], names)
    priority_classes = {each.metadata.name: each for each in manifests.priority_classes}
    claims = tuple(stateful_claims(manifests.stateful_sets, manifests.persistent_volume_claims))
    owner_of = {
        kind_and_name(each): controller_key(each) for each in (*replica_sets.created, *created_jobs)
    }
    owner_of |= {kind_and_name(claim): kind_and_name(owner) for owner, claim in claims}
    return Expansion(
        pods=tuple(default_pod(pod, priority_classes) for pod in pods),
        replica_sets=replica_sets.created,
        claims=tuple(each for _, each in claims),
        owner_of=owner_of,
        notes=replica_sets.notes,
    )


def _check_total(manifests: Manifests) -> None:
    """Refuse too many pods before any is created (PODS_MAX)."""
    wanted: list[tuple[Workload, int]] = [
        *((each, each.spec.replicas) for each in manifests.replication_controllers),
        *((each, each.spec.replicas) for each in manifests.replica_sets),
        *((each, each.spec.replicas) for each in manifests.deployments),
        *((each, each.spec.replicas) for each in manifests.stateful_sets),
        *((each, each.spec.parallelism or 0) for each in manifests.jobs),
    ]
    total = 0
    for workload, replicas in wanted:
        total += replicas
        if total > PODS_MAX:
            problem = f"makes the pods of all workloads more than {PODS_MAX}"
            raise InputError(
                problem, obj=name_in_errors(workload), field="spec", value=str(replicas)
            )


def _replicas(
    owner: ReplicaSet | ReplicationController, existing: int, names: PodNames
) -> Iterator[Pod]:
    for index in range(existing, owner.spec.replicas):
        name = _name(owner, f"{owner.metadata.name}-", index, names)
        yield pod_of(owner, owner.spec.template, name)


def _name(owner: Workload, base: str, index: int, names: PodNames) -> str:
    namespace = owner.metadata.namespace or DEFAULT_NAMESPACE
    return names.allocate(namespace, partial(generated_name, base, index))


def _jobs(manifests: Manifests) -> Iterator[Job]:
    """Yield the first job of each cron job that has none yet and is not suspended."""
    owned = {controller_key(each) for each in manifests.jobs}
    for cron in manifests.cron_jobs:
        if kind_and_name(cron) not in owned and not cron.spec.suspend:
            yield _job(cron)


def _job(cron: CronJob) -> Job:
    template = cron.spec.job_template
    name = joined_name(cron.metadata.name, suffix_of(cron.spec.schedule))
    return Job(metadata=owned_meta(cron, name, template.metadata.labels), spec=template.spec)


def _job_pods(job: Job, existing: int, names: PodNames) -> Iterator[Pod]:
    """Yield the pods that a job lacks. At most parallelism and completions run at the same time."""
    spec = job.spec
    wanted = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is not None:
        wanted = min(wanted, spec.completions)
    labels = {"job-name": job.metadata.name, "batch.kubernetes.io/job-name": job.metadata.name}
    is_indexed = spec.completion_mode == "Indexed"
    for index in range(existing, 0 if spec.suspend else wanted):
        base = f"{job.metadata.name}-{index}-" if is_indexed else f"{job.metadata.name}-"
        index_label = {"batch.kubernetes.io/job-completion-index": str(index)}
        pod_labels = labels | index_label if is_indexed else labels
        yield pod_of(job, spec.template, _name(job, base, index, names), pod_labels)
