"""Policy v1 as written: upstream's kube-scheduler/config/v1/legacy_types.go of 1.16 to 1.22.

Extenders are read in `extenders.py`, because upstream matched their fields in any case.
"""

from __future__ import annotations

from typing import Any, ClassVar

from roadstead.config.go_struct import Bool, GoStruct, Int32, Int64, Str
from roadstead.config.schema_args import V1ResourceSpec, V1UtilizationShapePoint

Names = frozenset[str]


class ServiceAffinityArgument(GoStruct):
    """Node labels that the pods of a service agree on."""

    labels: list[Str] | None = None


class LabelsPresenceArgument(GoStruct):
    """Node labels that must be present, or absent."""

    labels: list[Str] | None = None
    presence: Bool = False


class PredicateArgument(GoStruct):
    """Exactly one of these arguments of a predicate."""

    service_affinity: ServiceAffinityArgument | None = None
    labels_presence: LabelsPresenceArgument | None = None


class PredicatePolicy(GoStruct):
    """A predicate by name, or one made from an argument, under any name."""

    name: Str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinityArgument(GoStruct):
    """The node label over whose values a service is spread."""

    label: Str = ""


class LabelPreferenceArgument(GoStruct):
    """A node label whose presence, or absence, is preferred."""

    label: Str = ""
    presence: Bool = False


class CapacityRatioArgument(GoStruct):
    """A function of a node's utilization."""

    never_omitted: ClassVar[Names] = frozenset({"shape"})
    shape: list[V1UtilizationShapePoint] | None = None
    resources: list[V1ResourceSpec] | None = None


class PriorityArgument(GoStruct):
    """Exactly one of these arguments of a priority."""

    service_anti_affinity: ServiceAntiAffinityArgument | None = None
    label_preference: LabelPreferenceArgument | None = None
    requested_to_capacity_ratio_arguments: CapacityRatioArgument | None = None


class PriorityPolicy(GoStruct):
    """A priority by name, or one made from an argument, under any name."""

    name: Str = ""
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class Policy(GoStruct):
    """The whole document. None for predicates or priorities means the default ones, [] none."""

    api_version: Str = ""
    kind: Str = ""
    predicates: list[PredicatePolicy] | None = None
    priorities: list[PriorityPolicy] | None = None
    extenders: list[Any] | None = None
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: Bool = False
