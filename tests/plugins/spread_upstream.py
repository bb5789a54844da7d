"""podtopologyspread, ported one node and one pod at a time, close to the Go code.

Nodes are NodeInfo of tests.plugins.upstream; nothing here uses tables, codes or shards.
"""

import math
from dataclasses import dataclass, replace

from roadstead.facts.selectors import LabelSelector, Requirement
from tests.plugins.upstream import MAX_NODE_SCORE

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
LABEL_MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"
NO_MATCH = "node(s) didn't match pod topology spread constraints"


@dataclass
class Constraint:
    """common.go topologySpreadConstraint."""

    max_skew: int
    topology_key: str
    selector: LabelSelector | None
    min_domains: int
    node_affinity_policy: str
    node_taints_policy: str

    def matches(self, labels):
        return self.selector is not None and self.selector.matches(labels)


@dataclass
class Spreader:
    """plugin.go PodTopologySpread: default constraints, and the listers' objects."""

    defaults: tuple
    system_defaulted: bool
    selecting: tuple = ()

    def constraints(self, pod, action):
        if pod.spread_constraints:
            return filter_constraints(pod.spread_constraints, pod, action)
        found = filter_constraints(self.defaults, pod, action)
        selector = default_selector(pod, self.selecting)
        if not found or not selector.requirements:
            return []
        return [replace(each, selector=selector) for each in found]

    def requires_all_topologies(self, pod):
        return bool(pod.spread_constraints) or not self.system_defaulted


def filter_constraints(constraints, pod, action):
    result = []
    for each in constraints:
        if each.when_unsatisfiable != action:
            continue
        selector = each.selector
        labels = dict(pod.labels)
        matched = [Requirement(k, "In", (labels[k],)) for k in each.match_label_keys if k in labels]
        if matched:
            own = selector.requirements if selector is not None else ()
            selector = LabelSelector((*matched, *own))
        result.append(
            Constraint(
                each.max_skew,
                each.topology_key,
                selector,
                each.min_domains,
                each.node_affinity_policy,
                each.node_taints_policy,
            )
        )
    return result


def default_selector(pod, selecting):
    """helper/spread.go DefaultSelector."""
    label_set = {}
    for each in selecting:
        here = each.kind == "Service" and each.namespace == pod.namespace
        if here and each.selector is not None and each.selector.matches(dict(pod.labels)):
            label_set |= {r.key: r.values[0] for r in each.selector.requirements}
    added = ()
    for each in selecting:
        is_owner = pod.owner is not None and (
            (each.kind, each.namespace, each.name)
            == (pod.owner.kind, pod.namespace, pod.owner.name)
            and pod.owner.api_version
            == ("v1" if each.kind == "ReplicationController" else "apps/v1")
        )
        if not is_owner or each.selector is None or each.kind == "Service":
            continue
        if each.kind == "ReplicationController":
            label_set |= {r.key: r.values[0] for r in each.selector.requirements}
        else:
            added = each.selector.requirements
    exact = [Requirement(key, "In", (value,)) for key, value in label_set.items()]
    return LabelSelector((*exact, *added))


def has_all_keys(node, constraints):
    return all(each.topology_key in dict(node.facts.labels) for each in constraints)


def fits_affinity(pod, node):
    """component-helpers RequiredNodeAffinity.Match, ignoring errors."""
    labels = dict(node.facts.labels)
    if any(labels.get(key) != value for key, value in pod.node_selector):
        return False
    if pod.required_node_terms is None:
        return True
    return any(term.matches(labels, node.facts.name) for term in pod.required_node_terms)


def tolerates_node(pod, node):
    return all(
        any(toleration.tolerates(taint) for toleration in pod.tolerations)
        for taint in node.facts.taints
        if taint.effect in ("NoSchedule", "NoExecute")
    )


def is_included(constraint, pod, node):
    """common.go matchNodeInclusionPolicies."""
    if constraint.node_affinity_policy == "Honor" and not fits_affinity(pod, node):
        return False
    return constraint.node_taints_policy != "Honor" or tolerates_node(pod, node)


