"""What admission changes of pods that are created: limit ranges and runtime classes.

Pods that an API server has stored already (they have a UID, or run) are left as they are. Priority
classes, tolerations and defaults of fields: `roadstead.manifests.defaults`. Upstream:
plugin/pkg/admission/limitranger and plugin/pkg/admission/runtimeclass (1.34). Bounds of limit
ranges and quotas, by which a pod may be refused, are not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from roadstead.facts.compile import DEFAULT_NAMESPACE, described
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.objects import (
    Container,
    LimitRange,
    LimitRangeItem,
    Pod,
    PodSpec,
    ResourceRequirements,
    RuntimeClass,
)
from roadstead.protocol.quantity import Quantity

Amounts = Mapping[str, Quantity]


class Creation:
    """Limit ranges and runtime classes of a cluster.

    applied: what was applied (`LimitRange default/small`) → to how many pods. missing: runtime
    classes that pods name and the cluster does not have → how many pods.
    """

    def __init__(self, limits: Iterable[LimitRange], runtimes: Iterable[RuntimeClass]) -> None:
        self.applied: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self._runtimes = {each.metadata.name: each for each in runtimes}
        self._limits: dict[str, list[tuple[str, Amounts, Amounts]]] = {}
        for each in sorted(limits, key=lambda one: one.metadata.name):
            namespace = each.metadata.namespace or DEFAULT_NAMESPACE
            found = _container_defaults(each.spec.limits)
            self._limits.setdefault(namespace, []).append((each.metadata.name, *found))
        # With the containers themselves, so that no others have their ids.
        self._changed: dict[tuple[int, str], tuple[object, tuple[Container, ...]]] = {}

    def admit(self, pod: Pod) -> Pod:
        """The pod as it would be stored. InputError where its runtime class contradicts it."""
        if pod.metadata.uid or pod.spec.node_name:
            return pod
        spec = self._with_runtime(pod)
        namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        for name, requests, limits in self._limits.get(namespace, ()):
            changed = self._with_limits(spec, f"{namespace}/{name}", requests, limits)
            self.applied[f"LimitRange {namespace}/{name}"] += changed is not spec
            spec = changed
        return pod if spec is pod.spec else pod.model_copy(update={"spec": spec})

    def notes(self) -> Iterator[str]:
        """What was done, for people."""
        for name, count in sorted((+self.applied).items()):
            yield f"Applied, as when pods are created: {name}, to {count:,} of them."
        for name, count in sorted(self.missing.items()):
            yield (
                f"Not known: RuntimeClass {name} of {count:,} pod{'s' * (count > 1)}, with its "
                "overhead and where it may run."
            )

    def _with_limits(self, spec: PodSpec, name: str, requests: Amounts, limits: Amounts) -> PodSpec:
        changes = {}
        for field in ("containers", "init_containers"):
            before: tuple[Container, ...] = getattr(spec, field)
            known = self._changed.get((id(before), name))
            if known is None:
                after = tuple(_with_defaults(each, requests, limits) for each in before)
                if all(new is old for new, old in zip(after, before, strict=True)):
                    after = before
                known = self._changed[id(before), name] = before, after
            if known[1] is not before:
                changes[field] = known[1]
        return spec.model_copy(update=changes) if changes else spec

    def _with_runtime(self, pod: Pod) -> PodSpec:
        spec, name = pod.spec, pod.spec.runtime_class_name
        if not name:
            return spec
        runtime = self._runtimes.get(name)
        if runtime is None:
            self.missing[cut_short(name)] += 1
            return spec
        changes: dict[str, object] = {}
        overhead = runtime.overhead.pod_fixed
        if overhead and spec.overhead and spec.overhead != overhead:
            raise _refusal(pod, "spec.overhead", f"is not that of RuntimeClass {cut_short(name)}")
        if overhead and not spec.overhead:
            changes["overhead"] = overhead
        wanted, given = runtime.scheduling.node_selector, spec.node_selector
        if conflict := [key for key in wanted if given.get(key, wanted[key]) != wanted[key]]:
            rule = f"contradicts RuntimeClass {cut_short(name)} in {cut_short(conflict[0])}"
            raise _refusal(pod, "spec.nodeSelector", rule)
        if not wanted.items() <= given.items():
            changes["node_selector"] = {**given, **wanted}
        more = [e for e in runtime.scheduling.tolerations if e not in spec.tolerations]
        if more:
            changes["tolerations"] = (*spec.tolerations, *more)
        self.applied[f"RuntimeClass {name}"] += bool(changes)
        return spec.model_copy(update=changes) if changes else spec


def _container_defaults(items: Sequence[LimitRangeItem]) -> tuple[Amounts, Amounts]:
    """(requests, limits) of containers that name none (SetDefaults_LimitRangeItem)."""
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
    asked = {**requests, **resources.requests}
    limited = {**limits, **resources.limits}
    if asked == resources.requests and limited == resources.limits:
        return container
    update = {"requests": asked, "limits": limited}
    return container.model_copy(update={"resources": resources.model_copy(update=update)})


def _refusal(pod: Pod, field: str, rule: str) -> InputError:
    return InputError(rule, obj=described(pod), field=field)
