"""The in-tree plugins: the extension points of each, default order and weights.

A plain table, so that configuration can be checked and expanded without importing a plugin.
Upstream: pkg/scheduler/apis/config/v1/default_plugins.go, framework/plugins/registry.go,
and the interfaces that each plugin asserts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# The order in which upstream builds the points (framework.go, getExtensionPoints): the first
# failing point is the one that an error names.
EXTENSION_POINTS: Final[tuple[str, ...]] = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
)

INTERFACE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {point: f"{point[0].upper()}{point[1:]}Plugin" for point in EXTENSION_POINTS}
)
"""Extension point → name of its Go interface, as in upstream's errors."""


def _points(names: str) -> frozenset[str]:
    """Return the extension points in a text, which separates them by spaces."""
    points = frozenset(names.split())
    assert points <= set(EXTENSION_POINTS), names
    return points


IN_TREE_POINTS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "SchedulingGates": _points("preEnqueue"),
        "PrioritySort": _points("queueSort"),
        "NodeUnschedulable": _points("filter"),
        "NodeName": _points("filter"),
        "TaintToleration": _points("filter preScore score"),
        "NodeAffinity": _points("preFilter filter preScore score"),
        "NodePorts": _points("preFilter filter"),
        "NodeResourcesFit": _points("preFilter filter preScore score"),
        "VolumeRestrictions": _points("preFilter filter"),
        "NodeVolumeLimits": _points("preFilter filter"),
        "VolumeBinding": _points("preFilter filter reserve preBind preScore score"),
        "VolumeZone": _points("preFilter filter"),
        "PodTopologySpread": _points("preFilter filter preScore score"),
        "InterPodAffinity": _points("preFilter filter preScore score"),
        "DynamicResources": _points("preEnqueue preFilter filter postFilter reserve preBind"),
        "DefaultPreemption": _points("preEnqueue postFilter"),
        "NodeResourcesBalancedAllocation": _points("preScore score"),
        "ImageLocality": _points("score"),
        "DefaultBinder": _points("bind"),
    }
)
"""In-tree plugin → its extension points, in the default order of plugins."""

DEVICE_CLAIMS_PLUGIN: Final = "DynamicResources"
"""The plugin for claims of devices, which the binder names if it refuses to reserve a claim."""

OPTIONAL_POINTS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "SelectorSpread": _points("preScore score"),
        "ServiceAffinity": _points("preFilter filter score"),
        "NodeLabel": _points("filter score"),
        "NodePreferAvoidPods": _points("score"),
        "Coscheduling": _points(
            "preEnqueue queueSort preFilter postFilter reserve permit postBind"
        ),
    }
)
"""Plugin → its extension points, for plugins that kube-scheduler 1.34 lacks; off by default."""

_SCORE_WEIGHTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
)

DEFAULT_MULTI_POINT: Final[tuple[tuple[str, int | None], ...]] = tuple(
    (name, _SCORE_WEIGHTS.get(name)) for name in IN_TREE_POINTS
)
"""The default profile: (plugin, weight if it scores) of each in-tree plugin, for multiPoint."""

REMOVED_PLUGINS: Final[frozenset[str]] = frozenset(
    {"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}
)
"""Names that v1 refuses if they are enabled at one extension point or configured."""
