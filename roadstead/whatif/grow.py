"""The fewest, or cheapest, nodes of a catalogue with which every pod is placed.

Each candidate answer is a complete run: the pods are scheduled on the cluster with the candidate's
nodes, as `roadstead schedule` does. What is guaranteed of the answer: its run placed every pod that
any number of the catalogue's nodes can place, evicting none; and for each shape in it, the run with
one node less left a pod without a node. It need not be the least of all combinations, since
scheduling is not monotone: one more node can change where all pods go.

The search:
1. A run without added nodes; then one with every shape at its cap (its maximum count, or the number
   of pods without a node). The caps may be too low, since other pods use the added nodes, too: if
   one more node of each shape would place a pod that is still pending, the caps are doubled. Pods
   that are pending with the last caps are reported, not searched for.
2. For each shape: reduce the counts of all other shapes, the most expensive first, then its own. A
   count is reduced to the smallest that suffices, by doubling steps from an estimate and bisection.
3. From the cheapest of these answers: exchange nodes of one shape for fewer or cheaper ones of
   another (1:1, 2:1, 1:2), and remove single nodes, until neither succeeds.
4. Complete runs prove the answer, and that no single node can be removed. If one does not agree,
   steps 2 and 3 are repeated with complete runs only.
On a large cluster, steps 2 and 3 decide by trials on one copy of it, on which nodes are added and
removed again; a trial ends at the first pod that is refused. If a pod has volumes, whose claims
would stay bound, complete runs are used from the start. With s shapes and a cap of n, step 2 needs
at most s * s * (2 * log2(n) + 2) trials. `runs_max` bounds trials and runs together; when it is
reached, the best answer proven so far is returned. Nodes of a shape are numbered from 1.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Final

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Pod
from roadstead.inputs.node_catalog import CatalogShape
from roadstead.protocol.errors import InputError
from roadstead.report.grow_result import GrownShape, GrowResult
from roadstead.report.result import PendingPod
from roadstead.run import Progress, RunInputs, RunPlan
from roadstead.whatif.sandbox import OnProgress, Sandbox, Scheduled, ignore

RUNS_MAX: Final = 200
"""Default limit of complete runs and trials."""

TRIALS_FROM: Final = 5_000
"""Nodes and pods from which a trial is faster than a complete run."""

Counts = tuple[int, ...]
"""The number of added nodes of each shape, in the catalogue's order."""

_EXCHANGES: Final = ((1, 1), (2, 1), (1, 2))
"""(nodes that leave, nodes that replace them)."""


class _RunsExhaustedError(Exception):
    """The search made as many runs as it may."""


@dataclass(frozen=True, slots=True)
class _CompleteRun:
    """One run. missing: UIDs of pods without a node, evicted pods included."""

    scheduled: Scheduled
    missing: frozenset[str]


def grow(
    inputs: RunInputs,
    plan: RunPlan,
    shapes: Sequence[CatalogShape],
    source: str = "",
    progress: OnProgress = ignore,
    runs_max: int = RUNS_MAX,
) -> GrowResult:
    """Search the nodes to add. Raises InputError if an added node's name is taken."""
    return _GrowthSearch(inputs, plan, tuple(shapes), progress, runs_max).result(source)


