"""Check the arguments of in-tree plugins.

Upstream: pkg/scheduler/apis/config/validation/validation_pluginargs.go; node selectors as
component-helpers/scheduling/corev1/nodeaffinity and apimachinery/pkg/labels parse them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from roadstead.config.coscheduling import V1CoschedulingArgs, validate_coscheduling
from roadstead.config.errors import (
    Problem,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from roadstead.config.legacy.plugins import V1NodeLabelArgs, validate_node_label
from roadstead.config.schema_args import (
    V1DefaultPreemptionArgs,
    V1DynamicResourcesArgs,
    V1InterPodAffinityArgs,
    V1NodeAffinityArgs,
    V1NodeResourcesBalancedAllocationArgs,
    V1NodeSelectorTerm,
    V1PodTopologySpreadArgs,
    V1SelectorRequirement,
    V1TopologySpreadConstraint,
    V1VolumeBindingArgs,
)
from roadstead.config.validation_fit import qualified_name_problems
from roadstead.protocol.names import label_value_errors, qualified_name_errors

_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_DEFAULTING: Final = ("System", "List")
_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")
# Python refuses to convert texts of more than 4,300 digits.
_INT64: Final = re.compile(r"[-+]?[0-9]{1,4000}")


def validate_args(path: str, args: object) -> Iterator[Problem]:
    """Yield the problems of an in-tree plugin's arguments; none for any other plugin."""
    check = _CHECKS.get(type(args))
    if check is not None:
        yield from check(path, args)


def _preemption(path: str, args: V1DefaultPreemptionArgs) -> Iterator[Problem]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    assert percentage is not None, "defaults come before validation"
    assert absolute is not None
    percentage_path = f"{path}.minCandidateNodesPercentage"
    absolute_path = f"{path}.minCandidateNodesAbsolute"
    if not 0 <= percentage <= 100:
        yield invalid(percentage_path, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        rule = "cannot be zero at the same time as minCandidateNodes"
        yield invalid(percentage_path, percentage, f"{rule}Absolute")
        yield invalid(absolute_path, absolute, f"{rule}Percentage")


def _inter_pod_affinity(path: str, args: V1InterPodAffinityArgs) -> Iterator[Problem]:
    weight = args.hard_pod_affinity_weight
    assert weight is not None, "defaults come before validation"
    if not 0 <= weight <= 100:
        yield invalid(f"{path}.hardPodAffinityWeight", weight, "not in valid range [0, 100]")


def _dynamic_resources(path: str, args: V1DynamicResourcesArgs) -> Iterator[Problem]:
    assert args.filter_timeout is not None, "defaults come before validation"
    if args.filter_timeout.ns < 0:
        shown = str(args.filter_timeout)
        yield invalid(f"{path}.filterTimeout", shown, "must be zero or positive")


def _volume_binding(path: str, args: V1VolumeBindingArgs) -> Iterator[Problem]:
    assert args.bind_timeout_seconds is not None, "defaults come before validation"
    if args.bind_timeout_seconds < 0:
        rule = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, rule)
    if args.shape is not None:
        # As Go prints the internal type, whose fields have no JSON names.
        shown = [{"Utilization": p.utilization, "Score": p.score} for p in args.shape]
        rule = (
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        )
        yield invalid(f"{path}.shape", shown, rule)


def _balanced(path: str, args: V1NodeResourcesBalancedAllocationArgs) -> Iterator[Problem]:
    earlier_names: set[str] = set()
    for i, resource in enumerate(args.resources or ()):
        where = f"{path}.resources[{i}]"
        if resource.name in earlier_names:
            yield duplicate(f"{where}.name", resource.name)
        earlier_names.add(resource.name)
        if resource.weight != 1:
            yield invalid(f"{where}.weight", resource.weight, "must be 1")


def _spread(path: str, args: V1PodTopologySpreadArgs) -> Iterator[Problem]:
    constraints = args.default_constraints or []
    if args.defaulting_type not in _DEFAULTING:
        yield unsupported(f"{path}.defaultingType", args.defaulting_type, _DEFAULTING)
    elif args.defaulting_type == "System" and constraints:
        rule = "when .defaultConstraints are not empty"
        yield invalid(f"{path}.defaultingType", args.defaulting_type, rule)
    earlier_keys: set[tuple[str, str]] = set()
    for i, constraint in enumerate(constraints):
        where = f"{path}.defaultConstraints[{i}]"
        yield from _constraint(where, constraint)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in earlier_keys:
            yield duplicate(where, f"{{{key[0]}, {key[1]}}}")
        earlier_keys.add(key)


