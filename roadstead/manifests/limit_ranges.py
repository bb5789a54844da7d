"""Limit ranges: defaults of containers, and bounds by which a pod or a claim is refused.

The texts of refusals are upstream's: plugin/pkg/admission/limitranger/admission.go (1.34). The
defaults of all ranges of a namespace are set first, then the bounds of each range are checked, in
the order of the ranges' names; upstream has no order. A resize of a running pod is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.manifests.applied import AppliedDefaults
from roadstead.manifests.pod_totals import Amounts, limits_of, requests_of, total
from roadstead.protocol.objects import (
    Container,
    LimitRange,
    LimitRangeItem,
    PersistentVolumeClaim,
    PodSpec,
    ResourceRequirements,
)
from roadstead.protocol.quantity import Quantity

POD_LEVEL = ("cpu", "memory")
"""Resources whose pod-level amounts replace those of the containers here; not huge pages."""

MILLI_MAX = (2**63 - 1) // 1000
"""Amounts up to this are compared in thousandths (resource.MaxMilliValue)."""

_ZERO = Quantity(0)
_NONE: Amounts = {}
Rule = Callable[[str, str, Quantity, Amounts, Amounts], str]
"""(type of an item, resource, bound, requests, limits) -> problem, "" for none."""


@dataclass(frozen=True, slots=True)
class _Range:
    """A limit range. key: namespace/name.

    requests, limits: resource → default amount, for containers that do not name the resource.
    """

    key: str
    items: Sequence[LimitRangeItem]
    requests: Amounts
    limits: Amounts


class LimitRanges:
    """The limit ranges of a cluster, by namespace."""

    def __init__(self, ranges: Iterable[LimitRange], applied: AppliedDefaults) -> None:
        self._applied = applied
        self._ranges: dict[str, list[_Range]] = {}
        for each in sorted(ranges, key=lambda one: one.metadata.name):
            namespace = each.metadata.namespace or DEFAULT_NAMESPACE
            items = each.spec.limits
            limit_range = _Range(f"{namespace}/{each.metadata.name}", items, *_defaults(items))
            self._ranges.setdefault(namespace, []).append(limit_range)
        # Caches by ids of objects. The values also contain these objects, so that Python does not
        # reuse the ids.
        # (id of a pod's containers, key of a limit range) → the containers with defaults.
        self._changed: dict[tuple[int, str], tuple[object, tuple[Container, ...]]] = {}
        # (namespace, ids of fields of a pod's spec) → the problem, "" for none.
        self._checked: dict[tuple[object, ...], tuple[object, str]] = {}

    def defaulted(self, spec: PodSpec, namespace: str, key: str) -> PodSpec:
        """Return the spec with the defaults of its namespace. key: namespace/name of the pod."""
        for each in self._ranges.get(namespace, ()):
            changed = self._with_defaults(spec, each)
            if changed is not spec:
                self._applied.add(f"LimitRange {each.key}", key)
            spec = changed
        return spec

    def pod_problem(self, spec: PodSpec, namespace: str) -> str:
        """Return why the ranges of a namespace refuse a defaulted pod; "" if they do not."""
        ranges = self._ranges.get(namespace)
        if ranges is None:
            return ""
        fields = (spec.containers, spec.init_containers, spec.resources)
        cache_key = (namespace, *map(id, fields))
        cached = self._checked.get(cache_key)
        if cached is None:
            problems = (_joined(_pod_problems(spec, each.items)) for each in ranges)
            cached = self._checked[cache_key] = fields, next(filter(None, problems), "")
        return cached[1]

    def claim_problem(self, claim: PersistentVolumeClaim, namespace: str) -> str:
        """Return why the ranges of a namespace refuse a claim; "" if they do not."""
        requests = claim.spec.resources.requests
        for each in self._ranges.get(namespace, ()):
            if problem := _joined(_claim_problems(requests, each.items)):
                return problem
        return ""

    def _with_defaults(self, spec: PodSpec, limit_range: _Range) -> PodSpec:
        changes = {}
        for field in ("containers", "init_containers"):
            before: tuple[Container, ...] = getattr(spec, field)
            cached = self._changed.get((id(before), limit_range.key))
            if cached is None:
                after = tuple(
                    _with_defaults(each, limit_range.requests, limit_range.limits)
                    for each in before
                )
                if all(new is old for new, old in zip(after, before, strict=True)):
                    after = before
                cached = self._changed[id(before), limit_range.key] = before, after
            if cached[1] is not before:
                changes[field] = cached[1]
        return spec.model_copy(update=changes) if changes else spec


def _defaults(items: Sequence[LimitRangeItem]) -> tuple[Amounts, Amounts]:
    """Return (requests, limits) of containers that name none (SetDefaults_LimitRangeItem)."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for item in items:
        if item.type == "Container":
            default = {**item.max, **item.default}
            limits |= default
            requests |= {**item.min, **default, **item.default_request}
    return requests, limits