def count_matching(constraint, pod, node):
    """common.go countPodsMatchSelector."""
    if constraint.selector is not None and not constraint.selector.requirements:
        return 0
    return sum(
        not each.is_terminating
        and each.namespace == pod.namespace
        and constraint.matches(dict(each.labels))
        for each in node.pods
    )


def filter_nodes(spreader, pod, nodes):
    """filtering.go: None for Skip, else per node None or (code name, reason)."""
    constraints = spreader.constraints(pod, "DoNotSchedule")
    if not constraints:
        return None
    matches = [{} for _ in constraints]
    for node in nodes:
        if not has_all_keys(node, constraints):
            continue
        for each, found in zip(constraints, matches, strict=True):
            if is_included(each, pod, node):
                value = dict(node.facts.labels)[each.topology_key]
                found[value] = found.get(value, 0) + count_matching(each, pod, node)
    return [_filter_node(constraints, matches, pod, node) for node in nodes]


def _filter_node(constraints, matches, pod, node):
    labels = dict(node.facts.labels)
    for each, found in zip(constraints, matches, strict=True):
        if each.topology_key not in labels:
            return ("UnschedulableAndUnresolvable", LABEL_MISSING)
        minimum = min(found.values(), default=math.inf)
        if len(found) < each.min_domains:
            minimum = 0
        self_match = int(each.matches(dict(pod.labels)))
        if found.get(labels[each.topology_key], 0) + self_match - minimum > each.max_skew:
            return ("Unschedulable", NO_MATCH)
    return None


def score_nodes(spreader, pod, nodes, feasible):
    """scoring.go: None for Skip, else ({name: raw}, {name: normalized}) of the feasible nodes."""
    constraints = spreader.constraints(pod, "ScheduleAnyway")
    if not constraints or not nodes:
        return None
    require_all = spreader.requires_all_topologies(pod)
    candidates = [node for node in nodes if node.facts.name in feasible]
    ignored = {
        node.facts.name
        for node in candidates
        if require_all and not has_all_keys(node, constraints)
    }
    counts = [{} for _ in constraints]
    for node in candidates:
        if node.facts.name in ignored:
            continue
        for each, found in zip(constraints, counts, strict=True):
            if each.topology_key != HOSTNAME:
                found[dict(node.facts.labels).get(each.topology_key, "")] = 0
    sizes = [
        len(candidates) - len(ignored) if each.topology_key == HOSTNAME else len(found)
        for each, found in zip(constraints, counts, strict=True)
    ]
    for node in nodes:
        if require_all and not has_all_keys(node, constraints):
            continue
        for each, found in zip(constraints, counts, strict=True):
            value = dict(node.facts.labels).get(each.topology_key, "")
            if is_included(each, pod, node) and value in found:
                found[value] += count_matching(each, pod, node)
    raw = {}
    for node in candidates:
        name = node.facts.name
        parts = zip(constraints, counts, sizes, strict=True)
        raw[name] = 0 if name in ignored else _score_node(pod, node, parts)
    return raw, _normalize(raw, ignored)


def _score_node(pod, node, parts):
    labels = dict(node.facts.labels)
    score = 0.0
    for each, found, size in parts:
        if each.topology_key not in labels:
            continue
        if each.topology_key == HOSTNAME:
            count = count_matching(each, pod, node)
        else:
            count = found[labels[each.topology_key]]
        score += float(count) * math.log(float(size + 2)) + float(each.max_skew - 1)
    whole = math.floor(score)
    return whole + (score - whole >= 0.5)


def _normalize(raw, ignored):
    scored = [score for name, score in raw.items() if name not in ignored]
    low, high = min(scored, default=0), max(scored, default=0)
    return {
        name: 0
        if name in ignored
        else MAX_NODE_SCORE
        if high == 0
        else MAX_NODE_SCORE * (high + low - score) // high
        for name, score in raw.items()
    }
