"""Predicates and priorities with an argument, collected as arguments of their plugins.

Upstream: legacy_registry.go (ProcessPredicatePolicy, ProcessPriorityPolicy) and
validateCustomPriorities. As in upstream until 1.18, an argument applies whatever the name of its
predicate or priority; later versions ignored it without an error if the name was one of upstream's.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any, ClassVar

from roadstead.config.defaults import set_args_defaults
from roadstead.config.errors import Problem
from roadstead.config.go_struct import GoStruct, to_document
from roadstead.config.legacy.policy_schema import PredicateArgument, PriorityArgument
from roadstead.config.schema_args import V1NodeResourcesFitArgs
from roadstead.config.validation_fit import validate_fit_args

_RATIO = "RequestedToCapacityRatioPriority"
_NODE_LABEL, _SERVICE = "NodeLabelPriority", "ServiceAntiAffinityPriority"


@dataclass(slots=True)
class CustomArguments:
    """Plugin arguments of the predicates and priorities that were read so far."""

    AVERAGED: ClassVar[frozenset[str]] = frozenset({_NODE_LABEL, _SERVICE})
    """Priorities that may be listed several times: their plugin averages over the labels."""

    # By field of ServiceAffinityArgs, or of NodeLabelArgs: its labels.
    service_affinity: dict[str, list[str]] = field(default_factory=dict)
    node_label: dict[str, list[str]] = field(default_factory=dict)
    # Fields of scoringStrategy of NodeResourcesFit.
    ratio: dict[str, Any] | None = None

    def add_predicate(self, argument: PredicateArgument, path: str, problems: list[Problem]) -> str:
        """Collect an argument; return its predicate, or "" if it is not exactly one argument."""
        if not _check_one_argument(argument, f"{path}.argument", problems):
            return ""
        if argument.service_affinity is not None:
            labels = self.service_affinity.setdefault("affinityLabels", [])
            labels += argument.service_affinity.labels or ()
            return "CheckServiceAffinity"
        presence = argument.labels_presence
        assert presence is not None
        key = "presentLabels" if presence.presence else "absentLabels"
        self.node_label.setdefault(key, []).extend(presence.labels or ())
        return "CheckNodeLabelPresence"

    def add_priority(self, argument: PriorityArgument, path: str, problems: list[Problem]) -> str:
        """Collect an argument; return its priority, or "" if it is not exactly one argument."""
        path = f"{path}.argument"
        if not _check_one_argument(argument, path, problems):
            return ""
        if argument.service_anti_affinity is not None:
            labels = self.service_affinity.setdefault("antiAffinityLabelsPreference", [])
            labels.append(argument.service_anti_affinity.label)
            return _SERVICE
        if argument.label_preference is not None:
            preferred = argument.label_preference
            key = "presentLabelsPreference" if preferred.presence else "absentLabelsPreference"
            self.node_label.setdefault(key, []).append(preferred.label)
            return _NODE_LABEL
        where = f"{path}.requestedToCapacityRatioArguments"
        if self.ratio is not None:
            problems.append(Problem(where, "is there twice; a node has one such function"))
            return ""
        ratio = argument.requested_to_capacity_ratio_arguments
        assert ratio is not None
        self.ratio = {
            "resources": to_document(ratio.resources or []),
            "requestedToCapacityRatio": {"shape": to_document(ratio.shape or [])},
        }
        problems += _ratio_problems(self.ratio, where)
        return _RATIO

    @staticmethod
    def needed_argument(priority: str) -> str:
        """Return the argument that a priority requires; empty if it needs none."""
        return {
            _NODE_LABEL: "labelPreference",
            _SERVICE: "serviceAntiAffinity",
            _RATIO: "requestedToCapacityRatioArguments",
        }.get(priority, "")

    def weight(self, priority: str, weight: int) -> int:
        """Return the weight of a priority's plugin. weight: of the priority.

        A plugin that averages over labels replaces one priority per label, with the sum of weights.
        """
        labels_of = {
            _NODE_LABEL: (self.node_label, ("presentLabelsPreference", "absentLabelsPreference")),
            _SERVICE: (self.service_affinity, ("antiAffinityLabelsPreference",)),
        }
        if priority not in labels_of:
            return weight
        args, keys = labels_of[priority]
        return weight * sum(len(args.get(key, ())) for key in keys)

    def plugin_config(
        self, enabled: Container[str], strategy: str
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return (plugin, arguments) of the enabled plugins; strategy: of NodeResourcesFit."""
        configs: list[tuple[str, dict[str, Any]]] = []
        if strategy:
            scoring = {"type": strategy, **(self.ratio or {})}
            configs.append(("NodeResourcesFit", {"scoringStrategy": scoring}))
        args_of = (("NodeLabel", self.node_label), ("ServiceAffinity", self.service_affinity))
        configs += [(name, dict(args)) for name, args in args_of if name in enabled and args]
        return configs


def _check_one_argument(argument: GoStruct, path: str, problems: list[Problem]) -> bool:
    """Return whether exactly one field is set; else add a problem."""
    fields = type(argument).model_fields
    set_fields = [name for name in fields if getattr(argument, name) is not None]
    if len(set_fields) == 1:
        return True
    names = ", ".join(str(field.alias) for field in fields.values())
    problems.append(Problem(path, f"must hold exactly one of {names}, not {len(set_fields)}"))
    return False


def _ratio_problems(ratio: dict[str, Any], path: str) -> list[Problem]:
    scoring = {"type": "RequestedToCapacityRatio", **ratio}
    args = set_args_defaults(V1NodeResourcesFitArgs.model_validate({"scoringStrategy": scoring}))
    assert isinstance(args, V1NodeResourcesFitArgs)
    return [
        Problem(each.field.replace("scoringStrategy", path, 1), each.rule, each.kind, each.value)
        for each in validate_fit_args(args)
    ]
