"""The default plugins of v1beta2, in current names.

Upstream: pkg/scheduler/apis/config/v1beta2/default_plugins.go. EBSLimits, GCEPDLimits and
AzureDiskLimits were defaults next to NodeVolumeLimits, which now counts their volumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

BETA2_DEFAULTS: Final[Mapping[str, tuple[tuple[str, int | None], ...]]] = MappingProxyType(
    {
        "preEnqueue": (("SchedulingGates", None),),
        "queueSort": (("PrioritySort", None),),
        "preFilter": (
            ("NodeResourcesFit", None),
            ("NodePorts", None),
            ("VolumeRestrictions", None),
            ("PodTopologySpread", None),
            ("InterPodAffinity", None),
            ("VolumeBinding", None),
            ("VolumeZone", None),
            ("NodeAffinity", None),
        ),
        "filter": (
            ("NodeUnschedulable", None),
            ("NodeName", None),
            ("TaintToleration", None),
            ("NodeAffinity", None),
            ("NodePorts", None),
            ("NodeResourcesFit", None),
            ("VolumeRestrictions", None),
            ("NodeVolumeLimits", None),
            ("VolumeBinding", None),
            ("VolumeZone", None),
            ("PodTopologySpread", None),
            ("InterPodAffinity", None),
        ),
        "postFilter": (("DefaultPreemption", None),),
        "preScore": (
            ("InterPodAffinity", None),
            ("PodTopologySpread", None),
            ("TaintToleration", None),
            ("NodeAffinity", None),
        ),
        "score": (
            ("NodeResourcesBalancedAllocation", 1),
            ("ImageLocality", 1),
            ("InterPodAffinity", 1),
            ("NodeResourcesFit", 1),
            ("NodeAffinity", 1),
            ("PodTopologySpread", 2),
            ("TaintToleration", 1),
        ),
        "reserve": (("VolumeBinding", None),),
        "preBind": (("VolumeBinding", None),),
        "bind": (("DefaultBinder", None),),
    }
)

GAINED_POINTS: Final = (
    ("preFilter", "filter", "NodeVolumeLimits"),
    ("preScore", "score", "NodeResourcesFit"),
    ("preScore", "score", "NodeResourcesBalancedAllocation"),
    ("preEnqueue", "postFilter", "DefaultPreemption"),
)
"""(point, older point, plugin): a plugin enabled at the older point now needs the new one, too."""
