"""Nodes that can be removed ("can go") while every pod keeps or finds a node.

Nodes are tried in order of use, the least used first. A group of nodes is cordoned and its pods
are rescheduled; if every pod is placed and none is evicted for it, the group goes, otherwise all
of that is undone. Groups double after a success and halve after a failure. Finally a fresh copy of
the cluster proves the answer: all nodes that can go are cordoned together and all their pods
rescheduled; if that fails, the last nodes stay. So `roadstead drain` of these nodes leaves nothing
pending, apart from budgets. The answer need not be the largest possible set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from roadstead.facts.node import NodeFacts, zone_text
from roadstead.facts.pod import Pod
from roadstead.report.grow_result import BudgetReport, LeavingNode, ShrinkResult
from roadstead.run import Progress, RunInputs, RunPlan
from roadstead.whatif.evictions import Allowances, EvictionRules, cordoned, is_emptied, move
from roadstead.whatif.node_shapes import shape_of
from roadstead.whatif.sandbox import OnProgress, Sandbox, ignore

TRIALS_MAX: Final = 2_000
_RULES: Final = EvictionRules(with_bare=True, with_local_storage=True)
"""All pods must move (`why_not_evicted` is None) except those that end with their node."""


def shrink(
    inputs: RunInputs,
    plan: RunPlan,
    candidates: Sequence[NodeFacts],
    source: str = "",
    progress: OnProgress = ignore,
    runs_max: int = TRIALS_MAX,
) -> ShrinkResult:
    """Place the given pods, then search the nodes among the candidates that can go.

    runs_max: maximum number of trials.
    """
    progress(Progress("placing the given pods", total=len(inputs.pending)))
    search = _EmptyingSearch(Sandbox(inputs, plan, progress), progress, runs_max)
    names = search.by_use([each.name for each in candidates])
    search.run(names)
    progress(Progress(f"proving that {len(search.gone):,} nodes can go"))
    gone, proof = _proven(inputs, plan, search.gone)
    search.trials += proof.runs
    shapes: dict[object, str] = {}
    known = {each.name: each for each in inputs.nodes}
    return ShrinkResult(
        source=source,
        nodes=tuple(
            LeavingNode(
                name,
                zone_text(known[name].zone),
                shape_of(known[name], shapes),
                proof.moved[name],
                proof.daemons[name],
            )
            for name in gone
        ),
        candidates=len(names),
        node_count=len(inputs.nodes),
        moved=len(proof.pods),
        bare=sum(facts.owner is None for _, facts in proof.pods),
        pending_before=proof.pending_before,
        budgets=_budgets(plan, proof.pods),
        runs=search.trials,
        is_complete=search.is_complete,
    )


class _EmptyingSearch:
    """Empty nodes of a sandbox, as many as possible.

    gone: nodes that were emptied, in order. trials: so far. is_complete: every candidate was tried.
    """

    def __init__(self, sandbox: Sandbox, progress: OnProgress, trials_max: int) -> None:
        self._sandbox, self._progress, self._trials_max = sandbox, progress, trials_max
        self.gone: list[str] = []
        self.trials = 0
        self.is_complete = True

    def by_use(self, names: Sequence[str]) -> list[str]:
        """Sort nodes by `_use_of`, then by name."""
        sandbox = self._sandbox
        use = {name: _use_of(sandbox.nodes[name], sandbox.pods_on(name)) for name in names}
        return sorted(names, key=lambda name: (use[name], name))

    def run(self, names: Sequence[str]) -> None:
        """Try all nodes, in groups."""
        index, size = 0, 1
        while index < len(names):
            if self.trials >= self._trials_max:
                self.is_complete = False
                return
            group = names[index : index + size]
            self.trials += 1
            if self._try_to_empty(group):
                self.gone += group
                index, size = index + len(group), 2 * size
            elif len(group) == 1:
                index += 1
            else:
                size = max(1, len(group) // 2)
            self._progress(
                Progress("emptying nodes", placed=index, total=len(names), unit="nodes tried")
            )

    def _try_to_empty(self, group: Sequence[str]) -> bool:
        """Empty some nodes if every pod finds another one, else undo it; return whether it did."""
        sandbox = self._sandbox
        pods = [
            (pod, name)
            for name in group
            for pod in sandbox.pods_on(name)
            if _RULES.why_not_evicted(pod) is None
        ]
        nodes = [sandbox.nodes[name] for name in group]
        sandbox.change_nodes([cordoned(each) for each in nodes])
        # `copies`: UID → UID of the copy that was scheduled in its place.
        scheduled, copies = move(sandbox, [pod for pod, _ in pods])
        if is_emptied(scheduled, {*self.gone, *group}):
            return True
        sandbox.remove(copies.values())
        sandbox.restore_preempted(
            each for each in scheduled.preempted if each.uid not in copies.values()
        )
        sandbox.change_nodes(nodes)
        sandbox.restore_removed(pods)
        return False


@dataclass(frozen=True, slots=True)
class _Proof:
    """Nodes emptied together on a fresh copy of the cluster.

    pods: those that were moved. moved: by node, the number of pods that were moved. daemons: by
    node, the number of pods that end with it, such as those of DaemonSets. is_complete: whether all
    were placed elsewhere, evicting no other pod.
    """

    pods: tuple[Pod, ...]
    moved: Counter[str]
    daemons: Counter[str]
    is_complete: bool
    pending_before: int
    runs: int


def _proven(inputs: RunInputs, plan: RunPlan, gone: Sequence[str]) -> tuple[list[str], _Proof]:
    """Return the nodes that can go together: all, or the first ones, as many as are proven."""
    count, runs = len(gone), 0
    while True:
        runs += 1
        proof = _prove(inputs, plan, gone[:count], runs)
        if proof.is_complete or not count:
            return list(gone[:count]), proof
        # One by one at first, then faster: a failure is rare, and usually concerns few nodes.
        count = max(0, count - (1 << (runs - 1)))


def _prove(inputs: RunInputs, plan: RunPlan, gone: Sequence[str], runs: int) -> _Proof:
    sandbox = Sandbox(inputs, plan)
    sandbox.change_nodes([cordoned(sandbox.nodes[name]) for name in gone])
    pods, moved, daemons = list[Pod](), Counter[str](), Counter[str]()
    for name in gone:
        bound = sandbox.pods_on(name)
        moving = [pod for pod in bound if _RULES.why_not_evicted(pod) is None]
        pods += moving
        moved[name], daemons[name] = len(moving), len(bound) - len(moving)
    scheduled, _ = move(sandbox, pods)
    pending = len(sandbox.result_of_inputs.pending)
    is_complete = is_emptied(scheduled, {*gone})
    return _Proof(tuple(pods), moved, daemons, is_complete, pending, runs)


def _use_of(node: NodeFacts, pods: Sequence[Pod]) -> float:
    """Return the largest share of a resource of the node, as requested by pods that must move."""
    requested: Counter[str] = Counter()
    for pod in pods:
        if _RULES.why_not_evicted(pod) is None:
            requested.update(dict(pod[1].requests))
    shares = (requested[resource] / amount for resource, amount in node.allocatable if amount)
    return max(shares, default=0.0)


def _budgets(plan: RunPlan, pods: Sequence[Pod]) -> tuple[BudgetReport, ...]:
    """Return what each budget would answer if all evictions were requested together."""
    allowances = Allowances(plan.cluster.budgets)
    allowed = dict(allowances.remaining)
    count, refused = Counter[str](), Counter[str]()
    for _, facts in pods:
        names = allowances.selecting(facts)
        count.update(names)
        if allowances.refusal(facts):
            refused.update(names)
        else:
            allowances.count_eviction(facts)
    return tuple(
        BudgetReport(name, allowed[name], count[name], refused[name]) for name in sorted(count)
    )
