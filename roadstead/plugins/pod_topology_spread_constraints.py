"""The topology spread constraints of a pod, its own or the profile's defaults.

Hard constraints are those with DoNotSchedule, soft ones those with ScheduleAnyway.

A pod without constraints of its own has the profile's defaults, if a Service selects it or a
ReplicationController, ReplicaSet or StatefulSet owns it. The default constraints then use the
selectors of these objects.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/{plugin,common}.go and
pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from roadstead.config.plugin_args import PodTopologySpreadArgs
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts, SpreadConstraint
from roadstead.facts.selectors import LabelSelector, Requirement

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"


@dataclass(frozen=True, slots=True)
class Spread:
    """One constraint with its effective selector; a `selector` of None matches nothing."""

    topology_key: str
    max_skew: int
    selector: LabelSelector | None
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the selector matches these labels, of a pod in the constraint's namespace."""
        return self.selector is not None and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodSpread:
    """The constraints of a pod.

    needs_all_keys: nodes that lack a topology key of a soft constraint are not scored.
    hard_error, soft_error: upstream's text if a selector of such a constraint does not parse.
    """

    hard: tuple[Spread, ...] = ()
    soft: tuple[Spread, ...] = ()
    needs_all_keys: bool = True
    hard_error: str = ""
    soft_error: str = ""


NO_SPREAD = PodSpread()


SYSTEM_DEFAULTS = tuple(
    SpreadConstraint(
        topology_key=topology_key,
        max_skew=max_skew,
        when_unsatisfiable=SOFT,
        selector=None,
        min_domains=1,
        node_affinity_policy="Honor",
        node_taints_policy="Ignore",
        match_label_keys=(),
    )
    for topology_key, max_skew in ((HOSTNAME, 3), (ZONE, 5))
)
"""Upstream's systemDefaultConstraints; the selector is that of the pod's Services and owner."""


class SpreadSource:
    """Find the constraints of pods, from a profile's arguments, Services and controllers."""

    def __init__(self, args: PodTopologySpreadArgs, cluster: ClusterFacts) -> None:
        self._has_system_defaults = args.defaulting_type == "System"
        self._defaults = (
            SYSTEM_DEFAULTS
            if self._has_system_defaults
            else tuple(_default_constraint(each) for each in args.default_constraints)
        )
        # By namespace: the selectors of Services.
        self._services: dict[str, list[LabelSelector]] = {}
        # By the owner's (API version, kind), namespace and name.
        self._owners: dict[tuple[tuple[str, str], str, str], LabelSelector] = {}
        # Services and the three kinds of controllers.
        for each in cluster.selecting:
            if each.selector is None:
                continue
            if each.kind == "Service":
                self._services.setdefault(each.namespace, []).append(each.selector)
            else:
                version = "v1" if each.kind == "ReplicationController" else "apps/v1"
                self._owners[(version, each.kind), each.namespace, each.name] = each.selector

    def of(self, facts: PodFacts) -> PodSpread:
        """Return the constraints of a pod; NO_SPREAD without any."""
        if facts.spread_constraints:
            labels = dict(facts.labels)
            hard, hard_error = _own(facts.spread_constraints, HARD, labels)
            soft, soft_error = _own(facts.spread_constraints, SOFT, labels)
            return PodSpread(hard, soft, hard_error=hard_error, soft_error=soft_error)
        if not self._defaults:
            return NO_SPREAD
        selector = self.default_selector(facts)
        if not selector.requirements:
            return NO_SPREAD
        hard, soft = (
            tuple(
                _spread(each, selector)
                for each in self._defaults
                if each.when_unsatisfiable == when_unsatisfiable
            )
            for when_unsatisfiable in (HARD, SOFT)
        )
        return PodSpread(hard, soft, needs_all_keys=not self._has_system_defaults)

    def default_selector(self, facts: PodFacts) -> LabelSelector:
        """Return the joint selector of the pod's Services and controller; empty without any.

        Services select by labels; the controller is the one that owns the pod, whether or not its
        selector matches.
        """
        labels = dict(facts.labels)
        # As upstream: one label set for Services and ReplicationController, in which a later value
        # of a key replaces the earlier one; the controllers of apps/v1 add requirements to it.
        exact: dict[str, Requirement] = {}
        for service in self._services.get(facts.namespace, ()):
            if service.matches(labels):
                exact.update((each.key, each) for each in service.requirements)
        added: tuple[Requirement, ...] = ()
        if facts.owner is not None:
            kind = facts.owner.api_version, facts.owner.kind
            owner = self._owners.get((kind, facts.namespace, facts.owner.name))
            if owner is not None and facts.owner.kind == "ReplicationController":
                exact.update((each.key, each) for each in owner.requirements)
            elif owner is not None:
                added = owner.requirements
        return LabelSelector((*(exact[key] for key in sorted(exact)), *added))


def _default_constraint(manifest: Mapping[str, object]) -> SpreadConstraint:
    max_skew, min_domains = manifest["maxSkew"], manifest.get("minDomains", 1)
    assert isinstance(max_skew, int)
    assert isinstance(min_domains, int)
    return SpreadConstraint(
        topology_key=str(manifest["topologyKey"]),
        max_skew=max_skew,
        when_unsatisfiable=str(manifest["whenUnsatisfiable"]),
        selector=None,
        min_domains=min_domains,
        node_affinity_policy=str(manifest.get("nodeAffinityPolicy", "Honor")),
        node_taints_policy=str(manifest.get("nodeTaintsPolicy", "Ignore")),
        match_label_keys=(),
    )


def _own(
    constraints: Iterable[SpreadConstraint], when_unsatisfiable: str, labels: Mapping[str, str]
) -> tuple[tuple[Spread, ...], str]:
    """Return a pod's own hard or soft constraints, and the first error among them."""
    chosen = [each for each in constraints if each.when_unsatisfiable == when_unsatisfiable]
    error = next((each.error for each in chosen if each.error), "")
    if error:
        return (), error
    return tuple(_spread(each, each.effective_selector(labels)) for each in chosen), ""


def _spread(constraint: SpreadConstraint, selector: LabelSelector | None) -> Spread:
    return Spread(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        selector=selector,
        min_domains=constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy == "Honor",
        honors_taints=constraint.node_taints_policy == "Honor",
    )


def is_counted(selector: LabelSelector | None) -> bool:
    """Whether a selector counts any pods: it exists and is not empty."""
    return selector is not None and bool(selector.requirements)
