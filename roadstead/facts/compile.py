"""Compilation of manifests to facts: everything that scheduling reads of a pod or a node.

Manifests are expected as the API server stores them; `roadstead.manifests` fills in the fields that
a raw manifest lacks. Many manifests share Python objects, such as one tuple of containers;
functions with `cached_by_identity` compile each such object once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from roadstead.config.model import DEFAULT_SCHEDULER_NAME
from roadstead.facts.avoid_pods import avoided_controllers
from roadstead.facts.identity_cache import cached_by_identity
from roadstead.facts.node import NodeFacts
from roadstead.facts.parse_selectors import (
    SelectorError,
    parse_label_selector,
    parse_node_selector,
    parse_preferred_terms,
)
from roadstead.facts.pod import (
    UNWRITTEN_CLAIM_NAME,
    HostPort,
    Labels,
    Owner,
    PodAffinityTerm,
    PodClaim,
    PodFacts,
    PodIdentity,
    PodReference,
    PreferredNodeTerm,
    SpreadConstraint,
    Volume,
)
from roadstead.facts.pod_groups import membership
from roadstead.facts.requests import amounts, extended_requests, is_sidecar, requested
from roadstead.facts.selectors import NodeSelectorTerm
from roadstead.facts.taints import Taint, Toleration
from roadstead.protocol import objects

Facts = TypeVar("Facts", PodFacts, NodeFacts)
"""Facts of a pod or of a node."""

DEFAULT_NAMESPACE = "default"
UNREAD_VOLUME_FIELDS = frozenset({"name", "empty_dir"})
"""Fields of a volume that no scheduling plugin reads."""

_NO_AFFINITY = objects.Affinity()
ANY_IP = "0.0.0.0"  # noqa: S104 - a wildcard in a manifest, nothing is bound


class FactsPool:
    """Pool of facts: equal facts become one object, so that classes are compared by identity."""

    def __init__(self) -> None:
        self._interned: dict[PodFacts | NodeFacts, PodFacts | NodeFacts] = {}

    def intern(self, facts: Facts) -> Facts:
        """Return the object of the pool that is equal to these facts."""
        pooled = self._interned.setdefault(facts, facts)
        assert type(pooled) is type(facts)
        return pooled


def compile_pod(
    pod: objects.Pod, device_resources: Container[str] = frozenset()
) -> tuple[PodIdentity, PodFacts]:
    """Compile a pod to its identity and facts.

    device_resources: extended resources that a DeviceClass names; the scheduler may create a claim
    of devices for a pod that requests one of them.

    Raises:
        QuantityError: requests so far apart in size that they cannot be added.
    """
    meta, spec, status = pod.metadata, pod.spec, pod.status
    identity = pod_identity(pod)
    namespace = identity.namespace
    pod_amounts = requested(pod)
    required, preferred = _node_affinity(spec.affinity)
    pod_terms = spec.affinity or _NO_AFFINITY
    affinity, preferred_affinity = _pod_affinity(pod_terms.pod_affinity, namespace)
    anti_affinity, preferred_anti = _pod_affinity(pod_terms.pod_anti_affinity, namespace)
    claims = _device_claims(pod) if spec.resource_claims else ()
    # For resources that a DeviceClass names, the scheduler creates a claim after its decision.
    # Until then the facts have a placeholder (UNWRITTEN_CLAIM_NAME) with the claim's requests.
    if device_resources and any(
        amount and name in device_resources for name, amount in pod_amounts.requests
    ):
        device_requests = extended_requests(pod)
        if device_requests:
            claims = (*claims, PodClaim(UNWRITTEN_CLAIM_NAME, extended=device_requests))
    return identity, PodFacts(
        namespace=namespace,
        labels=_labels(meta.labels),
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER_NAME,
        priority=spec.priority or 0,
        preemption_policy=spec.preemption_policy or "PreemptLowerPriority",
        node_name=spec.node_name,
        nominated_node_name=status.nominated_node_name,
        is_terminating=meta.deletion_timestamp is not None,
        is_preempted=_is_preempted(pod),
        requests=pod_amounts.requests,
        nonzero_cpu_milli=pod_amounts.nonzero[0],
        nonzero_memory_bytes=pod_amounts.nonzero[1],
        container_requests=pod_amounts.container_requests,
        node_selector=_labels(spec.node_selector),
        required_node_terms=required,
        preferred_node_terms=preferred,
        tolerations=_tolerations(spec.tolerations),
        # Init containers end before others start, which frees their ports; sidecars keep theirs.
        host_ports=_host_ports(_long_running(spec)),
        # As upstream's ImageLocality, images of init containers count, too.
        images=_images(spec.init_containers) + _images(spec.containers),
        container_count=len(spec.init_containers) + len(spec.containers),
        scheduling_gates=tuple(each.name for each in spec.scheduling_gates),
        pod_affinity=affinity,
        pod_anti_affinity=anti_affinity,
        preferred_pod_affinity=preferred_affinity,
        preferred_pod_anti_affinity=preferred_anti,
        spread_constraints=tuple(map(_spread_constraint, spec.topology_spread_constraints)),
        volumes=tuple(_volumes(spec.volumes, identity)) if spec.volumes else (),
        device_claims=claims,
        # The owner and consumer of the claims. A UID makes the facts differ from those of all other
        # pods: None for a pod without claims, so that equal pods share a class.
        claims_as=PodReference(identity.uid, meta.name) if claims else None,
        owner=_owner(meta.controller) if meta.owner_references else None,
        pod_group=membership(meta.labels, meta.annotations),
    )


def pod_identity(pod: objects.Pod) -> PodIdentity:
    """Return the identity of a pod; its UID is `namespace/name` if the manifest has none."""
    meta = pod.metadata
    namespace = meta.namespace or DEFAULT_NAMESPACE
    uid = meta.uid or f"{namespace}/{meta.name}"
    return PodIdentity(uid, namespace, meta.name, parse_time_s(pod.status.start_time))


def compile_node(node: objects.Node) -> NodeFacts:
    """Compile a node. Image names stay as the node reports them, as upstream compares them."""
    allocatable = node.status.allocatable
    pods = allocatable.get("pods")
    images: dict[str, int] = {}
    for image in node.status.images:
        for name in image.names:
            images.setdefault(name, image.size_bytes)
    return NodeFacts(
        name=node.metadata.name,
        labels=_labels(node.metadata.labels),
        allocatable=amounts(allocatable),
        allocatable_pods=pods.value() if pods else 0,
        taints=tuple(Taint(each.key, each.value, each.effect) for each in node.spec.taints),
        unschedulable=node.spec.unschedulable,
        images=tuple(sorted(images.items())),
        avoids=avoided_controllers(node.metadata.annotations),
    )


def name_in_errors(manifest: objects.ApiObject) -> str:
    """Return the name of an object in errors: `Pod "web"`."""
    metadata = {"name": manifest.metadata.name}
    return objects.describe(type(manifest).__name__, {"metadata": metadata})


def normalized_image(name: str) -> str:
    """Add the tag ":latest" to an image name without a tag (imagelocality normalizedImageName)."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def parse_time_s(text: str | None) -> float | None:
    """Parse a manifest's time (RFC 3339) to seconds since 1970; None if it is absent or invalid."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.timestamp() if time.tzinfo is not None else None


def _is_preempted(pod: objects.Pod) -> bool:
    """Whether a preemption is deleting the pod (defaultpreemption podTerminatingByPreemption)."""
    if pod.metadata.deletion_timestamp is None:
        return False
    target = next((c for c in pod.status.conditions if c.type == "DisruptionTarget"), None)
    return target is not None and (target.status, target.reason) == (
        "True",
        "PreemptionByScheduler",
    )


def _labels(labels: dict[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def _owner(owner: objects.OwnerReference | None) -> Owner | None:
    return Owner(owner.kind, owner.name, owner.uid, owner.api_version) if owner else None


def _device_claims(pod: objects.Pod) -> tuple[PodClaim, ...]:
    """Compile the pod's claims of devices; the first status of a name counts, as upstream."""
    generated: dict[str, str] = {}
    for each in pod.status.resource_claim_statuses:
        generated.setdefault(each.name, each.resource_claim_name or "")
    return tuple(
        PodClaim(
            each.name,
            each.resource_claim_name,
            each.resource_claim_template_name,
            generated.get(each.name),
        )
        for each in pod.spec.resource_claims
    )


