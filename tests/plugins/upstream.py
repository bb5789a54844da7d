"""kube-scheduler's rules, ported one node and one pod at a time, in Python's own integers.

The code is close to the Go code so that both can be compared; nothing here uses tables.
"""

import math
from dataclasses import dataclass

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts

STANDARD = ("cpu", "memory", "ephemeral-storage")
MAX_NODE_SCORE = 100
MIB = 1 << 20


@dataclass
class NodeInfo:
    """A node and the pods on it, as upstream's NodeInfo."""

    facts: NodeFacts
    pods: list[PodFacts]

    def allocatable(self, resource):
        return dict(self.facts.allocatable).get(resource, 0)

    def requested(self, resource):
        return sum(dict(each.requests).get(resource, 0) for each in self.pods)

    def nonzero_requested(self, resource):
        if resource == "cpu":
            return sum(each.nonzero_cpu_milli for each in self.pods)
        return sum(each.nonzero_memory_bytes for each in self.pods)


def quotient(numerator, denominator):
    """Go's integer division: towards zero."""
    result = abs(numerator) // abs(denominator)
    return result if (numerator < 0) == (denominator < 0) else -result


def is_scalar(resource):
    return resource not in STANDARD


def fits_request(pod, node, ignored=(), ignored_groups=()):
    """noderesources/fit.go fitsRequest: (reason, unresolvable) of each insufficient resource."""
    insufficient = []
    if len(node.pods) + 1 > node.facts.allocatable_pods:
        insufficient.append(("Too many pods", False))
    for resource, amount in pod.requests:
        if amount == 0:
            continue
        is_ignored = resource in ignored or resource.split("/")[0] in ignored_groups
        if is_scalar(resource) and "/" in resource and is_ignored:
            continue
        if amount > node.allocatable(resource) - node.requested(resource):
            hopeless = amount > node.allocatable(resource)
            insufficient.append((f"Insufficient {resource}", hopeless))
    return insufficient


def allocatable_and_request(pod, node, resource, *, use_requested):
    """resource_allocation.go calculateResourceAllocatableRequest with the pod's part added."""
    requests = dict(pod.requests)
    if not use_requested:
        requests |= {"cpu": pod.nonzero_cpu_milli, "memory": pod.nonzero_memory_bytes}
        if pod.container_requests is not None:
            requests = dict(pod.container_requests)
    asked = requests.get(resource, 0)
    if asked == 0 and is_scalar(resource):
        return 0, 0
    if resource in ("cpu", "memory") and not use_requested:
        return node.allocatable(resource), node.nonzero_requested(resource) + asked
    return node.allocatable(resource), node.requested(resource) + asked


def least_requested_score(requested, capacity):
    if capacity == 0 or requested > capacity:
        return 0
    return quotient((capacity - requested) * MAX_NODE_SCORE, capacity)


def most_requested_score(requested, capacity):
    if capacity == 0:
        return 0
    requested = min(requested, capacity)
    return quotient(requested * MAX_NODE_SCORE, capacity)


def allocation_score(pod, node, resources, scorer):
    """least_allocated.go and most_allocated.go. resources: (name, weight)."""
    node_score = weight_sum = 0
    for resource, weight in resources:
        capacity, requested = allocatable_and_request(pod, node, resource, use_requested=False)
        if capacity == 0:
            continue
        node_score += scorer(requested, capacity) * weight
        weight_sum += weight
    return quotient(node_score, weight_sum) if weight_sum else 0


def broken_linear(shape, p):
    """helper/shape_score.go; shape: (utilization, score), scores already times ten."""
    for i, (utilization, score) in enumerate(shape):
        if p <= utilization:
            if i == 0:
                return shape[0][1]
            before, low = shape[i - 1]
            return low + quotient((score - low) * (p - before), utilization - before)
    return shape[-1][1]


