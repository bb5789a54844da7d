"""Controllers of a scenario: their objects, the pods of each revision, and their changes.

A revision is one pod template of a controller, as in `kubectl rollout`; each rollout adds one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.values import Percentage
from roadstead.config.scenario.workload import (
    ControllerEntry,
    DaemonSetEntry,
    DeploymentEntry,
    JobEntry,
    RolloutStep,
    ScaledController,
    StatefulSetEntry,
)
from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.manifests.daemons import daemon_pod
from roadstead.manifests.deployments import replica_set_of
from roadstead.manifests.names import joined_name
from roadstead.manifests.object_checks import check_object
from roadstead.manifests.stateful import stateful_claims, stateful_pods
from roadstead.manifests.templates import pod_of
from roadstead.protocol.generated_names import suffix_of
from roadstead.protocol.objects import (
    ApiObject,
    DaemonSet,
    Deployment,
    Job,
    LabelSelector,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    PodTemplate,
    ReplicaSet,
    StatefulSet,
)
from roadstead.protocol.objects.workloads import (
    DaemonSetSpec,
    JobSpec,
    ReplicaSetSpec,
    StatefulSetSpec,
)
from roadstead.scenario.templates import (
    PERIOD_MAX_S,
    KeyPath,
    TemplateObject,
    Templates,
    file_stem,
)
from roadstead.simulator.scenario import (
    DEFAULT_ROLLOUT_BOUND,
    ControllerChange,
    ControllerKind,
    ControllerPlan,
    Durations,
    PodTemplatePlan,
)
from roadstead.simulator.share import Share
from roadstead.simulator.times import NEVER_US, SECOND_US

ORDINALS_MAX: Final = 10_000
"""Maximum number of pods of a StatefulSet, in memory at one time: each has facts of its own."""

PREFIX_MAX_CHARS: Final = 240
"""Maximum length of a prefix of pod names; a name has 253 characters at most."""

BACKOFF_LIMIT: Final = 6
"""The API server's default of a Job's backoffLimit."""

_DEPLOYMENT_ROLLING_UPDATE: Final = ("spec", "strategy", "rollingUpdate")
_DAEMON_SET_ROLLING_UPDATE: Final = ("spec", "updateStrategy", "rollingUpdate")
_NAME_LABEL: Final = "app"
"""The label of pods whose template has none, so that their controller can select them."""


@dataclass(slots=True)
class ControllerObjects:
    """Additions of controllers to the cluster: objects that select pods, claims, and namespaces."""

    replica_sets: list[ReplicaSet] = field(default_factory=list)
    stateful_sets: list[StatefulSet] = field(default_factory=list)
    claims: list[PersistentVolumeClaim] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ControllerCompiler:
    """Compile the controllers of the workload; their objects are collected in `objects`."""

    file: ScenarioFile
    templates: Templates
    objects: ControllerObjects

    def plan(
        self,
        index: int,
        kind: ControllerKind,
        entry: ControllerEntry,
        at: KeyPath,
        durations: Durations | None,
    ) -> ControllerPlan:
        """Compile one controller. index: among controllers. at: the entry's path, for errors.

        Raises InputError.
        """
        first = self.templates.read((*at, "template"), entry.template)
        name = entry.name or _name(first, entry.template)
        if not name:
            raise self.file.error((*at, "name"), "is missing, here and in the template")
        namespace = first.manifest.metadata.namespace or DEFAULT_NAMESPACE
        meta = ObjectMeta(name=name, namespace=namespace)
        self.objects.namespaces.add(meta.namespace)
        rollouts: Sequence[RolloutStep] = getattr(entry, "rollout", ())
        revisions = [first]
        for number, step in enumerate(rollouts):
            where = (*at, "rollout", number, "template")
            revisions.append(self.templates.read(where, step.template))
        if isinstance(entry, ScaledController):
            replicas = _first_set(entry.replicas, _replicas(first.manifest), 1)
        else:
            replicas = _completions(first.manifest, entry) if isinstance(entry, JobEntry) else 0
        # Facts of every ordinal of a StatefulSet are made once, here; so the largest size that the
        # scenario ever sets is bounded.
        max_replicas = max([replicas, *(step.replicas for step in getattr(entry, "scale", ()))])
        if kind == "StatefulSet" and max_replicas > ORDINALS_MAX:
            problem = f"is more than a StatefulSet of a scenario may have ({ORDINALS_MAX:,} pods)"
            raise self.file.error(at, problem, max_replicas)
        owners = [_controller(kind, meta, each, max_replicas) for each in revisions]
        plans = [self._revision(*pair) for pair in zip(owners, revisions, strict=True)]
        owner = owners[0]
        if isinstance(owner, StatefulSet):
            # Later revisions have the same claims.
            self.objects.stateful_sets.append(owner)
            self.objects.claims += [claim for _, claim in stateful_claims([owner], [])]
        plan = ControllerPlan(
            index=index,
            kind=kind,
            namespace=meta.namespace,
            name=meta.name,
            templates=tuple(plans),
            replicas=replicas,
            created_us=entry.at,
            deleted_us=NEVER_US if entry.delete_at is None else entry.delete_at,
            changes=_changes(entry, rollouts),
            durations=durations,
            min_ready_us=_min_ready_us(first),
        )
        return _with_parameters(plan, entry, first)

    def _revision(self, owner: ApiObject, parsed: TemplateObject) -> PodTemplatePlan:
        """Compile the pods of one revision.

        owner: the controller, with the template of this revision. parsed: the same template as it
        was read.
        """
        check_object(type(owner).__name__, owner, source=parsed.source)
        if isinstance(owner, StatefulSet):
            return self._stateful(owner, parsed)
        owner_name = owner.metadata.name
        if isinstance(owner, Deployment):
            owner = replica_set_of(owner)
            owner_name = owner.metadata.name
        if isinstance(owner, ReplicaSet):
            self.objects.replica_sets.append(owner)
        if isinstance(owner, DaemonSet):
            pod = daemon_pod(owner)
        elif isinstance(owner, Job):
            labels = {"job-name": owner_name, "batch.kubernetes.io/job-name": owner_name}
            pod = pod_of(owner, owner.spec.template, owner_name, labels)
        else:
            assert isinstance(owner, ReplicaSet)
            pod = pod_of(owner, owner.spec.template, owner_name)
        return PodTemplatePlan(_pod_name_prefix(owner_name), *self.templates.compile(pod, parsed))

    def _stateful(self, owner: StatefulSet, parsed: TemplateObject) -> PodTemplatePlan:
        """Compile the pods of all ordinals."""
        compiled = [
            self.templates.compile(pod, parsed) for pod in stateful_pods(owner, frozenset())
        ]
        # A plan has the facts of a pod even if it has no replicas.
        facts, lifecycle = (
            compiled[0] if compiled else self.templates.compile(_pod_without_ordinal(owner), parsed)
        )
        ordinals = tuple(of_ordinal for of_ordinal, _ in compiled)
        return PodTemplatePlan(owner.metadata.name, facts, lifecycle, ordinals)


def _pod_name_prefix(owner_name: str) -> str:
    """Return a prefix that leaves room for the suffix of a pod's name."""
    if len(owner_name) <= PREFIX_MAX_CHARS:
        return owner_name
    # With a hash of the whole name, so that cut names differ.
    return joined_name(owner_name[: PREFIX_MAX_CHARS - 10], suffix_of(owner_name))


