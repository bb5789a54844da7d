"""Resource quotas: the usage of pods and claims, and the refusal of those that exceed it.

The texts of refusals are upstream's: staging/src/k8s.io/apiserver/pkg/admission/plugin/
resourcequota/controller.go (CheckRequest, 1.34). Quotas of a namespace are checked in the order of
their names; upstream has no order. The limits are `spec.hard`; upstream reads `status.hard`, to
which the quota controller copies it.

Usage is counted from the manifests. A pod or claim is *stored* if it existed in the cluster
already. If the manifests have no stored pod (or claim) of a namespace, `status.used` of the
namespace's quotas applies instead, for a cluster whose pods were not exported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.manifests.applied import CLAIM, POD, AppliedDefaults
from roadstead.manifests.pod_totals import Amounts
from roadstead.manifests.quota_usage import (
    MUST_BE_NAMED,
    POD_COUNT,
    PodUsage,
    PodUsages,
    claim_in_scope,
    claim_resources,
    claim_usage,
    missing_resources,
    pod_in_scope,
    pod_resources,
)
from roadstead.protocol.objects import (
    PersistentVolumeClaim,
    Pod,
    ResourceQuota,
    ScopeRequirement,
)
from roadstead.protocol.quantity import Quantity

_ZERO = Quantity(0)
_FINISHED_USAGE: Amounts = {POD_COUNT: Quantity(1)}
"""Usage of a finished pod: it counts as an object, and uses nothing."""


@dataclass(slots=True)
class _Quota:
    """A quota. key: namespace/name. used: usage of each limited resource, updated by admissions.

    hard: the limits, by resource. status_used: usage in the quota's status. pod_resources,
    claim_resources: those of its resources that pods and claims use.
    """

    key: str
    name: str
    hard: Amounts
    status_used: Amounts
    scopes: Sequence[ScopeRequirement]
    pod_resources: frozenset[str]
    claim_resources: frozenset[str]
    used: dict[str, Quantity] = field(default_factory=dict)

    def counts_pod(self, pod: Pod, usage: PodUsage) -> bool:
        return bool(self.pod_resources) and all(
            pod_in_scope(pod, usage, each) for each in self.scopes
        )

    def counts_claim(self, claim: PersistentVolumeClaim) -> bool:
        return bool(self.claim_resources) and all(
            claim_in_scope(claim, each) for each in self.scopes
        )

    def sum_with(self, amounts: Amounts) -> dict[str, Quantity]:
        """Return the usage after an object is added, of the limited resources that it uses."""
        return {
            name: self.used.get(name, _ZERO).add(amount)
            for name, amount in amounts.items()
            if name in self.hard and amount.unscaled
        }

    def excess(self, amounts: Amounts) -> str:
        """Return why an object of these amounts is refused, in upstream's words; "" if not."""
        total = self.sum_with(amounts)
        over = sorted(name for name in total if total[name].cmp(self.hard[name]) > 0)
        if not over:
            return ""
        columns = {"requested": amounts, "used": self.used, "limited": self.hard}
        texts = (
            f"{title}: {','.join(f'{name}={column.get(name, _ZERO)}' for name in over)}"
            for title, column in columns.items()
        )
        return f"exceeded quota: {self.name}, {', '.join(texts)}"


