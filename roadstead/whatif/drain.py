"""Draining of nodes: new nodes of the pods, pending pods, and forbidden evictions.

All nodes are cordoned first. Then pods are evicted in rounds: in each round every pod whose budget
still allows it, in the order of the nodes. The replacements of a round are scheduled together. A
replacement that is placed counts as ready: its budget allows one more eviction in the next round.

A `Pod` is a pair (identity, facts). The budgets are counted by `Allowances`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Pod
from roadstead.report.drain_result import DrainBudget, DrainedPod, DrainResult
from roadstead.report.pods import workload_of
from roadstead.report.result import PreemptedPod
from roadstead.run import Progress, RunInputs, RunPlan
from roadstead.whatif.evictions import RECREATE, Allowances, EvictionRules, cordoned, move
from roadstead.whatif.sandbox import OnProgress, Sandbox, ignore

PREEMPTED: Final = "was preempted by another replacement"


def drain(
    inputs: RunInputs,
    plan: RunPlan,
    nodes: Sequence[NodeFacts],
    rules: EvictionRules,
    source: str = "",
    progress: OnProgress = ignore,
) -> DrainResult:
    """Place the given pods, then drain nodes of the inputs. Raises RoadsteadError."""
    progress(Progress("placing the given pods", total=len(inputs.pending)))
    sandbox = Sandbox(inputs, plan, progress)
    drain_run = _Drain(sandbox, Allowances(plan.cluster.budgets), rules)
    drain_run.begin([each.name for each in nodes])
    while drain_run.evict_round():
        progress(Progress(f"evicting: round {drain_run.rounds}"))
    return drain_run.result(source)


class _Drain:
    """One drain. rounds: number of rounds in which pods were evicted.

    _allowed: budget → evictions that it allows at the start. _nodes: names of the drained nodes, in
    order. _pods: (pod, node) of all pods on them. _waiting: pods to evict. _rows: UID → result.
    _moved: UID of a replacement → the pod that it replaces. _rounds_of: budget → rounds in which it
    allowed evictions.
    """

    def __init__(self, sandbox: Sandbox, allowances: Allowances, rules: EvictionRules) -> None:
        self._sandbox, self._allowances, self._rules = sandbox, allowances, rules
        self._allowed = dict(allowances.remaining)
        self._nodes: dict[str, None] = {}
        self._pods: list[tuple[Pod, str]] = []
        self._waiting: list[Pod] = []
        self._rows: dict[str, DrainedPod] = {}
        self._moved: dict[str, Pod] = {}
        self._preempted: list[PreemptedPod] = []
        self._rounds_of: dict[str, set[int]] = {}
        self.rounds = 0

    def begin(self, names: Sequence[str]) -> None:
        """Cordon the nodes, and record the pods that are not evicted."""
        self._nodes = dict.fromkeys(names)
        self._sandbox.change_nodes([cordoned(self._sandbox.nodes[name]) for name in names])
        self._pods = [(pod, name) for name in names for pod in self._sandbox.pods_on(name)]
        for pod, name in self._pods:
            exempt = self._rules.why_not_evicted(pod)
            if exempt is None:
                self._waiting.append(pod)
            else:
                outcome, reason = exempt
                self._record(pod, DrainedPod(*_names_of(pod), name, outcome, reason=reason))

    def evict_round(self) -> bool:
        """Evict every pod whose budget allows it; return whether there was one."""
        evicted: list[Pod] = []
        blocked: list[Pod] = []
        for pod in self._waiting:
            if self._allowances.refusal(pod[1]):
                blocked.append(pod)
            else:
                self._allowances.count_eviction(pod[1])
                evicted.append(pod)
        self._waiting = blocked
        if not evicted:
            return False
        self.rounds += 1
        node_of = {pod[0].uid: self._sandbox.node_of(pod[0].uid) for pod in evicted}
        # Removes the pods and schedules a copy of each; `copy_of` has the UIDs of the copies.
        scheduled, copy_of = move(self._sandbox, evicted)
        self._preempted += scheduled.preempted
        for each in scheduled.preempted:
            if each.uid in self._moved:
                self._record_preempted(self._moved.pop(each.uid))
        message_of = {each.uid: each.message for each in scheduled.pending}
        for pod in evicted:
            self._record_replacement(
                pod, node_of[pod[0].uid], copy_of[pod[0].uid], scheduled.placed, message_of
            )
        return True

    def _record_replacement(
        self,
        pod: Pod,
        node: str,
        copy_uid: str,
        placed: Mapping[str, str],
        message_of: Mapping[str, str],
    ) -> None:
        """Record the replacement of an evicted pod."""
        is_bare = pod[1].owner is None
        for name in self._allowances.selecting(pod[1]):
            self._rounds_of.setdefault(name, set()).add(self.rounds)
        if copy_uid not in placed or placed[copy_uid] in self._nodes:
            reason = message_of.get(copy_uid, PREEMPTED)
            if copy_uid in placed:
                reason = f"tolerates the cordon: it is placed on {placed[copy_uid]} again"
            row = DrainedPod(*_names_of(pod), node, "pending", "", self.rounds, reason)
        else:
            note = RECREATE if is_bare else ""
            row = DrainedPod(*_names_of(pod), node, "moved", placed[copy_uid], self.rounds, note)
            self._moved[copy_uid] = pod
            # Nothing creates a bare pod again, so its budget allows no further eviction.
            if not is_bare:
                self._allowances.count_replacement(pod[1])
        self._record(pod, row)

    def _record_preempted(self, pod: Pod) -> None:
        """Record that a replacement, placed in an earlier round, was preempted by a later one."""
        row = self._rows[pod[0].uid]
        self._record(pod, replace(row, outcome="pending", to="", reason=PREEMPTED))
        if pod[1].owner is not None:
            self._allowances.discount_replacement(pod[1])

    def _record(self, pod: Pod, row: DrainedPod) -> None:
        self._rows[pod[0].uid] = row

    def result(self, source: str) -> DrainResult:
        """Return the answer once no more pod can be evicted."""
        for pod in self._waiting:
            node = self._sandbox.node_of(pod[0].uid)
            reason = self._allowances.refusal(pod[1])
            self._record(pod, DrainedPod(*_names_of(pod), node, "blocked", reason=reason))
        return DrainResult(
            source=source,
            nodes=tuple(self._nodes),
            pods=tuple(self._rows[pod[0].uid] for pod, _ in self._pods),
            budgets=self._budgets(),
            preempted=tuple(self._preempted),
            pending_before=len(self._sandbox.result_of_inputs.pending),
            rounds=self.rounds,
        )

    def _budgets(self) -> tuple[DrainBudget, ...]:
        pods: Counter[str] = Counter()
        evicted: Counter[str] = Counter()
        for pod, _ in self._pods:
            row = self._rows[pod[0].uid]
            if row.outcome in ("moved", "pending", "blocked"):
                names = self._allowances.selecting(pod[1])
                pods.update(names)
                evicted.update(names if row.round else ())
        return tuple(
            DrainBudget(
                name,
                allowed=self._allowed[name],
                pods=pods[name],
                evicted=evicted[name],
                rounds=len(self._rounds_of.get(name, ())),
                blocked=pods[name] - evicted[name],
            )
            for name in sorted(pods)
        )


def _names_of(pod: Pod) -> tuple[str, str]:
    """Return the names of a pod and of its workload, as in `DrainedPod`."""
    return pod[0].key, workload_of(pod[1])
