"""Extender: the requests to one configured extender, and the meaning of its replies.

Upstream: pkg/scheduler/extender.go (1.34).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from roadstead.config.model import ExtenderConfig
from roadstead.extenders.caller import ExtenderCaller, ExtenderError, shown_url
from roadstead.extenders.manifests import node_manifest, pod_manifest
from roadstead.extenders.replies import (
    FilterReply,
    MetaVictims,
    read_binding,
    read_filter,
    read_priorities,
    read_victims,
)
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.facts.printing import Json

MAX_NODE_SCORE = 100
MAX_EXTENDER_PRIORITY = 10


@dataclass(frozen=True, slots=True)
class ExtenderPod:
    """The pod of a request to an extender."""

    identity: PodIdentity
    facts: PodFacts


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods to be evicted from one node, most important first."""

    pods: tuple[ExtenderPod, ...]
    pdb_violations: int = 0


class Extender:
    """One extender of the configuration. Every call raises ExtenderError if it fails."""

    def __init__(self, config: ExtenderConfig, caller: ExtenderCaller) -> None:
        self.config = config
        self._caller = caller
        self._managed = frozenset(config.managed_resources)

    @property
    def url(self) -> str:
        """The URL prefix without user and password."""
        return shown_url(self.config.url_prefix)

    @property
    def is_ignorable(self) -> bool:
        """Whether scheduling of the pod continues if this extender fails."""
        return self.config.ignorable

    @property
    def is_filter(self) -> bool:
        return bool(self.config.filter_verb)

    @property
    def is_prioritizer(self) -> bool:
        return bool(self.config.prioritize_verb)

    @property
    def is_binder(self) -> bool:
        return bool(self.config.bind_verb)

    @property
    def supports_preemption(self) -> bool:
        return bool(self.config.preempt_verb)

    @property
    def wants_manifests(self) -> bool:
        """Whether requests to it contain Node objects instead of names."""
        return not self.config.node_cache_capable

    def is_interested(self, facts: PodFacts) -> bool:
        """Whether it is called for a pod: it manages all pods, or a resource that this requests."""
        return not self._managed or any(name in self._managed for name, _ in facts.requests)

    def filter(self, pod: ExtenderPod, nodes: Sequence[NodeFacts]) -> FilterReply:
        """Return the nodes that pass; ExtenderError if the reply names a node not in `nodes`."""
        names = [node.name for node in nodes]
        if not self.is_filter:
            return FilterReply(tuple(names), failed={}, unresolvable={})
        reply = self._caller.call(self.config.filter_verb, self._args(pod, nodes))
        # names_first: NodeNames is read in preference to Nodes, if the reply has both.
        found = read_filter(reply, names_first=self.config.node_cache_capable)
        known = set(names)
        for name in found.names or ():
            if name not in known:
                raise ExtenderError(
                    f'extender "{self.url}" claims a filtered node "{name}" '
                    "which is not found in the input node list"
                )
        return replace(found, names=tuple(dict.fromkeys(found.names or ())))

    def prioritize(self, pod: ExtenderPod, nodes: Sequence[NodeFacts]) -> dict[str, int]:
        """Return weighted scores by node, on the scale of plugins' scores; {} without the verb."""
        if not self.is_prioritizer:
            return {}
        reply = self._caller.call(self.config.prioritize_verb, self._args(pod, nodes))
        scale = self.config.weight * (MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY)
        totals: dict[str, int] = {}
        for name, score in read_priorities(reply):
            totals[name] = totals.get(name, 0) + score * scale
        return totals

    def bind(self, identity: PodIdentity, node_name: str) -> None:
        """Request that the extender bind a pod to a node."""
        payload: Json = {
            "PodName": identity.name,
            "PodNamespace": identity.namespace,
            "PodUID": identity.uid,
            "Node": node_name,
        }
        read_binding(self._caller.call(self.config.bind_verb, payload))

    def process_preemption(
        self, pod: ExtenderPod, victims: Mapping[str, Victims]
    ) -> dict[str, MetaVictims]:
        """Return the candidates for preemption that remain: node → victims."""
        payload: Json = {"Pod": pod_manifest(pod.identity, pod.facts)}
        # One of the two is set below; the other remains null, as upstream sends it.
        payload["NodeNameToVictims"] = payload["NodeNameToMetaVictims"] = None
        if self.config.node_cache_capable:
            payload["NodeNameToMetaVictims"] = {
                name: {
                    "Pods": [{"UID": each.identity.uid} for each in of_node.pods],
                    "NumPDBViolations": of_node.pdb_violations,
                }
                for name, of_node in victims.items()
            }
        else:
            payload["NodeNameToVictims"] = {
                name: {
                    "Pods": [pod_manifest(each.identity, each.facts) for each in of_node.pods],
                    "NumPDBViolations": of_node.pdb_violations,
                }
                for name, of_node in victims.items()
            }
        return read_victims(self._caller.call(self.config.preempt_verb, payload))

    def _args(self, pod: ExtenderPod, nodes: Sequence[NodeFacts]) -> Json:
        """Return ExtenderArgs, with Node objects or with names only."""
        args: Json = {"Pod": pod_manifest(pod.identity, pod.facts)}
        if self.wants_manifests:
            items = [node_manifest(node) for node in nodes]
            return args | {"Nodes": {"metadata": {}, "items": items}, "NodeNames": None}
        return args | {"Nodes": None, "NodeNames": [node.name for node in nodes]}