def _constraint(path: str, constraint: V1TopologySpreadConstraint) -> Iterator[Problem]:
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from qualified_name_problems(f"{path}.topologyKey", constraint.topology_key)
    if not constraint.when_unsatisfiable:
        yield required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in _UNSATISFIABLE:
        where = f"{path}.whenUnsatisfiable"
        yield unsupported(where, constraint.when_unsatisfiable, _UNSATISFIABLE)
    if constraint.label_selector is not None:
        rule = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden(f"{path}.labelSelector", rule)


def _node_affinity(path: str, args: V1NodeAffinityArgs) -> Iterator[Problem]:
    affinity = args.added_affinity
    if affinity is None:
        return
    affinity_path = f"{path}.addedAffinity"
    if affinity.required_during_scheduling_ignored_during_execution is not None:
        terms = affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
        where = f"{affinity_path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for i, term in enumerate(terms or ()):
            yield from _term(f"{where}[{i}]", term)
    where = f"{affinity_path}.preferredDuringSchedulingIgnoredDuringExecution"
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    for i, weighted in enumerate(preferred or ()):
        # Upstream ignores a preference of weight 0, whatever its term.
        if weighted.weight != 0:
            yield from _term(f"{where}[{i}]", weighted.preference)


def _term(path: str, term: V1NodeSelectorTerm) -> Iterator[Problem]:
    for i, requirement in enumerate(term.match_expressions or ()):
        yield from _label_requirement(f"{path}.matchExpressions[{i}]", requirement)
    for i, requirement in enumerate(term.match_fields or ()):
        yield from _field_requirement(f"{path}.matchFields[{i}]", requirement)


def _label_requirement(path: str, requirement: V1SelectorRequirement) -> Iterator[Problem]:
    operator = requirement.operator
    if operator not in _LABEL_OPERATORS:
        yield unsupported(f"{path}.operator", operator, _LABEL_OPERATORS)
        return
    errors = qualified_name_errors(requirement.key)
    if errors:
        yield invalid(f"{path}.key", requirement.key, "; ".join(errors))
    values = requirement.values or []
    rule = _count_rule(operator, len(values))
    if rule:
        yield invalid(f"{path}.values", requirement.values, rule)
    for i, value in enumerate(values if operator in ("Gt", "Lt") else ()):
        if not _is_int64(value):
            rule = "for 'Gt', 'Lt' operators, the value must be an integer"
            yield invalid(f"{path}.values[{i}]", value, rule)
    for i, value in enumerate(values):
        errors = label_value_errors(value)
        if errors:
            yield invalid(f"{path}.values[{i}][{requirement.key}]", value, "; ".join(errors))


def _count_rule(operator: str, count: int) -> str:
    if operator in ("In", "NotIn"):
        return "" if count else "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("Gt", "Lt"):
        return "" if count == 1 else "for 'Gt', 'Lt' operators, exactly one value is required"
    return "values set must be empty for exists and does not exist" if count else ""


def _is_int64(text: str) -> bool:
    return bool(_INT64.fullmatch(text)) and -(2**63) <= int(text) < 2**63


def _field_requirement(path: str, requirement: V1SelectorRequirement) -> Iterator[Problem]:
    if requirement.operator not in _FIELD_OPERATORS:
        yield unsupported(f"{path}.operator", requirement.operator, _FIELD_OPERATORS)
    elif len(requirement.values or ()) != 1:
        yield invalid(f"{path}.values", requirement.values, "must have one element")


# Model of arguments → function that yields their problems.
_CHECKS: Final[dict[type, Callable[..., Iterator[Problem]]]] = {
    V1DefaultPreemptionArgs: _preemption,
    V1InterPodAffinityArgs: _inter_pod_affinity,
    V1DynamicResourcesArgs: _dynamic_resources,
    V1VolumeBindingArgs: _volume_binding,
    V1NodeResourcesBalancedAllocationArgs: _balanced,
    V1PodTopologySpreadArgs: _spread,
    V1NodeAffinityArgs: _node_affinity,
    V1NodeLabelArgs: validate_node_label,
    V1CoschedulingArgs: validate_coscheduling,
}
