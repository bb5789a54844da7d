"""Quota usage of pods and claims, and the quotas that count them.

Upstream: pkg/quota/v1/evaluator/core/pods.go and persistent_volume_claims.go (1.34).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from roadstead.facts.compile_storage import BETA_CLASS
from roadstead.facts.requests import is_pod_level, pod_requests, statuses_with_resources
from roadstead.facts.resources import HUGE_PAGES_PREFIX, NATIVE_DOMAIN
from roadstead.manifests.pod_totals import Amounts, limits_of, pod_limits, requests_of
from roadstead.protocol.names import is_extended_resource
from roadstead.protocol.objects import (
    Affinity,
    PersistentVolumeClaim,
    Pod,
    PodAffinity,
    ScopeRequirement,
)
from roadstead.protocol.quantity import Quantity

REQUESTS: Final = "requests."
LIMITS: Final = "limits."
COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
POD_COUNT: Final = "count/pods"
CLAIM_COUNT: Final = "count/persistentvolumeclaims"
_POD_RESOURCES = frozenset(
    (
        "pods",
        POD_COUNT,
        *(f"{prefix}{name}" for prefix in ("", REQUESTS, LIMITS) for name in COMPUTE),
    )
)
_CLAIM_RESOURCES = ("persistentvolumeclaims", "requests.storage")
# In a quota's resource for one storage class: CLASS.storageclass.storage.k8s.io/requests.storage.
_BY_CLASS = ".storageclass.storage.k8s.io/"
MUST_BE_NAMED = frozenset(
    f"{prefix}{name}" for prefix in ("", REQUESTS, LIMITS) for name in ("cpu", "memory")
)
"""Resources that each container must name if a quota limits them (validationSet)."""

_ONE = Quantity(1)


@dataclass(frozen=True, slots=True)
class PodUsage:
    """Usage of pods with the same containers, pod-level resources and overhead.

    amounts: by resource, as quotas name it. containers: (name, resources of its requests and limits
    as quotas name them); None if the pod has pod-level resources, so that its containers need not
    name any.
    """

    amounts: Amounts
    containers: tuple[tuple[str, frozenset[str]], ...] | None
    is_best_effort: bool


class PodUsages:
    """Cache of usage: it is computed once for pods whose spec has the same objects."""

    def __init__(self) -> None:
        # By ids of fields of a pod's spec; the values contain the fields, so that no id is reused.
        self._cached: dict[tuple[int, ...], tuple[object, PodUsage]] = {}

    def of(self, pod: Pod) -> PodUsage:
        """Return the usage of a pod that is not finished."""
        if statuses_with_resources(pod):
            return _usage(pod)
        spec = pod.spec
        fields = (spec.containers, spec.init_containers, spec.resources, spec.overhead)
        ids = tuple(map(id, fields))
        if ids not in self._cached:
            self._cached[ids] = fields, _usage(pod)
        return self._cached[ids][1]


def pod_resources(names: Iterable[str]) -> Iterator[str]:
    """Yield those of a quota's resources that pods use (MatchingResources)."""
    pages = (HUGE_PAGES_PREFIX, f"{REQUESTS}{HUGE_PAGES_PREFIX}")
    for name in names:
        # An extended resource is not native: its name has a domain that is not Kubernetes'.
        is_native = "/" not in name or NATIVE_DOMAIN in name
        if (
            name in _POD_RESOURCES
            or name.startswith(pages)
            or (not is_native and name.startswith(REQUESTS))
        ):
            yield name


def claim_resources(names: Iterable[str]) -> Iterator[str]:
    """Yield those of a quota's resources that claims use."""
    suffixes = tuple(f"{_BY_CLASS}{each}" for each in _CLAIM_RESOURCES)
    for name in names:
        if name in _CLAIM_RESOURCES or name == CLAIM_COUNT or name.endswith(suffixes):
            yield name


def claim_usage(claim: PersistentVolumeClaim) -> Amounts:
    """Return the usage of a claim. An unfinished resize of its volume is ignored."""
    spec = claim.spec
    class_name = claim.metadata.annotations.get(BETA_CLASS, spec.storage_class_name or "")
    prefixes = ("", f"{class_name}{_BY_CLASS}") if class_name else ("",)
    usage = {CLAIM_COUNT: _ONE}
    storage = spec.resources.requests.get("storage")
    for prefix in prefixes:
        usage[f"{prefix}persistentvolumeclaims"] = _ONE
        if storage is not None:
            usage[f"{prefix}requests.storage"] = storage.rounded_up(0)
    return usage