@cached_by_identity
def _tolerations(tolerations: tuple[objects.Toleration, ...]) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(each.key, each.operator, each.value, each.effect) for each in tolerations
    )


@cached_by_identity
def _images(containers: tuple[objects.Container, ...]) -> tuple[str, ...]:
    return tuple(normalized_image(each.image) for each in containers)


@cached_by_identity
def _node_affinity(
    affinity: objects.Affinity | None,
) -> tuple[tuple[NodeSelectorTerm, ...] | None, tuple[PreferredNodeTerm, ...]]:
    node = affinity.node_affinity if affinity else None
    if node is None:
        return None, ()
    required = node.required_during_scheduling_ignored_during_execution
    preferred = parse_preferred_terms(node.preferred_during_scheduling_ignored_during_execution)
    return (
        None if required is None else parse_node_selector(required),
        tuple(PreferredNodeTerm(weight, term) for weight, term in preferred),
    )


def _pod_affinity(
    affinity: objects.PodAffinity | None, namespace: str
) -> tuple[tuple[PodAffinityTerm, ...], tuple[PodAffinityTerm, ...]]:
    """Return (required, preferred) terms of pod affinity or pod anti-affinity."""
    if affinity is None:
        return (), ()
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    return (
        tuple(_affinity_term(each, namespace, weight=0) for each in required),
        tuple(
            _affinity_term(each.pod_affinity_term, namespace, weight=each.weight)
            for each in preferred
        ),
    )


