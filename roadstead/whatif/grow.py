"""The fewest, or cheapest, nodes of a catalogue with which every pod is placed.

Each candidate answer is a complete run: the pods are scheduled on the cluster with the candidate's
nodes, as `roadstead schedule` does. What is guaranteed of the answer: its run placed every pod that
any number of the catalogue's nodes can place, evicting none; and for each shape in it, the run with
one node less left a pod without a node. It need not be the least of all combinations, since
scheduling is not monotone: one more node can change where all pods go.

The search:
1. A run without added nodes; then one with every shape at its cap (its maximum count, or the number
   of pods without a node). Pods that are still pending there are reported, not searched for.
2. For each shape: reduce the counts of all other shapes, the dearest first, then its own. A count
   is reduced to the smallest that suffices, by doubling from 0 and bisection.
3. From the cheapest of these answers: exchange nodes of one shape for fewer or cheaper ones of
   another (1:1, 2:1, 1:2), and remove single nodes, until neither succeeds.
With s shapes and a cap of n, step 2 needs at most s * s * (2 * log2(n) + 2) runs. `runs_max` bounds
all steps together; when it is reached, the best answer proven so far is returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from roadstead.facts.node import NodeFacts
from roadstead.inputs.node_catalog import NodeShape
from roadstead.protocol.errors import InputError
from roadstead.report.grow_result import GrownShape, GrowResult
from roadstead.report.result import PendingPod
from roadstead.run import Progress, RunInputs, RunPlan
from roadstead.whatif.sandbox import OnProgress, Sandbox, Scheduled, ignore

RUNS_MAX: Final = 200

Counts = tuple[int, ...]
"""The number of added nodes of each shape, in the catalogue's order."""

_EXCHANGES: Final = ((1, 1), (2, 1), (1, 2))
"""(nodes that leave, nodes that replace them)."""


class _RunsExhaustedError(Exception):
    """The search made as many runs as it may."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One run. missing: UIDs of pods without a node, evicted pods included."""

    scheduled: Scheduled
    missing: frozenset[str]


def grow(
    inputs: RunInputs,
    plan: RunPlan,
    shapes: Sequence[NodeShape],
    source: str = "",
    progress: OnProgress = ignore,
    runs_max: int = RUNS_MAX,
) -> GrowResult:
    """Search the nodes to add. Raises InputError if an added node's name is taken."""
    return _Search(inputs, plan, tuple(shapes), progress, runs_max).result(source)


