"""Translation of Policy v1 to KubeSchedulerConfiguration v1.

The translation is that of kube-scheduler 1.16 to 1.22: SelectorSpreadPriority is the plugin
SelectorSpread, which v1 has no more, and EvenPodsSpread has no default constraints. A Policy lists
predicates (filters) and priorities (scores); `registry` has their plugins, and the texts for those
that are dropped. STRATEGIES: priorities that are a scoring strategy of NodeResourcesFit.
Upstream: pkg/scheduler/factory.go (createFromPolicy), framework/plugins/legacy_registry.go,
apis/config/validation (ValidatePolicy).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from roadstead.config.errors import Problem, invalid
from roadstead.config.go_struct import API_VERSION
from roadstead.config.legacy.arguments import CustomArguments
from roadstead.config.legacy.extenders import v1_extenders
from roadstead.config.legacy.notes import Notes
from roadstead.config.legacy.plugin_sets import PluginSets
from roadstead.config.legacy.policy_schema import Policy, PredicatePolicy, PriorityPolicy
from roadstead.config.legacy.registry import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    DROPPED_PREDICATES,
    DROPPED_PRIORITIES,
    MANDATORY_PREDICATES,
    PREDICATES,
    PRIORITIES,
    STRATEGIES,
    known_predicate,
    known_priority,
)
from roadstead.config.model import DEFAULT_SCHEDULER_NAME

_MAX_WEIGHT: Final = 2**31 - 1
_STRATEGY: Final = "strategy of NodeResourcesFit"


def translate_policy(
    policy: Policy,
    notes: Notes,
    problems: list[Problem],
    default_priorities: Mapping[str, int] = DEFAULT_PRIORITIES,
) -> dict[str, Any]:
    """Translate a Policy to a v1 document; add its errors to `problems`."""
    return _Translation(policy, notes, problems, default_priorities).document()


class _Translation:
    """Translate one Policy; collect notes for the user and problems.

    custom: plugin arguments from those of the Policy. sets: plugins enabled so far, by point.
    """

    def __init__(
        self,
        policy: Policy,
        notes: Notes,
        problems: list[Problem],
        default_priorities: Mapping[str, int],
    ) -> None:
        self.policy, self.notes, self.problems = policy, notes, problems
        self.default_priorities = default_priorities
        self.custom = CustomArguments()
        self.sets = PluginSets()

    def document(self) -> dict[str, Any]:
        """Translate the Policy to a v1 document."""
        predicates, priorities = self._predicates(), self._priorities()
        self._enable(predicates, priorities)
        profile = {
            "schedulerName": DEFAULT_SCHEDULER_NAME,
            "plugins": self.sets.document(),
            "pluginConfig": self._plugin_config(priorities),
        }
        if self.policy.always_check_all_predicates:
            text = "dropped: decisions were the same, only more reasons were given for each node"
            self.notes.add("alwaysCheckAllPredicates", text)
        extenders = v1_extenders(self.policy.extenders or (), self.notes, self.problems)
        return {
            "apiVersion": API_VERSION,
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile],
            **({"extenders": extenders} if extenders else {}),
        }

    def _predicates(self) -> set[str]:
        """Return the predicates to run, by upstream's names."""
        listed = self.policy.predicates
        if listed is None:
            text = f"not given: the default ones: {', '.join(DEFAULT_PREDICATES)}"
            self.notes.add("predicates", text)
            names = set(DEFAULT_PREDICATES)
        else:
            names = {
                name
                for i, each in enumerate(listed)
                if (name := self._translate_predicate(each, f"predicates[{i}]"))
            }
        for name in MANDATORY_PREDICATES:
            if name not in names:
                self.notes.add("predicates", f"{name} is mandatory: added → {_uses(name)}")
        return names | set(MANDATORY_PREDICATES)

    def _translate_predicate(self, predicate: PredicatePolicy, path: str) -> str:
        """Return upstream's name of a predicate; "" if it has no plugin or is refused."""
        argument = predicate.argument
        if argument is not None:
            name = self.custom.add_predicate(argument, path, self.problems)
            if name:
                self.notes.add(path, f'"{predicate.name}" → {_uses(name)} with its argument')
            return name
        upstream_name = known_predicate(predicate.name)
        if upstream_name is None:
            reason = "is not a predicate that kube-scheduler has had"
            self.problems.append(invalid(f"{path}.name", predicate.name, reason))
            return ""
        understood = _understood(predicate.name, upstream_name)
        if upstream_name in DROPPED_PREDICATES:
            self.notes.add(path, f"{understood} {DROPPED_PREDICATES[upstream_name]}")
            return ""
        self.notes.add(path, f"{understood} → {_uses(upstream_name)}")
        return upstream_name

    def _priorities(self) -> dict[str, int]:
        """Return priority → weight, by upstream's names."""
        listed = self.policy.priorities
        if listed is None:
            default = self.default_priorities
            shown = ", ".join(f"{name} {weight}" for name, weight in default.items())
            self.notes.add("priorities", f"not given: the default ones: {shown}")
            return dict(default)
        weights: dict[str, int] = {}
        for i, each in enumerate(listed):
            path = f"priorities[{i}]"
            name = self._translate_priority(each, path)
            if not name:
                continue
            self._check_weight(each, name, weights, path)
            weights[name] = each.weight
        self._check_strategies(weights)
        return weights

    def _translate_priority(self, priority: PriorityPolicy, path: str) -> str:
        """Return upstream's name of a priority; "" if it has no plugin or is refused."""
        if priority.argument is not None:
            name = self.custom.add_priority(priority.argument, path, self.problems)
            if name:
                plugin = _plugin_of(name)
                self.notes.add(path, f'"{priority.name}" → {plugin} at score with its argument')
            return name
        upstream_name = known_priority(priority.name)
        if upstream_name is None:
            reason = "is not a priority that kube-scheduler has had"
            self.problems.append(invalid(f"{path}.name", priority.name, reason))
            return ""
        understood = _understood(priority.name, upstream_name)
        if upstream_name in DROPPED_PRIORITIES:
            self.notes.add(path, f"{understood} {DROPPED_PRIORITIES[upstream_name]}")
            return ""
        missing = self.custom.needed_argument(upstream_name)
        if missing:
            rule = f"needs argument.{missing}"
            self.problems.append(invalid(f"{path}.name", priority.name, rule))
            return ""
        self.notes.add(
            path, f"{understood} → {_plugin_of(upstream_name)} at score, weight {priority.weight}"
        )
        if upstream_name == "BalancedResourceAllocation":
            self.notes.add(path, "the formula is today's: the standard deviation of the fractions")
        return upstream_name

    def _check_weight(
        self, priority: PriorityPolicy, name: str, earlier: Mapping[str, int], path: str
    ) -> None:
        """Check a weight. earlier: priority → weight of the entries before this one."""
        # AVERAGED: priorities that may be listed several times, once for each label.
        where, weight = f"{path}.weight", priority.weight
        if not 0 < weight <= _MAX_WEIGHT:
            rule = "must be a positive number that fits into 32 bits"
            self.problems.append(invalid(where, weight, rule))
        elif name in CustomArguments.AVERAGED and earlier.get(name, weight) != weight:
            rule = "must be the same for all priorities of this argument"
            self.problems.append(invalid(where, weight, rule))
        elif name in earlier and name not in CustomArguments.AVERAGED:
            self.notes.add(path, f"{name} is listed twice: the last weight counts")

    def _check_strategies(self, priorities: Mapping[str, int]) -> None:
        with_strategy = [name for name in STRATEGIES if name in priorities]
        if len(with_strategy) > 1:
            reason = f"name {' and '.join(with_strategy)}: each is the {_STRATEGY}, which has one"
            self.problems.append(Problem("priorities", reason))

    def _enable(self, predicates: set[str], priorities: Mapping[str, int]) -> None:
        self.sets.add("SchedulingGates", "preEnqueue")
        self.sets.add("PrioritySort", "queueSort")
        self.sets.add("DefaultPreemption", "preEnqueue postFilter")
        self.sets.add("DefaultBinder", "bind")
        self.notes.add(
            "kind",
            "PrioritySort, DefaultPreemption and DefaultBinder were neither predicates nor "
            "priorities and are on; so is SchedulingGates, which is newer",
        )
        for name, uses in PREDICATES.items():
            if name in predicates:
                for plugin, points in uses:
                    self.sets.add(plugin, points)
        for name in sorted(priorities):
            plugin, points = PRIORITIES[name]
            self.sets.add(plugin, points, self.custom.weight(name, priorities[name]))

    def _plugin_config(self, priorities: Mapping[str, int]) -> list[dict[str, Any]]:
        enabled = self.sets.names()
        strategy = next((STRATEGIES[name] for name in STRATEGIES if name in priorities), "")
        configs = self.custom.plugin_config(enabled, strategy)
        if "PodTopologySpread" in enabled:
            configs.append(("PodTopologySpread", {"defaultingType": "List"}))
            text = "PodTopologySpread without default constraints, as EvenPodsSpread had none"
            self.notes.add(
                "predicates" if "EvenPodsSpreadPriority" not in priorities else "priorities", text
            )
        configs += self._hard_affinity_config()
        return [{"name": name, "args": args} for name, args in configs]

    def _hard_affinity_config(self) -> Sequence[tuple[str, dict[str, Any]]]:
        where, weight = (
            "hardPodAffinitySymmetricWeight",
            self.policy.hard_pod_affinity_symmetric_weight,
        )
        if not 0 <= weight <= 100:
            self.problems.append(invalid(where, weight, "not in valid range [0-100]"))
        if not weight:
            return ()
        if not self.sets.has("InterPodAffinity", "score"):
            self.notes.add(where, "has no effect without InterPodAffinityPriority")
            return ()
        self.notes.add(where, f"→ hardPodAffinityWeight of InterPodAffinity: {weight}")
        return (("InterPodAffinity", {"hardPodAffinityWeight": weight}),)


def _understood(name: str, upstream_name: str) -> str:
    """Return a name as notes show it, with the known name that it means if they differ."""
    return f'"{name}"' if name == upstream_name else f'"{name}", understood as {upstream_name},'


def _uses(predicate: str) -> str:
    """Return where the plugins of a predicate run: "NodeResourcesFit at filter and preFilter"."""
    return ", ".join(
        f"{plugin} at {' and '.join(points.split())}" for plugin, points in PREDICATES[predicate]
    )


def _plugin_of(priority: str) -> str:
    plugin = PRIORITIES[priority][0]
    strategy = STRATEGIES.get(priority)
    return f"{plugin} with the strategy {strategy}" if strategy else plugin
