"""Policy v1 as written: upstream's kube-scheduler/config/v1/legacy_types.go of 1.16 to 1.22.

Extenders are read in `extenders.py`, because upstream matched their fields in any case.
"""

from __future__ import annotations

from typing import Any, ClassVar

from roadstead.config.schema_args import WireResourceSpec, WireShapePoint
from roadstead.config.wire import Bool, Int32, Int64, Str, Wire

Names = frozenset[str]


class ServiceAffinityArgument(Wire):
    """Node labels that the pods of a service agree on."""

    labels: list[Str] | None = None


class LabelsPresenceArgument(Wire):
    """Node labels that must be present, or absent."""

    labels: list[Str] | None = None
    presence: Bool = False


class PredicateArgument(Wire):
    """Exactly one of these arguments of a predicate."""

    service_affinity: ServiceAffinityArgument | None = None
    labels_presence: LabelsPresenceArgument | None = None


class PredicatePolicy(Wire):
    """A predicate by name, or one made from an argument, under any name."""

    name: Str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinityArgument(Wire):
    """The node label over whose values a service is spread."""

    label: Str = ""


class LabelPreferenceArgument(Wire):
    """A node label whose presence, or absence, is preferred."""

    label: Str = ""
    presence: Bool = False


class CapacityRatioArgument(Wire):
    """A function of a node's utilization."""

    always: ClassVar[Names] = frozenset({"shape"})
    shape: list[WireShapePoint] | None = None
    resources: list[WireResourceSpec] | None = None


class PriorityArgument(Wire):
    """Exactly one of these arguments of a priority."""

    service_anti_affinity: ServiceAntiAffinityArgument | None = None
    label_preference: LabelPreferenceArgument | None = None
    requested_to_capacity_ratio_arguments: CapacityRatioArgument | None = None


class PriorityPolicy(Wire):
    """A priority by name, or one made from an argument, under any name."""

    name: Str = ""
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class Policy(Wire):
    """The whole document. None for predicates or priorities means the default ones, [] none."""

    api_version: Str = ""
    kind: Str = ""
    predicates: list[PredicatePolicy] | None = None
    priorities: list[PriorityPolicy] | None = None
    extenders: list[Any] | None = None
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: Bool = False