def _with_defaults(container: Container, requests: Amounts, limits: Amounts) -> Container:
    resources = container.resources or ResourceRequirements()
    all_requests = {**requests, **resources.requests}
    all_limits = {**limits, **resources.limits}
    if all_requests == resources.requests and all_limits == resources.limits:
        return container
    update = {"requests": all_requests, "limits": all_limits}
    return container.model_copy(update={"resources": resources.model_copy(update=update)})


def _joined(problems: Iterable[str]) -> str:
    """Join texts as utilerrors.NewAggregate: each once, in brackets if there are several."""
    texts = list(dict.fromkeys(problems))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _pod_problems(spec: PodSpec, items: Iterable[LimitRangeItem]) -> Iterator[str]:
    """Yield the problems of a pod (PodValidateLimitFunc)."""
    for item in items:
        if item.type == "Container":
            for each in (*spec.containers, *spec.init_containers):
                yield from _problems(item, requests_of(each), limits_of(each))
        elif item.type == "Pod":
            # Neither overhead nor status counts here, unlike in quotas.
            resources = spec.resources or ResourceRequirements()
            requests = total(spec, requests_of) | _pod_level(resources.requests)
            yield from _problems(
                item, requests, total(spec, limits_of) | _pod_level(resources.limits)
            )


def _pod_level(amounts: Amounts) -> dict[str, Quantity]:
    return {name: amounts[name] for name in POD_LEVEL if name in amounts}


def _problems(item: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    rules: tuple[tuple[Amounts, Rule], ...] = (
        (item.min, _below_min),
        (item.max, _above_max),
        (item.max_limit_request_ratio, _above_ratio),
    )
    for bounds, rule in rules:
        for name in sorted(bounds):
            if problem := rule(item.type, name, bounds[name], requests, limits):
                yield problem


def _claim_problems(requests: Amounts, items: Iterable[LimitRangeItem]) -> Iterator[str]:
    """Yield the problems of a claim, limits ignored (PersistentVolumeClaimValidateLimitFunc)."""
    for item in items:
        if item.type != "PersistentVolumeClaim":
            continue
        for name in sorted(item.min):
            if problem := _below_min(item.type, name, item.min[name], requests, _NONE):
                yield problem
        for name in sorted(item.max):
            if problem := _request_above_max(item.type, name, item.max[name], requests):
                yield problem


def _below_min(
    item_type: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts
) -> str:
    request, limit, minimum = _comparable(requests.get(name), limits.get(name), bound)
    rule = f"minimum {name} usage per {item_type} is {bound}"
    if name not in requests:
        return f"{rule}.  No request is specified"
    if request < minimum:
        return f"{rule}, but request is {requests[name]}"
    if name in limits and limit < minimum:
        return f"{rule}, but limit is {limits[name]}"
    return ""


def _above_max(
    item_type: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts
) -> str:
    request, limit, maximum = _comparable(requests.get(name), limits.get(name), bound)
    rule = f"maximum {name} usage per {item_type} is {bound}"
    if name not in limits:
        return f"{rule}.  No limit is specified"
    if limit > maximum:
        return f"{rule}, but limit is {limits[name]}"
    if name in requests and request > maximum:
        return f"{rule}, but request is {requests[name]}"
    return ""


def _request_above_max(item_type: str, name: str, bound: Quantity, requests: Amounts) -> str:
    request, _, maximum = _comparable(requests.get(name), None, bound)
    rule = f"maximum {name} usage per {item_type} is {bound}"
    if name not in requests:
        return f"{rule}.  No request is specified"
    return f"{rule}, but request is {requests[name]}" if request > maximum else ""


def _above_ratio(
    item_type: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts
) -> str:
    request, limit, _ = _comparable(requests.get(name), limits.get(name), bound)
    rule = f"{name} max limit to request ratio per {item_type} is {bound}, but"
    if not request:
        return f"{rule} no request is specified or request is 0"
    if not limit:
        return f"{rule} no limit is specified or limit is 0"
    ratio = limit / request
    # In thousandths if amounts are small enough, as upstream: a ratio may be 1.5.
    is_milli = bound.value() <= MILLI_MAX
    exceeds = ratio * 1000 > bound.milli_value() if is_milli else ratio > bound.value()
    return f"{rule} provided ratio is {ratio:f}" if exceeds else ""


def _comparable(
    request: Quantity | None, limit: Quantity | None, bound: Quantity
) -> tuple[int, int, int]:
    """Convert the amounts to one unit (requestLimitEnforcedValues); an absent one is 0."""
    request, limit = request or _ZERO, limit or _ZERO
    values = request.value(), limit.value(), bound.value()
    if max(values) <= MILLI_MAX:
        return request.milli_value(), limit.milli_value(), bound.milli_value()
    return values