class _Search:
    def __init__(
        self,
        inputs: RunInputs,
        plan: RunPlan,
        shapes: tuple[NodeShape, ...],
        progress: OnProgress,
        runs_max: int,
    ) -> None:
        self._inputs, self._plan, self._shapes = inputs, plan, shapes
        self._progress, self._runs_max = progress, runs_max
        self._runs: dict[Counts, _Outcome] = {}
        self._hopeless: frozenset[str] = frozenset()
        self._best: Counts | None = None
        self._names = [each.name for each in inputs.nodes]
        # A cluster is listed by name; a trace keeps its own order, with added nodes last.
        self._is_sorted = self._names == sorted(self._names, key=str.encode)

    def result(self, source: str) -> GrowResult:
        nothing = (0,) * len(self._shapes)
        before = self._run(nothing)
        caps = self._caps(len(before.missing))
        self._check_names(caps)
        is_minimal = True
        self._best = nothing if not before.missing else None
        if before.missing and any(caps):
            full = self._run(caps)
            self._hopeless = full.missing
            self._best = nothing if before.missing <= self._hopeless else caps
            try:
                if self._best != nothing:
                    self._reduce_all(caps)
                    self._improve(caps)
            except _RunsExhaustedError:
                is_minimal = False
        elif before.missing:
            self._hopeless, self._best = before.missing, nothing
        assert self._best is not None, "some run suffices"
        return self._described(self._best, source, len(before.missing), is_minimal=is_minimal)

    # Runs.

    def _run(self, counts: Counts) -> _Outcome:
        """Schedule all pods with these nodes added; each run is made once."""
        if (known := self._runs.get(counts)) is not None:
            return known
        if len(self._runs) >= max(2, self._runs_max):
            raise _RunsExhaustedError
        shown = ", ".join(
            f"{count:,} {each.name}"
            for each, count in zip(self._shapes, counts, strict=True)
            if count
        )
        self._progress(Progress(f"run {len(self._runs) + 1}: with {shown or 'no added node'}"))
        sandbox = Sandbox(self._with(counts), self._plan, self._progress)
        first = sandbox.first
        missing = {each.uid for each in first.pending} | {each.uid for each in first.preempted}
        self._runs[counts] = _Outcome(first, frozenset(missing))
        return self._runs[counts]

    def _with(self, counts: Counts) -> RunInputs:
        nodes: list[NodeFacts] = [*self._inputs.nodes, *self._added(counts)]
        if self._is_sorted:
            nodes.sort(key=lambda each: each.name.encode())
        return replace(self._inputs, nodes=nodes)

    def _added(self, counts: Counts) -> Iterator[NodeFacts]:
        for shape, count in zip(self._shapes, counts, strict=True):
            yield from (shape.node(number) for number in range(1, count + 1))

    def _suffices(self, counts: Counts) -> bool:
        if not self._run(counts).missing <= self._hopeless:
            return False
        if self._best is None or self._cost(counts) < self._cost(self._best):
            self._best = counts
        return True

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
        taken = {*self._names}
        for each in self._added(caps):
            if each.name in taken:
                rule = "is the name of a node of the cluster: name the shape otherwise"
                raise InputError(rule, source="catalog", obj="Node", value=f'"{each.name}"')

    # The search.

    def _reduce_all(self, caps: Counts) -> None:
        """Reduce the counts of all shapes, once with each shape as the last one."""
        by_price = sorted(
            range(len(self._shapes)), key=lambda at: -(self._shapes[at].price_per_hour or 0.0)
        )
        for last in range(len(self._shapes)):
            counts = caps
            for at in (*(each for each in by_price if each != last), last):
                counts = self._least(counts, at)

    def _least(self, counts: Counts, at: int) -> Counts:
        """Return the counts with the smallest sufficient number of one shape, others unchanged."""
        low, high = -1, counts[at]
        step = 0
        while step < high:
            if self._suffices(_set(counts, at, step)):
                high = step
                break
            low, step = step, max(1, 2 * step)
        while high - low > 1:
            middle = (low + high) // 2
            if self._suffices(_set(counts, at, middle)):
                high = middle
            else:
                low = middle
        return _set(counts, at, high)

    def _improve(self, caps: Counts) -> None:
        """Exchange and remove nodes until no exchange and no removal succeeds."""
        while True:
            assert self._best is not None, "some run suffices"
            best = self._best
            better = (
                each
                for each in (*self._removals(best), *self._exchanges(best, caps))
                if self._cost(each) < self._cost(best)
            )
            if not any(self._suffices(each) for each in better):
                return

    @staticmethod
    def _removals(counts: Counts) -> list[Counts]:
        return [_set(counts, at, count - 1) for at, count in enumerate(counts) if count]

    def _exchanges(self, counts: Counts, caps: Counts) -> Iterator[Counts]:
        for fewer, more in _EXCHANGES:
            for a in range(len(counts)):
                for b in range(len(counts)):
                    if a != b and counts[a] >= fewer and counts[b] + more <= caps[b]:
                        yield _set(_set(counts, a, counts[a] - fewer), b, counts[b] + more)

    # The answer.

    def _described(
        self, counts: Counts, source: str, missing: int, *, is_minimal: bool
    ) -> GrowResult:
        outcome = self._runs[counts].scheduled
        added = {each.name: each for each in self._added(counts)}
        pods = {who.uid: (who, facts) for who, facts in self._inputs.pending}
        on_added = {uid: node for uid, node in outcome.placed.items() if node in added}
        requested: dict[str, Counter[str]] = {}
        placed: Counter[str] = Counter()
        shape_of = {
            each.node(number).name: each.name
            for each, count in zip(self._shapes, counts, strict=True)
            for number in range(1, count + 1)
        }
        for uid, node in on_added.items():
            placed[shape_of[node]] += 1
            requested.setdefault(shape_of[node], Counter()).update(dict(pods[uid][1].requests))
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
                    _used(each, count, requested.get(each.name, Counter())),
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
            runs=len(self._runs),
            is_minimal=is_minimal,
        )


def _set(counts: Counts, at: int, count: int) -> Counts:
    return (*counts[:at], count, *counts[at + 1 :])


def _used(shape: NodeShape, count: int, requested: Counter[str]) -> tuple[tuple[str, float], ...]:
    return tuple(
        (resource, round(requested[resource] / (amount * count), 4))
        for resource, amount in shape.template.allocatable
        if amount and count
    )