class _GrowthSearch:
    """One search. runs: complete runs and trials so far.

    _unplaceable: UIDs of pods that no number of nodes places. _best: cheapest sufficient counts so
    far. _outcomes: complete runs by counts. _trials: None where complete runs decide.
    """

    def __init__(
        self,
        inputs: RunInputs,
        plan: RunPlan,
        shapes: tuple[CatalogShape, ...],
        progress: OnProgress,
        runs_max: int,
    ) -> None:
        self._inputs, self._plan, self._shapes = inputs, plan, shapes
        self._progress, self._runs_max = progress, max(2, runs_max)
        self._outcomes: dict[Counts, _CompleteRun] = {}
        self._trials: _Trials | None = None
        self._unplaceable: frozenset[str] = frozenset()
        self._best: Counts = ()
        names = [each.name for each in inputs.nodes]
        # A cluster is listed by name; a trace keeps its own order, with added nodes last.
        self._is_sorted = names == sorted(names, key=str.encode)
        self.runs = 0

    def result(self, source: str) -> GrowResult:
        """Search, and return the answer."""
        nothing = (0,) * len(self._shapes)
        before = self._run(nothing)
        caps = self._caps(len(before.missing))
        self._check_names(caps)
        self._best, is_minimal = nothing, True
        if before.missing and any(caps):
            caps, is_minimal = self._sufficient_caps(caps)
            self._unplaceable = self._run(caps).missing
            if not before.missing <= self._unplaceable:
                is_minimal = self._search_and_prove(caps, before.missing)
        return self._result_of(self._best, source, len(before.missing), is_minimal=is_minimal)

    def _sufficient_caps(self, caps: Counts) -> tuple[Counts, bool]:
        """Return caps with which all pods are placed that more nodes can place, and True.

        False if the number of runs ended the search: larger caps might place further pods.
        """
        while True:
            sandbox = self._new_sandbox(caps)
            missing = self._run(caps, sandbox).missing
            larger = tuple(
                min(2 * cap, len(self._inputs.pending), each.max_count or sys.maxsize)
                for each, cap in zip(self._shapes, caps, strict=True)
            )
            if not missing or larger == caps or not self._is_helped(sandbox, missing, caps, larger):
                return caps, True
            if self.runs >= self._runs_max:
                return caps, False
            self._check_names(larger)
            caps = larger

    def _is_helped(
        self, sandbox: Sandbox, missing: frozenset[str], caps: Counts, larger: Counts
    ) -> bool:
        """Whether one more node of each shape whose cap grows places a pending pod."""
        pairs = zip(self._shapes, caps, larger, strict=True)
        sandbox.change_nodes([each.node(cap + 1) for each, cap, more in pairs if more > cap])
        pods = [sandbox.copy_of(pod) for pod in self._inputs.pending if pod[0].uid in missing]
        return bool(sandbox.schedule(pods).placed)

    def _search_and_prove(self, caps: Counts, missing: frozenset[str]) -> bool:
        """Search from the caps, which suffice; return whether the search ended by itself."""
        self._best = caps
        wanted = [pod for pod in self._inputs.pending if pod[0].uid in missing]
        try:
            if self._can_use_trials():
                self._trials = _Trials(self._inputs, self._plan, self._unplaceable)
                self._search(caps, wanted)
                by_trials, self._trials, self._best = self._best, None, caps
                # From here on complete runs decide; `_suffices` stores the cheapest answer.
                if self._suffices(by_trials):
                    while any(self._suffices(each) for each in _removals(self._best)):
                        pass
                    return True
            self._search(caps, wanted)
        except _RunsExhaustedError:
            if self._trials is not None:
                # No complete run has proven the answer of the trials: one more is allowed for it.
                by_trials, self._trials = self._best, None
                self._runs_max = self.runs + 1
                is_enough = self._run(by_trials).missing <= self._unplaceable
                self._best = by_trials if is_enough else caps
            return False
        return True

    def _can_use_trials(self) -> bool:
        """Whether trials on one copy of the cluster are possible, and pay."""
        inputs = self._inputs
        size = len(inputs.nodes) + len(inputs.running) + len(inputs.pending)
        return size >= TRIALS_FROM and not any(facts.may_bind_claims for _, facts in inputs.pending)

    # Runs.

    def _count_run(self, counts: Counts) -> None:
        if self.runs >= self._runs_max:
            raise _RunsExhaustedError
        self.runs += 1
        pairs = zip(self._shapes, counts, strict=True)
        shown = ", ".join(f"{count:,} {each.name}" for each, count in pairs if count)
        self._progress(Progress(f"run {self.runs:,}: with {shown or 'no added node'}"))

    def _new_sandbox(self, counts: Counts) -> Sandbox:
        """Schedule all pods with these nodes added."""
        self._count_run(counts)
        return Sandbox(self._inputs_with(counts), self._plan, self._progress)

    def _run(self, counts: Counts, sandbox: Sandbox | None = None) -> _CompleteRun:
        """Return the outcome with these nodes added. sandbox: of that run, if it was made."""
        if (known := self._outcomes.get(counts)) is not None:
            return known
        scheduled = (sandbox or self._new_sandbox(counts)).result_of_inputs
        missing = {each.uid for each in scheduled.pending}
        missing |= {each.uid for each in scheduled.preempted}
        self._outcomes[counts] = _CompleteRun(scheduled, frozenset(missing))
        return self._outcomes[counts]

    def _inputs_with(self, counts: Counts) -> RunInputs:
        nodes: list[NodeFacts] = [*self._inputs.nodes, *self._added(counts)]
        if self._is_sorted:
            nodes.sort(key=lambda each: each.name.encode())
        return replace(self._inputs, nodes=nodes)

    def _added(self, counts: Counts) -> Iterator[NodeFacts]:
        for shape, count in zip(self._shapes, counts, strict=True):
            yield from (shape.node(number) for number in range(1, count + 1))

    def _suffices(self, counts: Counts) -> bool:
        """Whether all pods but `_unplaceable` are placed with these nodes; store the cheapest."""
        trials = self._trials
        if trials is None:
            is_enough = self._run(counts).missing <= self._unplaceable
        elif (known := trials.known.get(counts)) is not None:
            is_enough = known
        else:
            self._count_run(counts)
            is_enough = trials.known[counts] = trials.suffice([*self._added(counts)])
        if is_enough and self._cost(counts) < self._cost(self._best):
            self._best = counts
        return is_enough

    def _cost(self, counts: Counts) -> tuple[float, int, Counts]:
        pairs = zip(self._shapes, counts, strict=True)
        price = sum((each.price_per_hour or 0.0) * count for each, count in pairs)
        return price, sum(counts), counts

    def _caps(self, missing: int) -> Counts:
        return tuple(
            missing if each.max_count is None else min(missing, each.max_count)
            for each in self._shapes
        )

    def _check_names(self, caps: Counts) -> None:
        used_names = {each.name for each in self._inputs.nodes}
        for each in self._added(caps):
            if each.name in used_names:
                problem = "is the name of a node of the cluster: name the shape otherwise"
                raise InputError(problem, source="catalog", obj="Node", value=f'"{each.name}"')

    # The search.

    def _search(self, caps: Counts, missing: Sequence[Pod]) -> None:
        """Reduce the counts of all shapes, once with each shape as the last one; then improve."""
        requested: Counter[str] = Counter()
        for _, facts in missing:
            requested.update(dict(facts.requests))
        by_price = sorted(
            range(len(self._shapes)), key=lambda index: -(self._shapes[index].price_per_hour or 0.0)
        )
        for last in range(len(self._shapes)):
            counts = caps
            for index in (*(each for each in by_price if each != last), last):
                counts = self._least_count(counts, index, self._estimate(counts, index, requested))
        while any(self._suffices(each) for each in self._cheaper(self._best, caps)):
            pass

    def _estimate(self, counts: Counts, index: int, requested: Counter[str]) -> int:
        """Return where the search of a count begins: nodes for what other shapes cannot hold."""
        least = 0
        for resource, amount in self._shapes[index].template.allocatable:
            others = sum(
                dict(each.template.allocatable).get(resource, 0) * count
                for each, count in zip(self._shapes, _with_count(counts, index, 0), strict=True)
            )
            if amount:
                least = max(least, -(-(requested[resource] - others) // amount))
        return least

    def _least_count(self, counts: Counts, index: int, estimate: int) -> Counts:
        """Return the counts with the smallest sufficient number of one shape, others unchanged."""
        low, high = -1, counts[index]
        step, probe = 1, min(estimate, high - 1)
        # Doubling steps away from the estimate, down while it suffices, or up while it does not.
        while low < probe < high:
            if self._suffices(_with_count(counts, index, probe)):
                high = probe
                probe = max(high - step, 0) if low < 0 else high
            else:
                low = probe
                probe = min(low + step, high) if high == counts[index] else low
            step *= 2
        while high - low > 1:
            middle = (low + high) // 2
            if self._suffices(_with_count(counts, index, middle)):
                high = middle
            else:
                low = middle
        return _with_count(counts, index, high)

    def _cheaper(self, counts: Counts, caps: Counts) -> Iterator[Counts]:
        """Yield the cheaper counts that differ by a removed or an exchanged node."""
        for each in (*_removals(counts), *_exchanges(counts, caps)):
            if self._cost(each) < self._cost(counts):
                yield each

    # The answer.

    def _result_of(
        self, counts: Counts, source: str, missing: int, *, is_minimal: bool
    ) -> GrowResult:
        outcome = self._outcomes[counts].scheduled
        added = {each.name: each for each in self._added(counts)}
        pods = {who.uid: (who, facts) for who, facts in self._inputs.pending}
        on_added = {uid: node for uid, node in outcome.placed.items() if node in added}
        requested: dict[str, Counter[str]] = {}
        placed: Counter[str] = Counter()
        # Results of a run name nodes; the answer is by shape.
        shape_of = {
            each.node(number).name: each.name
            for each, count in zip(self._shapes, counts, strict=True)
            for number in range(1, count + 1)
        }
        for uid, node in on_added.items():
            placed[shape_of[node]] += 1
            requested.setdefault(shape_of[node], Counter()).update(dict(pods[uid][1].requests))
        # A pod that is preempted by a pending one lacks a node at the end, as a pending one does.
        evicted = tuple(
            PendingPod(each.pod, each.uid, f"preempted by {each.preemptor}")
            for each in outcome.preempted
        )
        return GrowResult(
            source=source,
            shapes=tuple(
                GrownShape(
                    each.name,
                    count,
                    each.price_per_hour,
                    placed[each.name],
                    _use_of(each, count, requested.get(each.name, Counter())),
                )
                for each, count in zip(self._shapes, counts, strict=True)
            ),
            nodes=tuple(added),
            manifests=tuple(
                each.node_manifest(number)
                for each, count in zip(self._shapes, counts, strict=True)
                for number in range(1, count + 1)
            ),
            pending=(*outcome.pending, *evicted),
            placed_on={pods[uid][0].key: node for uid, node in on_added.items()},
            missing_before=missing,
            pods=len(self._inputs.pending),
            runs=self.runs,
            is_minimal=is_minimal,
        )


class _Trials:
    """Trials on one copy of the cluster, which each leaves as it was. known: their results."""

    def __init__(self, inputs: RunInputs, plan: RunPlan, unplaceable: frozenset[str]) -> None:
        self._sandbox = Sandbox(replace(inputs, pending=()), plan)
        self._pods = [pod for pod in inputs.pending if pod[0].uid not in unplaceable]
        self.known: dict[Counts, bool] = {}

    def suffice(self, nodes: Sequence[NodeFacts]) -> bool:
        """Whether all pods are placed, and none is evicted, with these nodes added."""
        sandbox = self._sandbox
        sandbox.change_nodes(nodes)
        pods = [sandbox.copy_of(pod) for pod in self._pods]
        scheduled = sandbox.schedule(pods, until_refused=True)
        copies = {who.uid for who, _ in pods}
        sandbox.remove(copies)
        sandbox.restore_preempted(each for each in scheduled.preempted if each.uid not in copies)
        sandbox.remove_nodes([each.name for each in nodes])
        return scheduled.is_complete


def _removals(counts: Counts) -> list[Counts]:
    return [_with_count(counts, index, count - 1) for index, count in enumerate(counts) if count]


def _exchanges(counts: Counts, caps: Counts) -> Iterator[Counts]:
    for fewer, more in _EXCHANGES:
        for old, new in permutations(range(len(counts)), 2):
            if counts[old] >= fewer and counts[new] + more <= caps[new]:
                without_old = _with_count(counts, old, counts[old] - fewer)
                yield _with_count(without_old, new, counts[new] + more)


def _with_count(counts: Counts, index: int, count: int) -> Counts:
    return (*counts[:index], count, *counts[index + 1 :])


def _use_of(
    shape: CatalogShape, count: int, requested: Counter[str]
) -> tuple[tuple[str, float], ...]:
    return tuple(
        (resource, round(requested[resource] / (amount * count), 4))
        for resource, amount in shape.template.allocatable
        if amount and count
    )
