"""Conversion of facts to parts of manifests.

Extenders receive such manifests; `roadstead.traces` writes them, from recorded workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import NodeSelectorTerm, Requirement

Json = dict[str, object]


def filled(fields: Mapping[str, object]) -> Json:
    """Drop empty fields, as Go's `omitempty`."""
    return {name: value for name, value in fields.items() if value}


def node_parts(facts: NodeFacts, quantity: Callable[[str, int], str]) -> Json:
    """Return `spec` and `status` of a node; quantity: formats an amount of a resource."""
    spec: Json = {}
    if facts.taints:
        spec["taints"] = [
            filled({"key": each.key, "value": each.value, "effect": each.effect})
            for each in facts.taints
        ]
    if facts.unschedulable:
        spec["unschedulable"] = True
    amounts = {name: quantity(name, amount) for name, amount in facts.allocatable}
    amounts["pods"] = str(facts.allocatable_pods)
    # A copy: YAML would print the second use of one object as an alias.
    status: Json = {"allocatable": amounts, "capacity": dict(amounts)}
    if facts.images:
        status["images"] = [{"names": [name], "sizeBytes": size} for name, size in facts.images]
    return {"spec": spec, "status": status}


def affinity_part(facts: PodFacts) -> Json:
    """Return `affinity` of a pod with its node affinity only; {} if it has none."""
    node: Json = {}
    if facts.required_node_terms is not None:
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [_term(term) for term in facts.required_node_terms]
        }
    if facts.preferred_node_terms:
        node["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": each.weight, "preference": _term(each.term)}
            for each in facts.preferred_node_terms
        ]
    return {"nodeAffinity": node} if node else {}


def tolerations_part(facts: PodFacts) -> list[Json]:
    """Return `tolerations` of a pod."""
    names = ("key", "operator", "value", "effect")
    return [filled({name: getattr(each, name) for name in names}) for each in facts.tolerations]


def _term(term: NodeSelectorTerm) -> Json:
    return filled(
        {
            "matchExpressions": [_requirement(each) for each in term.expressions],
            "matchFields": [_requirement(each) for each in term.fields],
        }
    )


def _requirement(requirement: Requirement) -> Json:
    own = {"key": requirement.key, "operator": requirement.operator}
    return own | filled({"values": list(requirement.values)})
