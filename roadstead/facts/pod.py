"""Facts of a pod: all that scheduling looks at, without its identity.

Two pods with equal facts are one *class*: a million pods of fifty shapes are fifty `PodFacts` and a
million names. Every value is immutable and made of str, int, bool and tuples, so that facts hash,
compare, intern, and cross a boundary as msgpack. Built by `roadstead.facts.compile`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm, Requirement
from roadstead.facts.taints import Toleration

Labels = tuple[tuple[str, str], ...]
"""Sorted (key, value) pairs."""


TEMPLATE_HASH = "pod-template-hash"
"""The label by which a Deployment's ReplicaSets, and their pods, bear its name and a suffix."""


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port wanted on the node; `ip` is "0.0.0.0" where the manifest says none."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class PreferredNodeTerm:
    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """One (anti-)affinity term; `namespaces` already holds the pod's own where upstream adds it.

    `weight` is 0 for a required term. A `selector` of None matches nothing; so does a
    `namespace_selector` of None. `error` is upstream's text where a selector does not parse.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None
    weight: int = 0
    error: str = ""

    def means(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether a pod of these labels is meant; namespace_labels: those of its namespace."""
        if namespace not in self.namespaces:
            chosen = self.namespace_selector
            if chosen is None or not chosen.matches(namespace_labels):
                return False
        return self.selector is not None and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topology spread constraint as written (defaults of the API server filled in).

    `match_label_keys` are not merged into `selector`; `effective_selector` does that. `error` is
    upstream's text where the selector does not parse.
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
        """The selector narrowed to pods that agree with `labels` on the keys to match.

        As upstream has it, a key that the labels lack narrows nothing, and an absent selector,
        which matches nothing, becomes one of the keys alone.
        """
        pairs = [(key, labels[key]) for key in self.match_label_keys if key in labels]
        if not pairs:
            return self.selector
        merged = [Requirement(key, "In", (value,)) for key, value in pairs]
        return LabelSelector((*merged, *(self.selector.requirements if self.selector else ())))


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume by its kind (the manifest's field name) and the parts that scheduling reads."""

    name: str
    kind: str
    source: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Owner:
    """The controlling owner reference."""

    kind: str
    name: str
    uid: str
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class GroupMembership:
    """The pod group (gang) of a pod, as its labels and annotations say; None where they do not.

    `error` tells of a number that is none.
    """

    name: str
    min_member: int | None = None
    timeout_s: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What scheduling knows of a pod.

    requests: sorted (resource, amount), cpu in milli-CPU, all others in units of `Value()`; zero
        amounts are kept (a pod that names a resource with 0 is told apart nowhere but in messages).
    nonzero_cpu_milli, nonzero_memory_bytes: requests as scoring counts them (100m / 200Mi where a
        container names none), on a node.
    container_requests: sorted (resource, amount) as NodeResourcesFit scores the pod itself, where
        that differs (only with pod-level requests): those of the containers, cpu and memory with
        their defaults. None: as on a node.
    images: normalized (":latest" added) image of each container and init container, in order.
    is_terminating: it is being deleted. is_preempted: that, and by preemption.
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
    resource_claims: tuple[str, ...] = ()
    owner: Owner | None = None
    pod_group: GroupMembership | None = None
    is_preempted: bool = False


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """Who a pod is: its UID (generated as `namespace/name` where the manifest has none).

    started_s: when it was started, in seconds since 1970; None for one that was not.
    """

    uid: str
    namespace: str
    name: str
    started_s: float | None = None

    @property
    def key(self) -> str:
        return pod_key(self.uid, f"{self.namespace}/{self.name}")


Pod = tuple[PodIdentity, PodFacts]
"""A pod: who it is, and what scheduling looks at."""


def pod_key(uid: str, key: str) -> str:
    """A pod's key (namespace/name): its UID itself where that reads the same.

    Keys are kept as long as pods are, and a second text of each is 70 MB in a million.
    """
    return uid if key == uid else key


def identity_of(uid: str, key: str) -> PodIdentity:
    """Who a pod is. key: namespace/name."""
    namespace, _, name = key.rpartition("/")
    return PodIdentity(uid, namespace, name)


def unnominated(facts: PodFacts) -> PodFacts:
    """The facts with which a pod is counted on a node: it is nominated to none any more."""
    return replace(facts, nominated_node_name="") if facts.nominated_node_name else facts


NOBODY = PodIdentity("", "", "")
"""Of a pod that nobody asks who it is."""