def _affinity_term(term: objects.PodAffinityTerm, namespace: str, weight: int) -> PodAffinityTerm:
    """Compile one term. namespace: the pod's, for a term that names and selects no namespace."""
    is_of_own_namespace = not term.namespaces and term.namespace_selector is None
    namespaces = (namespace,) if is_of_own_namespace else tuple(sorted(set(term.namespaces)))
    try:
        selector = parse_label_selector(term.label_selector)
        namespace_selector = parse_label_selector(term.namespace_selector)
    except SelectorError as error:
        return PodAffinityTerm(
            term.topology_key, None, namespaces, None, weight=weight, error=str(error)
        )
    return PodAffinityTerm(term.topology_key, selector, namespaces, namespace_selector, weight)


def _spread_constraint(each: objects.TopologySpreadConstraint) -> SpreadConstraint:
    selector, error = None, ""
    try:
        selector = parse_label_selector(each.label_selector)
    except SelectorError as refusal:
        error = str(refusal)
    return SpreadConstraint(
        topology_key=each.topology_key,
        max_skew=each.max_skew,
        when_unsatisfiable=each.when_unsatisfiable,
        selector=selector,
        min_domains=1 if each.min_domains is None else each.min_domains,
        node_affinity_policy=each.node_affinity_policy or "Honor",
        node_taints_policy=each.node_taints_policy or "Ignore",
        match_label_keys=tuple(each.match_label_keys),
        error=error,
    )


def _long_running(spec: objects.PodSpec) -> tuple[objects.Container, ...]:
    """Return the containers that run as long as the pod: sidecars and regular containers."""
    sidecars = tuple(each for each in spec.init_containers if is_sidecar(each))
    return (*sidecars, *spec.containers) if sidecars else spec.containers


@cached_by_identity
def _host_ports(containers: tuple[objects.Container, ...]) -> tuple[HostPort, ...]:
    """Return the host ports of containers (component-helpers scheduling/corev1 GetHostPorts)."""
    wanted = {
        (port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port
    }
    return tuple(HostPort(*each) for each in sorted(wanted))


def _volumes(volumes: Iterable[objects.Volume], pod: PodIdentity) -> Iterator[Volume]:
    """Compile the volumes of types that some plugin reads; other types are dropped.

    An ephemeral volume refers to a claim that is named after the pod and owned by it.
    """
    for volume in volumes:
        for field in sorted(volume.model_fields_set - UNREAD_VOLUME_FIELDS):
            source = getattr(volume, field)
            if source is not None:
                kind = objects.Volume.model_fields[field].alias
                assert kind is not None
                ephemeral = isinstance(source, objects.EphemeralSource)
                fields = _ephemeral(volume.name, pod) if ephemeral else _source(source)
                yield Volume(volume.name, kind, fields)


def _ephemeral(name: str, pod: PodIdentity) -> Labels:
    """Return the source of an ephemeral volume: its claim's name, and its pod's name and UID."""
    return (("claimName", f"{pod.name}-{name}"), ("podName", pod.name), ("podUID", pod.uid))


def _source(source: objects.ApiModel) -> Labels:
    """Return the fields of a volume's source as text pairs; a list has a pair for each element."""
    pairs: list[tuple[str, str]] = []
    for field in source.model_fields_set:
        value = getattr(source, field)
        alias = type(source).model_fields[field].alias or field
        if isinstance(value, bool):
            pairs += [(alias, "true")] if value else []
        elif isinstance(value, tuple):
            pairs += [(alias, str(each)) for each in value]
        elif isinstance(value, (str, int)):
            pairs.append((alias, str(value)))
    return tuple(sorted(pairs))
