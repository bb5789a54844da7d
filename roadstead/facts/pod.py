"""Facts of a pod: everything that scheduling reads, without its identity.

Pods with equal facts form one *class*: a million pods of fifty classes are fifty `PodFacts` and a
million names. Every value is immutable and consists of str, int, bool and tuples, so that facts can
be hashed, compared, interned and sent as msgpack. Built by `roadstead.facts.compile`; `fast_init`
makes the objects faster to create.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm, Requirement
from roadstead.facts.taints import Toleration
from roadstead.protocol.fast_init import fast_init

Labels = tuple[tuple[str, str], ...]
"""Sorted (key, value) pairs."""


TEMPLATE_HASH = "pod-template-hash"
"""Label of a Deployment's ReplicaSets and their pods; a ReplicaSet's name ends with its value."""


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port requested on the node; `ip` is "0.0.0.0" if the manifest names none."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class PreferredNodeTerm:
    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """One (anti-)affinity term; `namespaces` includes the pod's own where upstream adds it.

    `weight` is 0 for a required term. A `selector` of None matches nothing; so does a
    `namespace_selector` of None. `error` is upstream's text if a selector does not parse.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None
    weight: int = 0
    error: str = ""

    def matches_labels(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether a pod with these labels matches; namespace_labels: those of its namespace."""
        if namespace not in self.namespaces:
            selector = self.namespace_selector
            if selector is None or not selector.matches(namespace_labels):
                return False
        return self.selector is not None and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topology spread constraint as written (defaults of the API server filled in).

    `match_label_keys` are not merged into `selector`; `effective_selector` does that. `error` is
    upstream's text if the selector does not parse.
    """

    topology_key: str
    max_skew: int
    when_unsatisfiable: str
    selector: LabelSelector | None
    min_domains: int
    node_affinity_policy: str
    node_taints_policy: str
    match_label_keys: tuple[str, ...]
    error: str = ""

    def effective_selector(self, labels: Mapping[str, str]) -> LabelSelector | None:
        """Return the selector restricted to pods that agree with `labels` on `match_label_keys`.

        As upstream, a key that `labels` lacks is ignored, and an absent selector, which matches
        nothing, becomes one of the keys alone.
        """
        pairs = [(key, labels[key]) for key in self.match_label_keys if key in labels]
        if not pairs:
            return self.selector
        merged = [Requirement(key, "In", (value,)) for key, value in pairs]
        return LabelSelector((*merged, *(self.selector.requirements if self.selector else ())))


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume. kind: its type, as the manifest's field is called ("persistentVolumeClaim").

    source: (field, value) of the fields of that type that scheduling reads.
    """

    name: str
    kind: str
    source: tuple[tuple[str, str], ...]


UNWRITTEN_CLAIM_NAME: Final = "<extended-resources>"
"""Name of the claim for a pod's extended resources, until the scheduler creates it.

Upstream: the special claim. No object has this name.
"""


@dataclass(frozen=True, slots=True)
class ExtendedRequest:
    """A container's request of an extended resource, as a request of the claim for the pod.

    name: `container-I-request-J`: I counts init containers, then containers; J counts the sorted
    resources of the container.
    """

    name: str
    resource: str
    count: int


@fast_init
@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim of devices in a pod's spec: by name, or created from a template.

    generated: name of the claim that was created from the template; "" if the pod needs none, None
    if it was not created yet.
    extended: only of the claim that the scheduler creates for extended resources that a DeviceClass
    names (DRAExtendedResource). It is the last claim of a pod, if there is one.
    """

    name: str
    claim_name: str | None = None
    template_name: str | None = None
    generated: str | None = None
    extended: tuple[ExtendedRequest, ...] = ()


@fast_init
@dataclass(frozen=True, slots=True)
class PodReference:
    """A pod as the owner or consumer of its claims."""

    uid: str
    name: str


@dataclass(frozen=True, slots=True)
class Owner:
    """The controlling owner reference."""

    kind: str
    name: str
    uid: str
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class GroupMembership:
    """The pod group (gang) in a pod's labels and annotations; None for values that they lack.

    error: names a value that is not a number; "" if there is none.
    """

    name: str
    min_member: int | None = None
    timeout_s: int | None = None
    error: str = ""


@fast_init
@dataclass(frozen=True, slots=True)
class PodFacts:
    """Everything that scheduling reads of a pod.

    requests: sorted (resource, amount), cpu in milli-CPU, others in whole units, rounded up.
        Amounts of 0 are included: Filter ignores them, but an extender that manages the resource is
        called for them.
    nonzero_cpu_milli, nonzero_memory_bytes: what the pod adds, once it is on a node, to the
        requests that scores of the node count (100m / 200Mi for a container that requests none).
    container_requests: by which NodeResourcesFit scores nodes for the pod, if it has pod-level
        requests, which that plugin ignores: the requests of its containers, sorted (resource,
        amount), cpu and memory with the same defaults. None without pod-level requests.
    required_node_terms: None without a required node selector; () matches no node.
    images: normalized (":latest" added) image of each container and init container, in order.
    is_terminating: it is being deleted. is_preempted: it is being deleted by a preemption.
    claims_as: UID and name of a pod with claims of devices, as their owner and consumer; None
        without claims.
    """

    namespace: str = "default"
    labels: Labels = ()
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    node_name: str = ""
    nominated_node_name: str = ""
    is_terminating: bool = False
    requests: tuple[tuple[str, int], ...] = ()
    nonzero_cpu_milli: int = 0
    nonzero_memory_bytes: int = 0
    container_requests: tuple[tuple[str, int], ...] | None = None
    node_selector: Labels = ()
    required_node_terms: tuple[NodeSelectorTerm, ...] | None = None
    preferred_node_terms: tuple[PreferredNodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    images: tuple[str, ...] = ()
    container_count: int = 0
    scheduling_gates: tuple[str, ...] = ()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_pod_affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    device_claims: tuple[PodClaim, ...] = ()
    claims_as: PodReference | None = None
    owner: Owner | None = None
    pod_group: GroupMembership | None = None
    is_preempted: bool = False

    @property
    def extended_requests(self) -> tuple[ExtendedRequest, ...]:
        """The containers' requests of extended resources that a DeviceClass names."""
        return self.device_claims[-1].extended if self.device_claims else ()

    @property
    def may_bind_claims(self) -> bool:
        """Whether placing the pod may bind claims of volumes or devices."""
        return bool(self.volumes or self.device_claims)


@fast_init
@dataclass(frozen=True, slots=True)
class PodIdentity:
    """Identity of a pod: its UID (`namespace/name` if the manifest has none), namespace and name.

    started_s: start time in seconds since 1970; None for a pod that was not started.
    """

    uid: str
    namespace: str
    name: str
    started_s: float | None = None

    @property
    def key(self) -> str:
        return pod_key(self.uid, f"{self.namespace}/{self.name}")


Pod = tuple[PodIdentity, PodFacts]
"""A pod: its identity and its facts."""


def pod_key(uid: str, key: str) -> str:
    """Return a pod's key (namespace/name): the UID object itself if the two are equal.

    Keys are kept as long as pods are; a second string of each takes 70 MB per million pods.
    """
    return uid if key == uid else key


def identity_of(uid: str, key: str) -> PodIdentity:
    """Return the identity of a pod. key: namespace/name."""
    namespace, _, name = key.rpartition("/")
    return PodIdentity(uid, namespace, name)


def without_nomination(facts: PodFacts) -> PodFacts:
    """Return the facts without the nominated node: those of the pod once it is on a node."""
    return replace(facts, nominated_node_name="") if facts.nominated_node_name else facts


NO_IDENTITY = PodIdentity("", "", "")
"""Identity for calls that do not read the identity of a pod."""
