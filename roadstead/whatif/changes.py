"""Changes of a pod that may admit it: which there are, and how each changes the facts of the pod.

Whether a change admits the pod is decided by scheduling, in `roadstead.whatif.smallest_changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodClaim, PodFacts
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint, Toleration, tolerated
from roadstead.report.fit_result import ChangeKind
from roadstead.report.units import exact_amount, is_bytes

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""The taint of a cordoned node, which a pod must tolerate to be placed there."""

TAINT_SETS_MAX = 16
"""Maximum number of different sets of taints for which a toleration is tried."""

MIB = 1 << 20
HARD = ("NoSchedule", "NoExecute")
"""Effects of taints that exclude a pod from a node."""

Edit = Callable[[PodFacts], PodFacts]
T = TypeVar("T", PodFacts, NodeSelectorTerm)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a pod. text: what it changes, for a report; of a reduction, only the resource.

    size: how many single changes it consists of, such as the tolerations that it adds.
    """

    kind: ChangeKind
    text: str
    edit: Edit
    size: int = 1


def tolerations(facts: PodFacts, nodes: Iterable[NodeFacts]) -> list[Change]:
    """Return a change for each set of taints that some node has and the pod does not tolerate."""
    sets: dict[frozenset[Taint], int] = {}
    for node in nodes:
        taints = [each for each in node.taints if each.effect in HARD]
        taints += [UNSCHEDULABLE] if node.unschedulable else []
        missing = frozenset(each for each in taints if not tolerated(each, facts.tolerations))
        if missing:
            sets[missing] = sets.get(missing, 0) + 1
    ordered = sorted(sets, key=lambda each: (len(each), -sets[each], sorted(map(_taint, each))))
    return [_toleration(each) for each in ordered[:TAINT_SETS_MAX]]


def _toleration(taints: frozenset[Taint]) -> Change:
    ordered = sorted(taints, key=_taint)
    added = tuple(
        Toleration(each.key, "Equal" if each.value else "Exists", each.value, each.effect)
        for each in ordered
    )
    text = f"tolerate {' and '.join(map(_taint, ordered))}"
    return Change("tolerate", text, partial(_add_tolerations, added), len(taints))


def _add_tolerations(added: tuple[Toleration, ...], facts: PodFacts) -> PodFacts:
    return replace(facts, tolerations=(*facts.tolerations, *added))


def _taint(taint: Taint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def drops(facts: PodFacts) -> list[Change]:
    """Return a change for each part of the pod that restricts its nodes and can be left out."""
    return [
        *_node_selector(facts),
        *_node_terms(facts),
        *_drop_each(facts, "pod_affinity", lambda each: f"pod affinity ({each.topology_key})"),
        *_drop_each(
            facts, "pod_anti_affinity", lambda each: f"pod anti-affinity ({each.topology_key})"
        ),
        *_spreading(facts),
        *_drop_each(facts, "host_ports", lambda each: f"host port {each.port}/{each.protocol}"),
        *_drop_each(facts, "volumes", lambda each: f"volume {each.name}"),
        *_drop_each(facts, "scheduling_gates", lambda each: f"scheduling gate {each}"),
        *_drop_each(facts, "labels", lambda each: f"label {each[0]}={each[1]}"),
    ]


def _node_selector(facts: PodFacts) -> Iterator[Change]:
    yield from _drop_each(facts, "node_selector", lambda each: f"node selector {each[0]}={each[1]}")
    if len(facts.node_selector) > 1:
        edit = partial(_with, "node_selector", ())
        yield Change("drop", "drop the node selector", edit, len(facts.node_selector))


def _node_terms(facts: PodFacts) -> Iterator[Change]:
    """Yield the requirements of node affinity terms; a term without any would match no node."""
    terms = facts.required_node_terms
    if terms is None:
        return
    for index, term in enumerate(terms):
        parts = [("expressions", each) for each in term.expressions]
        parts += [("fields", each) for each in term.fields]
        # A term without requirements matches no node. If it is one of several terms, only the
        # others could match then, and these have refused every node before.
        if len(parts) > 1 or len(terms) == 1:
            for name, each in parts:
                edit = partial(_without_requirement, index, name, each)
                yield Change("drop", f"drop node affinity {_requirement(each)}", edit)
    count = sum(len(each.expressions) + len(each.fields) for each in terms)
    if count > 1:
        edit = partial(_with, "required_node_terms", None)
        yield Change("drop", "drop the required node affinity", edit, count)


def _without_requirement(index: int, name: str, dropped: Requirement, facts: PodFacts) -> PodFacts:
    """Return the facts without a requirement of the term at an index.

    If it is the only requirement of the only term, there is no required node affinity any more.
    name: of the field of the term.
    """
    terms = facts.required_node_terms
    if terms is None:
        return facts
    term = _removed(name, dropped, terms[index])
    is_empty = not (term.expressions or term.fields)
    remaining = (
        None if is_empty and len(terms) == 1 else (*terms[:index], term, *terms[index + 1 :])
    )
    return _with("required_node_terms", remaining, facts)


def _spreading(facts: PodFacts) -> Iterator[Change]:
    for each in facts.spread_constraints:
        if each.when_unsatisfiable == "DoNotSchedule":
            text = f"topology spread constraint ({each.topology_key})"
            yield _drop("spread_constraints", each, text)


def _drop_each(facts: PodFacts, name: str, text_of: Callable[..., str]) -> Iterator[Change]:
    """Yield the removal of each element of a field."""
    for each in getattr(facts, name):
        yield _drop(name, each, text_of(each))


def _drop(name: str, element: object, text: str) -> Change:
    return Change("drop", f"drop {text}", partial(_removed, name, element))


def _removed(name: str, element: object, source: T) -> T:
    """Return the source without an element of a field: of those that are equal, the first."""
    elements = list(getattr(source, name))
    # Another change may have dropped the whole field.
    if element in elements:
        elements.remove(element)
    return _with(name, tuple(elements), source)


def _with(name: str, value: object, source: T) -> T:
    return replace(source, **{name: value})  # type: ignore[arg-type]


def _requirement(requirement: Requirement) -> str:
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"


def reduced(facts: PodFacts, resource: str, amount: int) -> PodFacts:
    """Return the facts with a smaller request of one resource."""
    requests = tuple((name, amount if name == resource else old) for name, old in facts.requests)
    less = dict(facts.requests)[resource] - amount
    changes: dict[str, object] = {}
    if facts.extended_requests:
        changes["device_claims"] = _reduced_claims(facts, resource, amount)
    if resource == "cpu":
        changes["nonzero_cpu_milli"] = max(0, facts.nonzero_cpu_milli - less)
    elif resource == "memory":
        changes["nonzero_memory_bytes"] = max(0, facts.nonzero_memory_bytes - less)
    # None: scores read the requests of the pod, since those of its containers may exceed them now.
    return replace(facts, requests=requests, container_requests=None, **changes)  # type: ignore[arg-type]


def _reduced_claims(facts: PodFacts, resource: str, amount: int) -> tuple[PodClaim, ...]:
    """Return the pod's claims of devices with a smaller request of one extended resource.

    The scheduler makes one claim for all extended resources of a pod that devices serve; this claim
    is the one that changes.
    """
    # Containers are reduced from the last one on: the first ones keep their amounts.
    unassigned, requests = amount, []
    for each in facts.extended_requests:
        if each.resource != resource:
            requests.append(each)
        elif unassigned:
            requests.append(replace(each, count=min(each.count, unassigned)))
            unassigned -= requests[-1].count
    # The claim for extended resources is the last one (`PodFacts.extended_requests`).
    *others, own = facts.device_claims
    return (*others, replace(own, extended=tuple(requests))) if requests else tuple(others)


def reductions(facts: PodFacts) -> list[Change]:
    """Return a change for each requested resource: not to request any of it."""
    return [
        Change("reduce", name, partial(_none_of, name))
        for name, amount in facts.requests
        if amount > 0
    ]


def _none_of(resource: str, facts: PodFacts) -> PodFacts:
    return reduced(facts, resource, 0)


def unit_of(resource: str) -> int:
    """The step in which a resource is reduced: 1m CPU, 1 MiB of memory, one of anything else."""
    return MIB if is_bytes(resource) else 1


def reduction_text(resource: str, old: int, new: int) -> str:
    """The change of a request, with the exact amounts."""
    before, after = exact_amount(resource, old), exact_amount(resource, new)
    return f"request {resource} {after} instead of {before}"