def _pod_without_ordinal(owner: StatefulSet) -> Pod:
    return pod_of(owner, owner.spec.template, owner.metadata.name)


def _name(parsed: TemplateObject, template: object) -> str:
    """Return the name that the template has, or else that of its file; "" if it has neither."""
    # A template in the scenario without a name was read as a Pod of the name "pod".
    is_unnamed = isinstance(template, dict) and "name" not in (template.get("metadata") or {})
    return file_stem(template) if is_unnamed or not parsed.name else parsed.name


def _controller(
    kind: ControllerKind, meta: ObjectMeta, parsed: TemplateObject, replicas: int
) -> ApiObject:
    """Build the controller with the template of one revision, and a selector that matches it.

    parsed: the object in the file, which may be of another kind than the controller, such as a Pod.
    """
    labels = parsed.template.metadata.labels or {_NAME_LABEL: meta.name}
    template = PodTemplate(
        metadata=parsed.template.metadata.model_copy(update={"labels": labels}),
        spec=parsed.template.spec,
    )
    own_selector = getattr(getattr(parsed.manifest, "spec", None), "selector", None)
    # A ReplicationController's selector is a map, and a Pod has none.
    selector = (
        own_selector
        if isinstance(own_selector, LabelSelector)
        else LabelSelector(match_labels=labels)
    )
    if kind == "Deployment":
        spec = ReplicaSetSpec(replicas=replicas, selector=selector, template=template)
        return Deployment(metadata=meta, spec=spec)
    if kind == "ReplicaSet":
        spec = ReplicaSetSpec(replicas=replicas, selector=selector, template=template)
        return ReplicaSet(metadata=meta, spec=spec)
    if kind == "DaemonSet":
        daemons = DaemonSetSpec(selector=selector, template=template)
        return DaemonSet(metadata=meta, spec=daemons)
    if kind == "Job":
        return Job(metadata=meta, spec=JobSpec(template=template))
    own = parsed.manifest.spec if isinstance(parsed.manifest, StatefulSet) else StatefulSetSpec()
    changed = {"replicas": replicas, "selector": selector, "template": template}
    return StatefulSet(metadata=meta, spec=own.model_copy(update=changed))


