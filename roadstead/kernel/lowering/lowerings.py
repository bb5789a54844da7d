"""The kernel's interface to lowerings: which plugins and classes have them, and arrays of classes.

A lowering translates the rules of one plugin for compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import Plugin
from roadstead.framework.profile import Profile
from roadstead.kernel.arrays import END, padded
from roadstead.kernel.counter_arrays import ClassCounters
from roadstead.kernel.lowering import inter_pod_affinity, pod_topology_spread
from roadstead.kernel.lowering import node_resources_balanced_allocation as balanced_allocation
from roadstead.kernel.lowering import node_resources_fit as resources_fit
from roadstead.kernel.lowering.node_ports import PortArrays, RequestedPorts
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows
from roadstead.plugins.inter_pod_affinity import InterPodAffinity
from roadstead.plugins.node_ports import NodePorts
from roadstead.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from roadstead.plugins.node_resources_fit import NodeResourcesFit
from roadstead.plugins.pod_topology_spread import PodTopologySpread

_FILTERING = (NodeResourcesFit, NodePorts)
"""Plugins that compiled code always evaluates; a profile needs both. Without NodePorts, pods of one
signature could have different ports."""

_ACROSS_NODES = (PodTopologySpread, InterPodAffinity)
"""Plugins that are computed by counters: a placement changes their answers on other nodes."""

_COMPILED = (*_FILTERING, NodeResourcesBalancedAllocation, *_ACROSS_NODES)
"""Plugins that compiled code evaluates; all other plugins must read NODE facts only."""


def is_compiled(plugin: Plugin) -> bool:
    """Whether compiled code computes what a plugin returns; false for a subclass, it may differ."""
    return type(plugin) in _COMPILED


def is_counted(plugin: Plugin) -> bool:
    """Whether the counts of a plugin across nodes are kept up to date as pods are placed."""
    return type(plugin) in _ACROSS_NODES


def why_not(profile: Profile, pod: PodClass) -> str:
    """Return why the kernel cannot cover a class with these plugins; "" if it may."""
    filters = {type(plugin) for plugin in profile.filter}
    missing = [plugin.name for plugin in _FILTERING if plugin not in filters]
    if missing:
        return f"no {missing[0]} in Filter"
    # NodeResourcesFit leaves extended resources that device classes serve to DynamicResources.
    fits = [plugin for plugin in profile.filter if isinstance(plugin, NodeResourcesFit)]
    has_device_resource = any(
        fit.is_left_to_devices(pod, name) for fit in fits for name in pod.request_of
    )
    return "resources of device classes" if has_device_resource else ""


class ClassArrays(NamedTuple):
    """Requests of classes: arrays for the plugins that read only the row itself, and common ones.

    fit, balanced, ports: of NodeResourcesFit, NodeResourcesBalancedAllocation and NodePorts.
    placed_requests: int64[class, k, 2], (resource, amount) that a placed pod adds to its row's
    `requested`. nonzero: int64[class, 2], what it adds to `nonzero`. affects: bool[placed class,
    class], whether a placed pod may change the other class's totals on other nodes in a way that
    the kernel does not compute. static_index, evaluation_index: int64[class], index of its static
    scores, and of its shared evaluation (`covered_classes.SharedEvaluation`).
    """

    fit: resources_fit.FitArrays
    balanced: balanced_allocation.BalancedArrays
    ports: PortArrays
    placed_requests: I64
    nonzero: I64
    affects: Bools
    static_index: I64
    evaluation_index: I64


class RowLowering:
    """The lowerings of the plugins that read only the row itself, for classes of one evaluation."""

    def __init__(self, evaluation: Evaluation) -> None:
        skipped = evaluation.score_state.skipped
        scores = [e for e in evaluation.profile.score if e.plugin.name not in skipped]
        scoring = {type(each.plugin): each for each in scores}
        self.fit = resources_fit.FitLowering(evaluation, scoring)
        self.balanced = balanced_allocation.BalancedLowering(evaluation, scoring)


def lay_out_classes(
    row_lowerings: Sequence[RowLowering],
    pods: Sequence[PodClass],
    affects: Bools,
    static_index: I64,
    evaluation_index: I64,
) -> tuple[ClassArrays, Callable[[NodeTable, Rows], Bools]]:
    """Return the arrays of classes, and a function that computes `RowArrays.ports_in_use`.

    row_lowerings, pods: of each class.
    """
    ports = RequestedPorts(pods)
    class_arrays = ClassArrays(
        fit=resources_fit.lay_out_fit([each.fit for each in row_lowerings], pods),
        balanced=balanced_allocation.lay_out_balanced(
            [each.balanced for each in row_lowerings], pods
        ),
        ports=ports.lay_out(),
        placed_requests=padded([pod.coded_requests for pod in pods], 2),
        nonzero=np.array([pod.nonzero for pod in pods], dtype=np.int64).reshape(-1, 2),
        affects=affects,
        static_index=static_index,
        evaluation_index=evaluation_index,
    )
    return class_arrays, ports.ports_in_use


def replace_amounts(
    class_arrays: ClassArrays, c: int, lowering: RowLowering, pod: PodClass
) -> bool:
    """Write the amounts of another class of the same shape in place of class c.

    Returns False, with nothing changed, if the new class requests more resources than the arrays
    have space for.
    """
    lists: tuple[tuple[I64, Sequence[tuple[int, ...]]], ...] = (
        (class_arrays.fit.filtered_requests[c], lowering.fit.filtered_requests(pod)),
        (class_arrays.fit.scored_requests[c], lowering.fit.scored_requests(pod)),
        (class_arrays.balanced.scored_requests[c], lowering.balanced.scored_requests(pod)),
        (class_arrays.placed_requests[c], pod.coded_requests),
    )
    if any(len(new) > len(array) for array, new in lists):
        return False
    for array, new in lists:
        if len(new) < len(array):
            array[len(new) :] = END
        if new:
            array[: len(new)] = new
    class_arrays.nonzero[c] = pod.nonzero
    return True


def counter_set_key(evaluation: Evaluation) -> Hashable:
    """Return a key that is equal for classes with the same counters."""
    facts = evaluation.pod.facts
    # `sign` returns what a plugin reads of a pod; `cross_node` are the plugins that read other
    # nodes.
    plugin_keys = tuple(
        plugin.sign(facts) for plugin in evaluation.profile.cross_node if is_counted(plugin)
    )
    # Spread constraints may count only the nodes that the pod may use: nodeAffinityPolicy and
    # nodeTaintsPolicy read these facts.
    node_rules = facts.node_selector, facts.required_node_terms, facts.tolerations
    return id(evaluation.profile), plugin_keys, node_rules


def pod_profile_key(pod: PodClass) -> Hashable:
    """Return a key that is equal for pods that add the same to all counters."""
    facts = pod.facts
    return (
        *(facts.namespace, facts.labels, facts.is_terminating),
        *(facts.pod_affinity, facts.pod_anti_affinity),
        *(facts.preferred_pod_affinity, facts.preferred_pod_anti_affinity),
    )


def counter_set_of(evaluation: Evaluation, pod_profiles: Sequence[PodClass]) -> ClassCounters:
    """Return the counters of a class, after PreFilter and PreScore.

    pod_profiles: a pod of each profile.
    """
    counter_set = ClassCounters(evaluation.pod)
    pod_topology_spread.add_counters(counter_set, evaluation)
    inter_pod_affinity.add_counters(counter_set, evaluation, pod_profiles)
    return counter_set
