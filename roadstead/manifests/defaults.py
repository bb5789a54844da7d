"""Defaults that the API server sets in a raw manifest.

Upstream: pkg/apis/core/v1/defaults.go (1.34) and plugin/pkg/admission/defaulttolerationseconds.
Objects from an API server have all of them already; setting them again changes nothing. Pods of one
template share parts such as containers, for which a default is computed once
(`cached_by_identity`).
"""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.config.model import DEFAULT_SCHEDULER_NAME
from roadstead.facts.compile import DEFAULT_NAMESPACE, name_in_errors
from roadstead.facts.identity_cache import cached_by_identity
from roadstead.facts.requests import is_pod_level, pod_requests
from roadstead.facts.resources import HUGE_PAGES_PREFIX
from roadstead.manifests.object_checks import check_pod
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import (
    Affinity,
    Container,
    LabelSelector,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PriorityClass,
    ResourceRequirements,
    SelectorRequirement,
    Toleration,
)
from roadstead.protocol.quantity import Quantity

SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
MILLI = -3
"""Amounts are rounded up to multiples of 10**MILLI: thousandths (SetDefaults_ResourceList)."""

DEFAULT_TOLERATION_S = 300
"""Time for which a pod tolerates a node that is not ready or not reachable."""

_DEFAULT_TOLERATIONS = tuple(
    Toleration(
        key=key, operator="Exists", effect="NoExecute", toleration_seconds=DEFAULT_TOLERATION_S
    )
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)
DEFAULT_TOLERATIONS = f"tolerations of nodes not ready or unreachable for {DEFAULT_TOLERATION_S} s"
_NO_CLASSES: Mapping[str, PriorityClass] = {}


def default_pod(
    pod: Pod, priority_classes: Mapping[str, PriorityClass] = _NO_CLASSES, *, source: str = ""
) -> Pod:
    """Return the pod as the API server would store it. priority_classes: by name.

    Filled in: namespace, scheduler, priority of its class, requests from limits, pod-level
    requests, host ports under host networking, the match label keys of pod affinity, and
    tolerations of nodes that are not ready or reachable. Amounts are rounded up to thousandths.

    Raises:
        InputError: the pod has no container, names a priority class that does not exist, or breaks
            a rule of `roadstead.manifests.object_checks`.
    """
    check_pod(pod, source=source)
    if not pod.spec.containers:
        raise _refusal(pod, source, "spec.containers", "must not be empty")
    # The fields of the spec that change.
    spec: dict[str, object] = _priority(pod, priority_classes, source)
    if not pod.spec.scheduler_name:
        spec["scheduler_name"] = DEFAULT_SCHEDULER_NAME
    tolerations = _tolerations(pod.spec.tolerations)
    if tolerations is not pod.spec.tolerations:
        spec["tolerations"] = tolerations
    if pod.spec.overhead:
        spec["overhead"] = _rounded(pod.spec.overhead)
    spec |= _changed_containers(pod.spec)
    if pod.spec.resources is not None:
        spec |= _pod_level_requests(pod, spec, pod.spec.resources)
    affinity = _merged_affinity(pod.spec.affinity, pod.metadata.labels)
    if affinity is not pod.spec.affinity:
        spec["affinity"] = affinity
    changes: dict[str, object] = {}
    if spec:
        changes["spec"] = pod.spec.model_copy(update=spec)
    if not pod.metadata.namespace:
        changes["metadata"] = pod.metadata.model_copy(update={"namespace": DEFAULT_NAMESPACE})
    return pod.model_copy(update=changes) if changes else pod


def default_node(node: Node) -> Node:
    """Return the node as the API server would store it: allocatable defaults to capacity."""
    allocatable = node.status.allocatable or node.status.capacity
    allocatable = _rounded(allocatable)
    if allocatable is node.status.allocatable:
        return node
    status = node.status.model_copy(update={"allocatable": allocatable})
    return node.model_copy(update={"status": status})


def _rounded(amounts: dict[str, Quantity]) -> dict[str, Quantity]:
    """Round amounts up to thousandths; return the same object if nothing changes."""
    if all(each.exponent >= MILLI for each in amounts.values()):
        return amounts
    return {name: each.rounded_up(MILLI) for name, each in amounts.items()}


