"""Pods of a node that must move or end with it, and the evictions that budgets allow.

Upstream: kubectl pkg/drain/filters.go, and the Eviction API in
pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Pod, PodFacts
from roadstead.report.drain_result import Outcome
from roadstead.whatif.changes import UNSCHEDULABLE
from roadstead.whatif.sandbox import Sandbox, Scheduled

# Reasons why a pod is not evicted, or what an eviction requires. MIRROR: the API object of a static
# pod, which the kubelet creates.
DAEMON: Final = "belongs to a DaemonSet (kubectl drain: --ignore-daemonsets)"
MIRROR: Final = "is a static pod of the node"
TERMINATING: Final = "is being deleted"
BARE: Final = "declares no controller (kubectl drain: --force)"
RECREATE: Final = "has no controller: create it again"
LOCAL: Final = "has local storage, an emptyDir (kubectl drain: --delete-emptydir-data)"
TWO_BUDGETS: Final = (
    "has more than one PodDisruptionBudget, which the eviction subresource does not support"
)


@dataclass(frozen=True, slots=True)
class EvictionRules:
    """Permitted evictions, as flags of `kubectl drain`.

    with_bare: pods without a controller, as --force. with_local_storage: pods with an emptyDir, as
    --delete-emptydir-data. local_storage: UIDs of pods that have one.
    """

    with_bare: bool = False
    with_local_storage: bool = False
    local_storage: Collection[str] = frozenset()

    def why_not_evicted(self, pod: Pod) -> tuple[Outcome, str] | None:
        """Return what becomes of a pod that is not evicted, with the reason; None to evict it.

        "leaves": it ends by itself or with its node. "refused": `kubectl drain` does not evict it.
        """
        identity, facts = pod
        owner = "" if facts.owner is None else facts.owner.kind
        if facts.is_terminating:
            return "leaves", TERMINATING
        if owner == "DaemonSet":
            return "leaves", DAEMON
        if owner == "Node":
            return "leaves", MIRROR
        if identity.uid in self.local_storage and not self.with_local_storage:
            return "refused", LOCAL
        if not owner and not self.with_bare:
            return "refused", BARE
        return None


class Allowances:
    """The evictions that budgets allow: a state that changes with each eviction.

    remaining: budget → evictions that it still allows.
    """

    def __init__(self, budgets: Iterable[DisruptionBudget]) -> None:
        # An empty selector selects all pods of its namespace, for the Eviction API though not for
        # preemption.
        self._budgets = tuple(each for each in budgets if each.selector is not None)
        self.remaining = Counter({_key(each): each.disruptions_allowed for each in self._budgets})
        # By id of the facts, which many pods share; the facts are kept so that no id is used again.
        self._names_by_facts: dict[int, tuple[PodFacts, tuple[str, ...]]] = {}

    def selecting(self, facts: PodFacts) -> tuple[str, ...]:
        """Return the budgets (`namespace/name`) that select a pod."""
        known = self._names_by_facts.get(id(facts))
        if known is None:
            known = self._names_by_facts[id(facts)] = (facts, tuple(self._selecting(facts)))
        return known[1]

    def _selecting(self, facts: PodFacts) -> Iterable[str]:
        labels = dict(facts.labels)
        for each in self._budgets:
            assert each.selector is not None, "such a budget selects no pod"
            if each.namespace == facts.namespace and each.selector.matches(labels):
                yield _key(each)

    def refusal(self, facts: PodFacts) -> str:
        """Return why a pod may not be evicted now; "" if it may."""
        names = self.selecting(facts)
        if len(names) > 1:
            return f"{TWO_BUDGETS}: {', '.join(names)}"
        if names and self.remaining[names[0]] <= 0:
            return f"its eviction would violate the disruption budget {names[0]}"
        return ""

    def count_eviction(self, facts: PodFacts) -> None:
        """Count an eviction that is not refused."""
        for name in self.selecting(facts):
            assert self.remaining[name] > 0, f"{name} refuses the eviction"
            self.remaining[name] -= 1

    def count_replacement(self, facts: PodFacts) -> None:
        """Count a replacement that runs: its budget allows one more eviction again."""
        for name in self.selecting(facts):
            self.remaining[name] += 1

    def discount_replacement(self, facts: PodFacts) -> None:
        """Undo `count_replacement`, for a replacement that ended."""
        for name in self.selecting(facts):
            self.remaining[name] -= 1


def _key(budget: DisruptionBudget) -> str:
    return f"{budget.namespace}/{budget.name}"


def cordoned(node: NodeFacts) -> NodeFacts:
    """Return a node as the node controller has it after a cordon: marked, and tainted."""
    taints = node.taints if UNSCHEDULABLE in node.taints else (*node.taints, UNSCHEDULABLE)
    return replace(node, unschedulable=True, taints=taints)


def is_emptied(scheduled: Scheduled, nodes: Collection[str]) -> bool:
    """Whether every pod was placed, evicting no other, and on none of these cordoned nodes.

    A pod that tolerates their cordon may be placed on one of them again.
    """
    return scheduled.is_complete and not any(name in nodes for name in scheduled.placed.values())


def move(sandbox: Sandbox, pods: Sequence[Pod]) -> tuple[Scheduled, dict[str, str]]:
    """Remove pods and schedule a replacement for each; return also UID → UID of its replacement."""
    sandbox.remove(identity.uid for identity, _ in pods)
    copies = [sandbox.copy_of(pod) for pod in pods]
    scheduled = sandbox.schedule(copies)
    pairs = zip(pods, copies, strict=True)
    return scheduled, {pod[0].uid: copy[0].uid for pod, copy in pairs}