def _replicas(manifest: ApiObject) -> int | None:
    spec = getattr(manifest, "spec", None)
    replicas = getattr(spec, "replicas", None)
    return replicas if isinstance(replicas, int) else None


def _parallelism(manifest: ApiObject, entry: JobEntry) -> int:
    own = manifest.spec.parallelism if isinstance(manifest, Job) else None
    return _first_set(entry.parallelism, own, 1)


def _completions(manifest: ApiObject, entry: JobEntry) -> int:
    own = manifest.spec.completions if isinstance(manifest, Job) else None
    return _first_set(entry.completions, own, _parallelism(manifest, entry))


def _min_ready_us(parsed: TemplateObject) -> int:
    """Return minReadySeconds of a controller's manifest; 0 if it has none."""
    seconds = parsed.value_at(("spec", "minReadySeconds"))
    return seconds * SECOND_US if type(seconds) is int and 0 < seconds <= PERIOD_MAX_S else 0


def _first_set(*values: int | None) -> int:
    """Return the first value that is not None; the last one never is."""
    return next(value for value in values if value is not None)


def _changes(
    entry: ControllerEntry, rollouts: Iterable[RolloutStep]
) -> tuple[ControllerChange, ...]:
    changes = [
        ControllerChange(step.at, template=number) for number, step in enumerate(rollouts, start=1)
    ]
    if isinstance(entry, ScaledController):
        changes += [ControllerChange(step.at, replicas=step.replicas) for step in entry.scale]
    # Stable: of two changes at one time, rollouts are first, in the order of the entry.
    return tuple(sorted(changes, key=lambda change: change.at_us))


def share_of(value: int | Percentage | None, default: Share) -> Share:
    """Convert a number or percentage of a scenario or manifest; None becomes the default."""
    if value is None:
        return default
    if isinstance(value, Percentage):
        return Share(basis_points=value.basis_points)
    return Share(value)


def _with_parameters(
    plan: ControllerPlan, entry: ControllerEntry, parsed: TemplateObject
) -> ControllerPlan:
    """Return a plan with the parameters that only its kind has; the entry's override the file's."""
    manifest = parsed.manifest
    # DEFAULT_ROLLOUT_BOUND: 25%, upstream's default.
    if isinstance(entry, DeploymentEntry):
        surge = entry.max_surge
        unavailable = entry.max_unavailable
        if isinstance(manifest, Deployment):
            rolling = _DEPLOYMENT_ROLLING_UPDATE
            surge = parsed.share((*rolling, "maxSurge")) if surge is None else surge
            unavailable = (
                parsed.share((*rolling, "maxUnavailable")) if unavailable is None else unavailable
            )
        return replace(
            plan,
            max_surge=share_of(surge, DEFAULT_ROLLOUT_BOUND),
            max_unavailable=share_of(unavailable, DEFAULT_ROLLOUT_BOUND),
            recreates=parsed.value_at(("spec", "strategy", "type")) == "Recreate",
        )
    if isinstance(entry, DaemonSetEntry):
        unavailable = entry.max_unavailable
        if unavailable is None and isinstance(manifest, DaemonSet):
            unavailable = parsed.share((*_DAEMON_SET_ROLLING_UPDATE, "maxUnavailable"))
        return replace(
            plan,
            # The simulated rollout of a DaemonSet deletes a pod before it creates the new one,
            # which is upstream's default.
            max_surge=Share(0),
            max_unavailable=share_of(unavailable, Share(1)),
            updates_on_delete=_updates_on_delete(parsed),
        )
    if isinstance(entry, StatefulSetEntry):
        start = manifest.spec.ordinals.start if isinstance(manifest, StatefulSet) else 0
        policy = entry.pod_management or parsed.value_at(("spec", "podManagementPolicy"))
        return replace(
            plan,
            first_ordinal=start,
            is_parallel=policy == "Parallel",
            updates_on_delete=_updates_on_delete(parsed),
        )
    if isinstance(entry, JobEntry):
        limit = parsed.value_at(("spec", "backoffLimit")) if isinstance(manifest, Job) else None
        own = limit if type(limit) is int and limit >= 0 else None
        return replace(
            plan,
            parallelism=_parallelism(manifest, entry),
            backoff_limit=_first_set(entry.backoff_limit, own, BACKOFF_LIMIT),
            failing=entry.failing,
        )
    return plan


def _updates_on_delete(parsed: TemplateObject) -> bool:
    return parsed.value_at(("spec", "updateStrategy", "type")) == "OnDelete"