@cached_by_identity
def _tolerations(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Add the tolerations of DefaultTolerationSeconds that the pod's own do not cover."""
    missing = tuple(
        each
        for each in _DEFAULT_TOLERATIONS
        if not any(
            own.key in ("", each.key) and own.effect in ("", each.effect) for own in tolerations
        )
    )
    return (*tolerations, *missing) if missing else tolerations


@cached_by_identity
def has_default_tolerations(tolerations: tuple[Toleration, ...]) -> bool:
    """Whether `default_pod` added any of these."""
    return any(map(is_default_toleration, tolerations))


def is_default_toleration(toleration: Toleration) -> bool:
    """Whether `default_pod` added this one: it adds the same objects to every pod."""
    return any(toleration is added for added in _DEFAULT_TOLERATIONS)


def _refusal(pod: Pod, source: str, field: str, problem: str, value: str = "") -> InputError:
    return InputError(problem, source=source, obj=name_in_errors(pod), field=field, value=value)


def _priority(pod: Pod, classes: Mapping[str, PriorityClass], source: str) -> dict[str, object]:
    """Return the fields of the spec that a pod gets from its priority class."""
    name = pod.spec.priority_class_name
    if pod.spec.priority is not None:
        return {}
    if name in SYSTEM_PRIORITIES and name not in classes:
        return {"priority": SYSTEM_PRIORITIES[name]}
    priority_class = classes.get(name) if name else _global_default(classes)
    if priority_class is None and name:
        problem = "is not a priority class among the manifests"
        raise _refusal(pod, source, "spec.priorityClassName", problem, f'"{name[:80]}"')
    if priority_class is None:
        return {"priority": 0}
    preemption = pod.spec.preemption_policy or priority_class.preemption_policy
    new_name = {} if name else {"priority_class_name": priority_class.metadata.name}
    return {"priority": priority_class.value, "preemption_policy": preemption, **new_name}


def _global_default(classes: Mapping[str, PriorityClass]) -> PriorityClass | None:
    """Return the default class; of several, as upstream, the one of the lowest value."""
    defaults = [each for each in classes.values() if each.global_default]
    return min(defaults, key=lambda each: each.value, default=None)


def _changed_containers(spec: PodSpec) -> dict[str, object]:
    """Return the fields of the spec whose containers get requests from limits, or host ports."""
    changes: dict[str, object] = {}
    for field in ("containers", "init_containers"):
        before: tuple[Container, ...] = getattr(spec, field)
        after = _containers_on_host(before) if spec.host_network else _containers(before)
        if after is not before:
            changes[field] = after
    return changes


@cached_by_identity
def _containers(containers: tuple[Container, ...]) -> tuple[Container, ...]:
    after = tuple(_container(each, host_network=False) for each in containers)
    unchanged = all(new is old for new, old in zip(after, containers, strict=True))
    return containers if unchanged else after


@cached_by_identity
def _containers_on_host(containers: tuple[Container, ...]) -> tuple[Container, ...]:
    return tuple(_container(each, host_network=True) for each in containers)


def _container(container: Container, host_network: bool) -> Container:
    changes: dict[str, object] = {}
    resources = container.resources
    if resources is not None:
        requests, limits = _rounded(resources.requests), _rounded(resources.limits)
        if not limits.keys() <= requests.keys():
            requests = limits | requests
        if requests is not resources.requests or limits is not resources.limits:
            update = {"requests": requests, "limits": limits}
            changes["resources"] = resources.model_copy(update=update)
    if host_network and any(not port.host_port for port in container.ports):
        changes["ports"] = tuple(
            port.model_copy(update={"host_port": port.host_port or port.container_port})
            for port in container.ports
        )
    return container.model_copy(update=changes) if changes else container


def _pod_level_requests(
    pod: Pod, changes: dict[str, object], resources: ResourceRequirements
) -> dict[str, object]:
    """Return the changed field `resources` of a spec that has pod-level amounts; {} if unchanged.

    Missing requests are those of the containers, or else the limits. changes: fields of the spec
    that have changed already.
    """
    if not (resources.requests or resources.limits):
        return {}
    containers_only = pod.spec.model_copy(update={**changes, "resources": None, "overhead": {}})
    updated = {"spec": containers_only, "status": PodStatus()}
    of_containers = pod_requests(pod.model_copy(update=updated))
    limits = _rounded(resources.limits)
    requests: dict[str, Quantity] = dict(_rounded(resources.requests))
    for name, value in of_containers.items():
        # As upstream: huge pages are not overcommitted, so that their request is the limit.
        if is_pod_level(name) and not name.startswith(HUGE_PAGES_PREFIX):
            requests.setdefault(name, value)
    for name, value in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, value)
    if requests == resources.requests and limits == resources.limits:
        return {}
    return {"resources": resources.model_copy(update={"requests": requests, "limits": limits})}


@cached_by_identity
def _has_match_label_keys(affinity: Affinity) -> bool:
    both = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(each is not None and _names_label_keys(each) for each in both)


def _merged_affinity(affinity: Affinity | None, labels: Mapping[str, str]) -> Affinity | None:
    """Merge the match label keys into the selectors (pkg/registry/core/pod/strategy.go)."""
    if affinity is None or not _has_match_label_keys(affinity):
        return affinity
    changes = {
        field: _merged_pod_affinity(before, labels)
        for field in ("pod_affinity", "pod_anti_affinity")
        if (before := getattr(affinity, field)) is not None and _names_label_keys(before)
    }
    return affinity.model_copy(update=changes)


def _terms(affinity: PodAffinity) -> list[PodAffinityTerm]:
    """Return the terms of a pod affinity or pod anti-affinity; both have this type."""
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    required = affinity.required_during_scheduling_ignored_during_execution
    return [*required, *(each.pod_affinity_term for each in preferred)]


def _names_label_keys(affinity: PodAffinity) -> bool:
    return any(each.match_label_keys or each.mismatch_label_keys for each in _terms(affinity))


def _merged_pod_affinity(affinity: PodAffinity, labels: Mapping[str, str]) -> PodAffinity:
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=tuple(
            _merged_term(each, labels) for each in required
        ),
        preferred_during_scheduling_ignored_during_execution=tuple(
            each.model_copy(
                update={"pod_affinity_term": _merged_term(each.pod_affinity_term, labels)}
            )
            for each in preferred
        ),
    )


def _merged_term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    if term.label_selector is None:
        return term
    operators = [(key, "In") for key in term.match_label_keys]
    operators += [(key, "NotIn") for key in term.mismatch_label_keys]
    added = [
        SelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for key, operator in operators
        if key in labels
    ]
    before = term.label_selector.match_expressions
    selector = LabelSelector(
        match_labels=term.label_selector.match_labels,
        match_expressions=(*before, *(each for each in added if each not in before)),
    )
    return term.model_copy(update={"label_selector": selector})
