"""Predicates and priorities by name, and the plugins that replace them.

Upstream: pkg/scheduler/framework/plugins/legacy_registry.go (NewLegacyRegistry) of 1.18 to 1.22.
Extension points that a plugin has gained since are added: it does not work without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

PluginUse = tuple[str, str]
"""A plugin, and the extension points at which it is enabled, separated by spaces."""

_FIT: Final = ("NodeResourcesFit", "filter preFilter")
_PORTS: Final = ("NodePorts", "filter preFilter")
_AFFINITY: Final = ("NodeAffinity", "filter preFilter")
_NAME: Final = ("NodeName", "filter")
_LIMITS: Final = ("NodeVolumeLimits", "preFilter filter")

PREDICATES: Final[Mapping[str, tuple[PluginUse, ...]]] = MappingProxyType(
    {
        "CheckNodeUnschedulable": (("NodeUnschedulable", "filter"),),
        "GeneralPredicates": (_FIT, _NAME, _PORTS, _AFFINITY),
        "HostName": (_NAME,),
        "PodFitsHostPorts": (_PORTS,),
        "MatchNodeSelector": (_AFFINITY,),
        "PodFitsResources": (_FIT,),
        "NoDiskConflict": (("VolumeRestrictions", "preFilter filter"),),
        "PodToleratesNodeTaints": (("TaintToleration", "filter"),),
        "CheckNodeLabelPresence": (("NodeLabel", "filter"),),
        "CheckServiceAffinity": (("ServiceAffinity", "filter preFilter"),),
        "MaxEBSVolumeCount": (_LIMITS,),
        "MaxGCEPDVolumeCount": (_LIMITS,),
        "MaxCSIVolumeCountPred": (_LIMITS,),
        "MaxAzureDiskVolumeCount": (_LIMITS,),
        "MaxCinderVolumeCount": (_LIMITS,),
        "CheckVolumeBinding": (("VolumeBinding", "preFilter filter reserve preBind"),),
        "NoVolumeZoneConflict": (("VolumeZone", "preFilter filter"),),
        "EvenPodsSpread": (("PodTopologySpread", "preFilter filter"),),
        "MatchInterPodAffinity": (("InterPodAffinity", "filter preFilter"),),
    }
)
"""Predicate → its plugins, in the order in which predicates ran (predicateOrdering)."""

PRIORITIES: Final[Mapping[str, PluginUse]] = MappingProxyType(
    {
        "SelectorSpreadPriority": ("SelectorSpread", "preScore score"),
        "InterPodAffinityPriority": ("InterPodAffinity", "preScore score"),
        "LeastRequestedPriority": ("NodeResourcesFit", "preScore score"),
        "MostRequestedPriority": ("NodeResourcesFit", "preScore score"),
        "RequestedToCapacityRatioPriority": ("NodeResourcesFit", "preScore score"),
        "BalancedResourceAllocation": ("NodeResourcesBalancedAllocation", "preScore score"),
        "NodePreferAvoidPodsPriority": ("NodePreferAvoidPods", "score"),
        "NodeAffinityPriority": ("NodeAffinity", "preScore score"),
        "TaintTolerationPriority": ("TaintToleration", "preScore score"),
        "ImageLocalityPriority": ("ImageLocality", "score"),
        "EvenPodsSpreadPriority": ("PodTopologySpread", "preScore score"),
        "NodeLabelPriority": ("NodeLabel", "score"),
        "ServiceAntiAffinityPriority": ("ServiceAffinity", "score"),
    }
)
"""Priority → its plugin."""

STRATEGIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "LeastRequestedPriority": "LeastAllocated",
        "MostRequestedPriority": "MostAllocated",
        "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio",
    }
)
"""Priorities that are now scoring strategies of NodeResourcesFit."""

MANDATORY_PREDICATES: Final = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
"""Predicates that a Policy cannot turn off."""

DEFAULT_PREDICATES: Final = (
    *("CheckNodeUnschedulable", "GeneralPredicates", "NoDiskConflict", "PodToleratesNodeTaints"),
    *("MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxCSIVolumeCountPred"),
    *("MaxAzureDiskVolumeCount", "CheckVolumeBinding", "NoVolumeZoneConflict"),
    *("EvenPodsSpread", "MatchInterPodAffinity"),
)

# Priority → weight.
DEFAULT_PRIORITIES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "SelectorSpreadPriority": 1,
        "InterPodAffinityPriority": 1,
        "LeastRequestedPriority": 1,
        "BalancedResourceAllocation": 1,
        "NodePreferAvoidPodsPriority": 10000,
        "NodeAffinityPriority": 1,
        "TaintTolerationPriority": 1,
        "ImageLocalityPriority": 1,
        "EvenPodsSpreadPriority": 2,
    }
)

_BY_TAINTS: Final = (
    "dropped: node conditions are taints since 1.12, which TaintToleration (mandatory) refuses"
)
# Predicate without a plugin → the note about it.
DROPPED_PREDICATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CheckNodeCondition": f"{_BY_TAINTS}, and NodeUnschedulable (mandatory) does the rest",
        "CheckNodeMemoryPressure": _BY_TAINTS,
        "CheckNodeDiskPressure": _BY_TAINTS,
        "CheckNodePIDPressure": _BY_TAINTS,
    }
)

# Priority without a plugin → the note about it.
DROPPED_PRIORITIES: Final[Mapping[str, str]] = MappingProxyType(
    {"EqualPriority": "dropped: it gives every node the same, as upstream dropped it"}
)

# Other name → the predicate or priority that it means.
_PREDICATE_ALIASES: Final = {"PodFitsPorts": "PodFitsHostPorts"}
_PRIORITY_ALIASES: Final = {"ServiceSpreading": "SelectorSpreadPriority"}
_PREDICATE_SUFFIXES: Final = ("Predicate", "Pred")
_PRIORITY_SUFFIXES: Final = ("Priority",)


def known_predicate(name: str) -> str | None:
    """Return the predicate of a name, with or without the suffix "Predicate" or "Pred"."""
    return _PREDICATE_BY_SHORT_NAME.get(_without_suffix(name, _PREDICATE_SUFFIXES))


def known_priority(name: str) -> str | None:
    """Return the priority of a name, with or without the suffix "Priority"."""
    return _PRIORITY_BY_SHORT_NAME.get(_without_suffix(name, _PRIORITY_SUFFIXES))


def _without_suffix(name: str, suffixes: Iterable[str]) -> str:
    for suffix in suffixes:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


# By name without suffix.
_PREDICATE_BY_SHORT_NAME: Final = {
    _without_suffix(name, _PREDICATE_SUFFIXES): name for name in (*PREDICATES, *DROPPED_PREDICATES)
} | _PREDICATE_ALIASES
_PRIORITY_BY_SHORT_NAME: Final = {
    _without_suffix(name, _PRIORITY_SUFFIXES): name for name in (*PRIORITIES, *DROPPED_PRIORITIES)
} | _PRIORITY_ALIASES