def missing_resources(usage: PodUsage, required: frozenset[str]) -> str:
    """Return upstream's error for resources that containers must name, or "" (Constraints)."""
    if usage.containers is None:
        return ""
    missing: dict[str, set[str]] = {}
    for container, named in usage.containers:
        for resource in required - named:
            missing.setdefault(resource, set()).add(container)
    texts = (f"{each} for: {','.join(sorted(missing[each]))}" for each in sorted(missing))
    return f"must specify {'; '.join(texts)}" if missing else ""


def pod_in_scope(pod: Pod, usage: PodUsage, scope: ScopeRequirement) -> bool:
    """Whether a quota's scope includes a pod (podMatchesScopeFunc)."""
    deadline = pod.spec.active_deadline_seconds
    is_terminating = deadline is not None and deadline >= 0
    match scope.scope_name:
        case "Terminating":
            return is_terminating
        case "NotTerminating":
            return not is_terminating
        case "BestEffort":
            return usage.is_best_effort
        case "NotBestEffort":
            return not usage.is_best_effort
        case "PriorityClass":
            return _matches(pod.spec.priority_class_name, scope)
        case "CrossNamespacePodAffinity":
            return _selects_other_namespaces(pod.spec.affinity)
    return False


def claim_in_scope(claim: PersistentVolumeClaim, scope: ScopeRequirement) -> bool:
    """Whether a quota's scope includes a claim; only VolumeAttributesClass can."""
    if scope.scope_name != "VolumeAttributesClass":
        return False
    return _matches(claim.spec.volume_attributes_class_name or "", scope)


def _usage(pod: Pod) -> PodUsage:
    spec = pod.spec
    amounts = {POD_COUNT: _ONE, **_quota_amounts(pod_requests(pod), pod_limits(pod))}
    containers = (*spec.containers, *spec.init_containers)
    by_container = tuple(
        (each.name, frozenset(_quota_amounts(requests_of(each), limits_of(each))))
        for each in containers
    )
    resources = spec.resources
    if resources is not None and any(map(is_pod_level, (*resources.requests, *resources.limits))):
        return PodUsage(amounts, None, _is_best_effort((resources.requests, resources.limits)))
    all_amounts = [
        amounts_of(each) for each in containers for amounts_of in (requests_of, limits_of)
    ]
    return PodUsage(amounts, by_container, _is_best_effort(all_amounts))


def _quota_amounts(requests: Amounts, limits: Amounts) -> Mapping[str, Quantity]:
    """Return requests and limits under the names that quotas use (podComputeUsageHelper)."""
    amounts = {"pods": _ONE}
    for name, amount in requests.items():
        is_pages = name.startswith(HUGE_PAGES_PREFIX)
        if name in COMPUTE or is_pages:
            amounts[name] = amount
        if name in COMPUTE or is_pages or is_extended_resource(name):
            amounts[f"{REQUESTS}{name}"] = amount
    amounts |= {f"{LIMITS}{name}": limits[name] for name in COMPUTE if name in limits}
    return amounts


def _is_best_effort(all_amounts: Iterable[Amounts]) -> bool:
    """Whether none of these requests and limits is of cpu or memory (ComputePodQOS)."""
    return not any(
        name in ("cpu", "memory") and amount.unscaled
        for amounts in all_amounts
        for name, amount in amounts.items()
    )


def _matches(value: str, scope: ScopeRequirement) -> bool:
    match scope.operator:
        case "In":
            return bool(value) and value in scope.values
        case "NotIn":
            return not value or value not in scope.values
        case "Exists":
            return bool(value)
    return not value


def _selects_other_namespaces(affinity: Affinity | None) -> bool:
    if affinity is None:
        return False
    return any(map(_has_namespaces, (affinity.pod_affinity, affinity.pod_anti_affinity)))


def _has_namespaces(affinity: PodAffinity | None) -> bool:
    if affinity is None:
        return False
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    terms = [
        *affinity.required_during_scheduling_ignored_during_execution,
        *(each.pod_affinity_term for each in preferred),
    ]
    return any(each.namespaces or each.namespace_selector is not None for each in terms)