def ratio_score(pod, node, resources, shape):
    """requested_to_capacity_ratio.go; math.Round rounds halves away from zero."""
    points = [(utilization, score * 10) for utilization, score in shape]
    node_score = weight_sum = 0
    for resource, weight in resources:
        capacity, requested = allocatable_and_request(pod, node, resource, use_requested=False)
        if capacity == 0:
            continue
        full = requested > capacity
        score = broken_linear(points, 100 if full else quotient(requested * 100, capacity))
        if score > 0:
            node_score += score * weight
            weight_sum += weight
    return math.floor(node_score / weight_sum + 0.5) if weight_sum else 0


def balanced_score(pod, node, resources):
    """balanced_allocation.go balancedResourceScorer, in float64."""
    fractions = []
    total = 0.0
    for resource in resources:
        capacity, requested = allocatable_and_request(pod, node, resource, use_requested=True)
        if capacity == 0:
            continue
        fraction = min(float(requested) / float(capacity), 1.0)
        total += fraction
        fractions.append(fraction)
    std = 0.0
    if len(fractions) == 2:
        std = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = total / float(len(fractions))
        squares = 0.0
        for fraction in fractions:
            squares = squares + (fraction - mean) * (fraction - mean)
        std = math.sqrt(squares / float(len(fractions)))
    return int((1 - std) * float(MAX_NODE_SCORE))


def tolerates(toleration, taint):
    """api/core/v1/toleration.go ToleratesTaint."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def untolerated_taint(pod, node):
    """Return the first hard taint that the pod does not tolerate."""
    for taint in node.facts.taints:
        if taint.effect == "PreferNoSchedule":
            continue
        if not any(tolerates(each, taint) for each in pod.tolerations):
            return taint
    return None


def intolerable_soft_taints(pod, node):
    soft = [each for each in pod.tolerations if each.effect in ("", "PreferNoSchedule")]
    return sum(
        taint.effect == "PreferNoSchedule" and not any(tolerates(each, taint) for each in soft)
        for taint in node.facts.taints
    )


def matches_affinity(pod, node):
    """nodeaffinity.go GetRequiredNodeAffinity(pod).Match(node)."""
    labels = dict(node.facts.labels)
    if any(labels.get(key) != value for key, value in pod.node_selector):
        return False
    terms = pod.required_node_terms
    return terms is None or any(term.matches(labels, node.facts.name) for term in terms)


def preferred_score(terms, node):
    """terms: (weight, term)."""
    labels = dict(node.facts.labels)
    return sum(weight for weight, term in terms if term.matches(labels, node.facts.name))


def ports_conflict(pod, node):
    """kube-scheduler/framework HostPortInfo.CheckConflict over sets per address."""
    used = {}
    for each in node.pods:
        for port in each.host_ports:
            used.setdefault(port.ip, set()).add((port.protocol, port.port))
    for want in pod.host_ports:
        key = (want.protocol, want.port)
        if want.ip == "0.0.0.0":
            if any(key in ports for ports in used.values()):
                return True
        elif any(key in used.get(ip, ()) for ip in ("0.0.0.0", want.ip)):
            return True
    return False


def image_locality_score(pod, node, nodes):
    """imagelocality.go over the cache's image states. nodes: all, in order of arrival."""
    states = {}
    for each in nodes:
        for image, size_bytes in each.facts.images:
            state = states.setdefault(image, [size_bytes, 0])
            state[1] += 1
    here = {image for image, _ in node.facts.images}
    total = 0
    for image in pod.images:
        if image in here:
            size_bytes, holders = states[image]
            spread = float(holders) / float(len(nodes))
            total += int(float(size_bytes) * spread)
    low, high = 23 * MIB, 1000 * MIB * pod.container_count
    total = low if total < low else min(total, high)
    return quotient(MAX_NODE_SCORE * (total - low), high - low)


def normalize(scores, *, reverse):
    """helper/normalize_score.go DefaultNormalizeScore."""
    highest = max([0, *scores])
    if highest == 0:
        return [MAX_NODE_SCORE if reverse else score for score in scores]
    scaled = [quotient(MAX_NODE_SCORE * score, highest) for score in scores]
    return [MAX_NODE_SCORE - score if reverse else score for score in scaled]