class Quotas:
    """The quotas of a cluster. applied: receives each object that a quota counts, for notes."""

    def __init__(self, quotas: Iterable[ResourceQuota], applied: AppliedDefaults) -> None:
        self._applied = applied
        self._usages = PodUsages()
        # By namespace, sorted by name.
        self._quotas: dict[str, list[_Quota]] = {}
        # Keys of quotas whose usage is that of their status.
        self._from_status: list[str] = []
        for each in sorted(quotas, key=lambda one: one.metadata.name):
            namespace = each.metadata.namespace or DEFAULT_NAMESPACE
            self._quotas.setdefault(namespace, []).append(_quota(each, namespace))

    def count_stored(
        self,
        pods: Iterable[Pod],
        finished: Iterable[Pod],
        claims: Iterable[PersistentVolumeClaim],
    ) -> None:
        """Add the usage of stored objects. Finished pods count as objects, and use nothing."""
        if not self._quotas:
            return
        # (POD or CLAIM, namespace).
        with_objects: set[tuple[str, str]] = set()
        # (pod, its usage; None if it is still to be computed).
        stored = (*((each, None) for each in pods), *((each, _FINISHED_USAGE) for each in finished))
        for pod, amounts in stored:
            namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
            with_objects.add((POD, namespace))
            for quota, usage in self._counting(pod, namespace):
                quota.used |= quota.sum_with(usage.amounts if amounts is None else amounts)
        for claim in claims:
            namespace = claim.metadata.namespace or DEFAULT_NAMESPACE
            with_objects.add((CLAIM, namespace))
            for quota in self._quotas.get(namespace, ()):
                if quota.counts_claim(claim):
                    quota.used |= quota.sum_with(claim_usage(claim))
        self._count_status(with_objects)

    def admit_pod(self, pod: Pod, key: str) -> str:
        """Count a new pod and return "", or return why it is refused. key: namespace/name."""
        namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        counting = list(self._counting(pod, namespace))
        for quota, usage in counting:
            if missing := missing_resources(usage, quota.pod_resources & MUST_BE_NAMED):
                return f"failed quota: {quota.name}: {missing}"
        if not counting:
            return ""
        return self._add_usage([each for each, _ in counting], counting[0][1].amounts, key, POD)

    def admit_claim(self, claim: PersistentVolumeClaim, key: str) -> str:
        """Count a new claim and return "", or return why it is refused. key: namespace/name."""
        namespace = claim.metadata.namespace or DEFAULT_NAMESPACE
        counting = [each for each in self._quotas.get(namespace, ()) if each.counts_claim(claim)]
        return self._add_usage(counting, claim_usage(claim), key, CLAIM) if counting else ""

    def notes(self) -> Iterator[str]:
        """Yield notes on resources that are not counted, and on usage read from a status."""
        for quota in (each for quotas in self._quotas.values() for each in quotas):
            if ignored := sorted(quota.hard.keys() - quota.pod_resources - quota.claim_resources):
                names = ", ".join(ignored)
                what = f"{names} of ResourceQuota {quota.key}"
                yield f"Not applied: {what}, since only pods and claims are counted."
        for key in self._from_status:
            yield (
                f"Used of ResourceQuota {key}: as its status has it, since the manifests hold none "
                "of the objects that it counts."
            )

    def _counting(self, pod: Pod, namespace: str) -> Iterator[tuple[_Quota, PodUsage]]:
        """Yield the quotas that count a pod, each with the usage of the pod."""
        quotas = self._quotas.get(namespace)
        if quotas is None:
            return
        usage = self._usages.of(pod)
        for quota in quotas:
            if quota.counts_pod(pod, usage):
                yield quota, usage

    def _add_usage(self, quotas: Sequence[_Quota], amounts: Amounts, key: str, kind: str) -> str:
        """Add an object to the usage of all quotas, or of none; return why it is refused, or ""."""
        if excess := next(filter(None, (each.excess(amounts) for each in quotas)), ""):
            return excess
        for quota in quotas:
            quota.used |= quota.sum_with(amounts)
            self._applied.add(f"ResourceQuota {quota.key}", key, kind)
        return ""

    def _count_status(self, with_objects: set[tuple[str, str]]) -> None:
        """Add the usage in the quotas' statuses, for kinds of which a namespace has no object.

        with_objects: (POD or CLAIM, namespace) of objects in the manifests.
        """
        for namespace, quotas in self._quotas.items():
            for quota in quotas:
                names = (
                    *(quota.pod_resources if (POD, namespace) not in with_objects else ()),
                    *(quota.claim_resources if (CLAIM, namespace) not in with_objects else ()),
                )
                used = quota.status_used
                counted = {name: used[name] for name in names if name in used}
                quota.used |= counted
                if any(each.unscaled for each in counted.values()):
                    self._from_status.append(quota.key)


def _quota(quota: ResourceQuota, namespace: str) -> _Quota:
    scopes = [ScopeRequirement(scope_name=each, operator="Exists") for each in quota.spec.scopes]
    if quota.spec.scope_selector is not None:
        scopes += quota.spec.scope_selector.match_expressions
    hard = quota.spec.hard
    return _Quota(
        key=f"{namespace}/{quota.metadata.name}",
        name=quota.metadata.name,
        hard=hard,
        status_used=quota.status.used,
        scopes=scopes,
        pod_resources=frozenset(pod_resources(hard)),
        claim_resources=frozenset(claim_resources(hard)),
    )
