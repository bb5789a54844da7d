"""Scoring and filtering of dropped plugins, ported node by node, close to the Go code.

Nodes are NodeInfo of tests.plugins.upstream, in the order of their arrival.
"""

from tests.plugins.spread_upstream import default_selector
from tests.plugins.upstream import MAX_NODE_SCORE

ZONE_WEIGHTING = 2.0 / 3.0
ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


def get_zone_key(node):
    """component-helpers/node/topology GetZoneKey."""
    labels = dict(node.facts.labels)
    zone = next((labels[key] for key in ZONE_LABELS if key in labels), "")
    region = next((labels[key] for key in REGION_LABELS if key in labels), "")
    return "" if region == "" and zone == "" else region + ":\x00:" + zone


def matching(pod, selector, node):
    if not selector.requirements:
        return 0
    return sum(
        each.namespace == pod.namespace
        and not each.is_terminating
        and selector.matches(dict(each.labels))
        for each in node.pods
    )


def selector_spread(pod, nodes, selecting):
    """selector_spread.go NormalizeScore over the feasible nodes; None for a pod it skips."""
    if pod.spread_constraints:
        return None
    selector = default_selector(pod, selecting)
    scores = [matching(pod, selector, node) for node in nodes]
    counts_by_zone = {}
    for node, score in zip(nodes, scores, strict=True):
        zone = get_zone_key(node)
        if zone != "":
            counts_by_zone[zone] = counts_by_zone.get(zone, 0) + score
    max_by_node = max([0, *scores])
    max_by_zone = max([0, *counts_by_zone.values()])
    result = {}
    for node, score in zip(nodes, scores, strict=True):
        f_score = float(MAX_NODE_SCORE)
        if max_by_node > 0:
            f_score = MAX_NODE_SCORE * (float(max_by_node - score) / float(max_by_node))
        zone = get_zone_key(node)
        if counts_by_zone and zone != "":
            zone_score = float(MAX_NODE_SCORE)
            if max_by_zone > 0:
                share = float(max_by_zone - counts_by_zone[zone]) / float(max_by_zone)
                zone_score = MAX_NODE_SCORE * share
            f_score = (f_score * (1.0 - ZONE_WEIGHTING)) + (ZONE_WEIGHTING * zone_score)
        result[node.facts.name] = int(f_score)
    return result


def pod_services(pod, selecting):
    """helper/spread.go GetPodServices."""
    return [
        each.selector
        for each in selecting
        if each.kind == "Service"
        and each.namespace == pod.namespace
        and each.selector is not None
        and each.selector.matches(dict(pod.labels))
    ]


def service_affinity_filter(pod, nodes, selecting, labels):
    """service_affinity.go Filter of each node: whether it passes."""
    wanted = dict(pod.labels)
    matching_pods = [
        node
        for node in nodes
        for each in node.pods
        if each.namespace == pod.namespace and wanted.items() <= dict(each.labels).items()
    ]
    affinity = {
        key: dict(pod.node_selector)[key] for key in labels if key in dict(pod.node_selector)
    }
    if len(labels) > len(affinity) and pod_services(pod, selecting) and matching_pods:
        first = dict(matching_pods[0].facts.labels)
        affinity = {key: first[key] for key in labels if key in first} | affinity
    return {node.facts.name: affinity.items() <= dict(node.facts.labels).items() for node in nodes}


def service_affinity_scores(pod, nodes, selecting, labels):
    """service_affinity.go Score and NormalizeScore over the feasible nodes."""
    services = pod_services(pod, selecting)
    scores = [matching(pod, services[0], node) if services else 0 for node in nodes]
    result = [0.0] * len(nodes)
    for label in labels:
        total, by_value = sum(scores), {}
        for node, score in zip(nodes, scores, strict=True):
            value = dict(node.facts.labels).get(label)
            by_value[value] = by_value.get(value, 0) + score
        for i, node in enumerate(nodes):
            if label not in dict(node.facts.labels):
                continue
            f_score = float(MAX_NODE_SCORE)
            if total > 0:
                others = total - by_value[dict(node.facts.labels)[label]]
                f_score = MAX_NODE_SCORE * (float(others) / float(total))
            result[i] += f_score / float(len(labels))
    return {node.facts.name: int(score) for node, score in zip(nodes, result, strict=True)}
