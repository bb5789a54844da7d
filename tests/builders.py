"""Builders of facts, tables and profiles: a test names only the values that it is about."""

import numpy as np

from roadstead.config.model import PluginRef, ProfileConfig
from roadstead.config.plugin_args import NodeAffinityArgs
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PreferredNodeTerm
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint, Toleration
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.guarded import guard
from roadstead.framework.plugin import EXTENSION_POINTS, Extremes, Handle
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.plugins.node_affinity import NodeAffinity

MIB = 1 << 20
GIB = 1 << 30
GPU = "example.com/gpu"
DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * MIB


ROW_PLUGINS = {
    "preFilter": ["NodeAffinity", "NodePorts", "NodeResourcesFit"],
    "filter": [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
    ],
    "postFilter": ["DefaultPreemption"],
    "preScore": [
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
    ],
    "score": [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
    ],
}
"""The default profile's plugins that read a node and its own pods, in their order."""


def pairs(mapping):
    return tuple(sorted((mapping or {}).items()))


def node(name="n1", *, cpu=4000, memory=8 * GIB, pods=110, others=None, labels=None, **facts):
    """Return a node; cpu in milli-CPU, memory in bytes, `others` further resources."""
    allocatable = {"cpu": cpu, "memory": memory} | (others or {})
    images = pairs(facts.pop("images", None))
    return NodeFacts(
        name=name,
        labels=pairs(labels),
        allocatable=tuple(sorted(allocatable.items())),
        allocatable_pods=pods,
        images=images,
        **facts,
    )


def pod(*, cpu=None, memory=None, others=None, labels=None, node_selector=None, **facts):
    """Return a pod of one container; scoring counts missing requests as 100m and 200Mi."""
    named = {"cpu": cpu, "memory": memory} | (others or {})
    requests = {name: amount for name, amount in named.items() if amount is not None}
    weighs = {
        "nonzero_cpu_milli": DEFAULT_CPU_MILLI if cpu is None else cpu,
        "nonzero_memory_bytes": DEFAULT_MEMORY_BYTES if memory is None else memory,
    }
    return PodFacts(
        requests=tuple(sorted(requests.items())),
        labels=pairs(labels),
        node_selector=pairs(node_selector),
        **(weighs | facts),
    )


def taint(key, value="", effect="NoSchedule"):
    return Taint(key, value, effect)


def tolerate(key="", value="", effect="", operator=""):
    return Toleration(key, operator, value, effect)


def require(key, operator, *values):
    return Requirement(key, operator, tuple(sorted(set(values))))


def term(*expressions, fields=(), error=""):
    errors = (error,) if error else ()
    return NodeSelectorTerm(tuple(expressions), tuple(fields), error, errors)


def named(*names):
    """Return a term that allows the nodes with these names."""
    return term(fields=[require("metadata.name", "In", *names)])


def prefer(weight, wanted):
    return PreferredNodeTerm(weight, wanted)


def table_of(*nodes, classes=None):
    table = NodeTable(classes)
    for facts in nodes:
        table.add_node(facts)
    return table


def put(table, node_name, *pods):
    for facts in pods:
        table.add_pod(node_name, table.columns.classes.pod_class(facts))


def config_of(points, args=None, scheduler_name="default-scheduler"):
    """Return a profile's configuration: point → plugin names, or (name, weight) at score."""
    refs = {
        point: tuple(
            PluginRef(*each) if isinstance(each, tuple) else PluginRef(each)
            for each in points.get(point, ())
        )
        for point in EXTENSION_POINTS
    }
    refs["queueSort"] = refs["queueSort"] or (PluginRef("PrioritySort"),)
    return ProfileConfig(scheduler_name, None, refs, args or {})


def profile_of(points, *, args=None, plugins=None, classes=None):
    """Return a profile of in-tree plugins and of a user's `plugins` (classes without arguments)."""
    factories = {kind.name: lambda args, handle, kind=kind: guard(kind()) for kind in plugins or ()}
    registry = in_tree_registry().merged(factories)
    return Profile(config_of(points, args), registry, Handle(classes or PodClasses()))


def evaluated(profile, facts, table):
    """Evaluate a class of pods over a whole table, up to the raw scores."""
    evaluation = Evaluation(profile, table.columns.classes.pod_class(facts), table)
    advance(evaluation)
    return evaluation


def advance(evaluation):
    """Update an evaluation to the state of its table; return PreScore's status."""
    evaluation.update(evaluation.run_pre_filter())
    if not evaluation.pre_filter.status.is_success:
        return None
    status, _ = evaluation.update_scores(evaluation.run_pre_score())
    return status


def is_affected(plugin, pod, placed):
    """Whether adding or removing a pod may change a plugin's result for a pod on another node."""
    return plugin.effect(placed).may_change(pod)


def state_for(plugin, table, facts):
    """Return the state that a plugin's Filter and Score receive; None after a Skip."""
    state = CycleState(len(table))
    pod_class = table.columns.classes.pod_class(facts)
    if hasattr(plugin, "pre_score"):
        everywhere = np.ones(len(table), dtype=np.bool_)
        if plugin.pre_score(state, pod_class, table, lambda: everywhere).is_skip:
            return None
    return state


def found_before_filter(plugin, pod_class, table):
    """Return PreFilter's result across nodes; None if there is none."""
    state = CycleState(len(table))
    plugin.pre_filter(state, pod_class, table)
    return state.get(plugin.name)


def found_before_score(plugin, pod_class, table, feasible=None):
    """Return PreScore's result across nodes, if these rows (or all) are feasible."""
    state = CycleState(len(table))
    rows = np.ones(len(table), dtype=np.bool_) if feasible is None else feasible
    plugin.pre_score(state, pod_class, table, lambda: rows)
    return state.get(plugin.name)


def filter_with(plugin, facts, table):
    """Return a plugin's Filter result for each row: None, or the refusal's (code name, reasons)."""
    pod_class = table.columns.classes.pod_class(facts)
    result = plugin.filter(CycleState(len(table)), pod_class, table)
    if result.codes is None:
        return [None] * len(table)
    per_code = [None, *((each.code.upstream_name, each.reasons) for each in result.statuses)]
    return [per_code[code] for code in result.codes.tolist()]


def score_with(plugin, facts, table):
    """Return raw scores of a plugin; None if PreScore skipped."""
    state = state_for(plugin, table, facts)
    if state is None:
        return None
    return plugin.score(state, table.columns.classes.pod_class(facts), table).tolist()


def normalized_with(plugin, facts, table):
    """Return normalized scores over all rows; None if PreScore skipped."""
    state = state_for(plugin, table, facts)
    if state is None:
        return None
    pod_class = table.columns.classes.pod_class(facts)
    raw = plugin.score(state, pod_class, table)
    return plugin.normalize(state, pod_class, raw, Extremes.of(raw)).tolist()


def node_affinity(**added):
    """Return NodeAffinity with the profile's added affinity, as a manifest."""
    return NodeAffinity(NodeAffinityArgs(added or None))


def refused(*reasons):
    return ("Unschedulable", reasons)


def hopeless(*reasons):
    return ("UnschedulableAndUnresolvable", reasons)
