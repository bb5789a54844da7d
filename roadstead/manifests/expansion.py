"""Expansion of workloads to the pods that their controllers create (upstream pkg/controller, 1.34).

A workload creates only what is missing: pods, replica sets and jobs that are among the manifests
are not created again. Names are generated, but equal manifests give equal names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice

from roadstead.facts.compile import DEFAULT_NAMESPACE, compile_node, name_in_errors
from roadstead.manifests.collection import TERMINAL_PHASES, Manifests
from roadstead.manifests.daemons import daemon_pods, node_of
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
    DaemonSet,
    Job,
    Node,
    PersistentVolumeClaim,
    Pod,
    ReplicaSet,
    ReplicationController,
)

PODS_MAX = 20_000_000
"""Maximum pods of all workloads: a mistyped number of replicas must not fill the memory."""

_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True)
class _JobPods:
    """The pods of a job that are among the manifests, without failed ones.

    active: number of those that have not ended. indices: the completion indices of all. unindexed:
    number of those without an index.
    """

    active: int = 0
    succeeded: int = 0
    unindexed: int = 0
    indices: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Expansion:
    """Objects that the controllers create, defaults filled in.

    owner_of: (kind, namespace, name) of each created replica set, job and claim → that of the
    workload that owns it. notes: messages for the user.
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
    replica_sets = replica_sets_for(manifests)
    created_jobs = tuple(_jobs(manifests))
    _check_total(
        manifests,
        (*replica_sets.existing, *replica_sets.created),
        (*manifests.jobs, *created_jobs),
    )
    # By controller: how many of its pods are among the manifests.
    existing_counts = Counter(controller_key(each) for each in manifests.pods)
    names = PodNames(map(namespaced_name, manifests.pods))
    pods: list[Pod] = []
    for controller in manifests.replication_controllers:
        pods += _replicas(controller, existing_counts[kind_and_name(controller)], names)
    for replica_set in (*replica_sets.existing, *replica_sets.created):
        pods += _replicas(replica_set, existing_counts[kind_and_name(replica_set)], names)
    pods += _stateful_pods(manifests)
    pods += _daemon_pods(manifests, nodes, names)
    job_pods = _existing_job_pods(manifests)
    for job in (*manifests.jobs, *created_jobs):
        pods += _job_pods(job, job_pods.get(kind_and_name(job), _JobPods()), names)
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


def _check_total(
    manifests: Manifests, replica_sets: Sequence[ReplicaSet], jobs: Sequence[Job]
) -> None:
    """Refuse too many pods before any is created (PODS_MAX).

    replica_sets, jobs: all, also those that deployments and cron jobs create. Daemon sets are not
    counted: no number in a manifest decides how many pods they have.
    """
    wanted: list[tuple[Workload, int]] = [
        *((each, each.spec.replicas) for each in manifests.replication_controllers),
        *((each, each.spec.replicas) for each in replica_sets),
        *((each, each.spec.replicas) for each in manifests.stateful_sets),
        *((each, _parallel_pods(each)) for each in jobs),
    ]
    total = 0
    for workload, replicas in wanted:
        total += replicas
        if total > PODS_MAX:
            owners = {kind_and_name(each): each for each in manifests.deployments}
            crons = {kind_and_name(each): each for each in manifests.cron_jobs}
            named: Workload = {**owners, **crons}.get(controller_key(workload), workload)
            problem = f"makes the pods of all workloads more than {PODS_MAX}"
            raise InputError(problem, obj=name_in_errors(named), field="spec", value=str(replicas))


def _replicas(
    owner: ReplicaSet | ReplicationController, existing_count: int, names: PodNames
) -> Iterator[Pod]:
    for index in range(existing_count, owner.spec.replicas):
        name = _name(owner, f"{owner.metadata.name}-", index, names)
        yield pod_of(owner, owner.spec.template, name)


def _stateful_pods(manifests: Manifests) -> Iterator[Pod]:
    # By namespace: names of pods.
    existing_names: defaultdict[str, set[str]] = defaultdict(set)
    for pod in manifests.pods if manifests.stateful_sets else ():
        existing_names[pod.metadata.namespace].add(pod.metadata.name)
    for stateful in manifests.stateful_sets:
        namespace = stateful.metadata.namespace or DEFAULT_NAMESPACE
        yield from stateful_pods(stateful, existing_names[namespace])


def _daemon_pods(manifests: Manifests, nodes: Sequence[Node], names: PodNames) -> Iterator[Pod]:
    if not manifests.daemon_sets:
        return
    # By daemon set: the nodes that have a pod of it.
    nodes_with_pod: defaultdict[OwnerKey, set[str]] = defaultdict(set)
    for pod in manifests.pods:
        key = controller_key(pod)
        if key[0] == DaemonSet.__name__:
            nodes_with_pod[key].add(node_of(pod))
    facts = tuple(map(compile_node, nodes))
    for daemon in manifests.daemon_sets:
        yield from daemon_pods(daemon, facts, nodes_with_pod[kind_and_name(daemon)], names)


def _name(owner: Workload, base: str, index: int, names: PodNames) -> str:
    """Return an unused name for the index-th pod of a workload. base: the start of the name."""
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


def _existing_job_pods(manifests: Manifests) -> dict[OwnerKey, _JobPods]:
    """Return the pods of each job that are among the manifests."""
    found: defaultdict[OwnerKey, _JobPods] = defaultdict(_JobPods)
    for pod in (*manifests.pods, *manifests.finished_pods) if manifests.jobs else ():
        key, is_finished = controller_key(pod), pod.status.phase in TERMINAL_PHASES
        if key[0] != Job.__name__ or (is_finished and pod.status.phase != "Succeeded"):
            continue
        found[key].active += not is_finished
        found[key].succeeded += is_finished
        if (index := pod.metadata.labels.get(_INDEX_LABEL)) is None:
            found[key].unindexed += 1
        else:
            found[key].indices.add(index)
    return found


def _parallel_pods(job: Job, succeeded: int = 0) -> int:
    """Return how many pods of a job run at the same time, after some have succeeded.

    At most as many as parallelism and the remaining completions. As upstream, a job without
    completions creates no more pods after a success.
    """
    spec = job.spec
    if spec.suspend or (succeeded and spec.completions is None):
        return 0
    wanted = 1 if spec.parallelism is None else spec.parallelism
    return wanted if spec.completions is None else min(wanted, spec.completions - succeeded)


def _job_pods(job: Job, existing: _JobPods, names: PodNames) -> Iterator[Pod]:
    """Yield the pods that a job lacks."""
    spec = job.spec
    labels = {"job-name": job.metadata.name, "batch.kubernetes.io/job-name": job.metadata.name}
    is_indexed = spec.completion_mode == "Indexed"
    free = (index for index in count() if str(index) not in existing.indices)
    missing = max(0, _parallel_pods(job, existing.succeeded) - existing.active)
    # Existing pods without an index, as those of a job that is not indexed, have the first ones.
    for index in islice(free, existing.unindexed, existing.unindexed + missing):
        base = f"{job.metadata.name}-{index}-" if is_indexed else f"{job.metadata.name}-"
        pod_labels = labels | {_INDEX_LABEL: str(index)} if is_indexed else labels
        yield pod_of(job, spec.template, _name(job, base, index, names), pod_labels)
