"""Count of further replicas that fit on a cluster, with the reason against the next one.

A spec is a pod or workload that the user names; a round is `ratio` replicas of each. Replicas are
submitted in batches of some rounds and decided by the scheduler. If a replica of a batch does not
fit, the batch is removed, and one of half its size is tried, down to one round. So all counted
rounds were placed together, and the next one was refused. For a single spec, the replicas that were
placed before the first refusal are counted at once: all later ones would be refused, too, since
they are equal and the cluster is unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from roadstead.facts.node import zone_text
from roadstead.facts.pod import Pod
from roadstead.inputs.find_pod import InputPod
from roadstead.report.fit_result import AdmittingChange, FitNode, FitResult, FitSpec, Refusal
from roadstead.report.pods import workload_of
from roadstead.run import Progress, RunInputs, RunPlan
from roadstead.whatif.node_shapes import shape_of
from roadstead.whatif.sandbox import OnProgress, Sandbox, Scheduled, ignore
from roadstead.whatif.smallest_changes import smallest_changes

FIRST_PODS: Final = 64
"""Pods of the first batch."""

GROWTH: Final = 4
"""Factor of the size of a batch after a batch that fits."""

BATCH_MAX_PODS: Final = 16_384
REPLICAS_MAX: Final = 1_000_000
"""Default limit of the count."""

CHANGES_SHOWN: Final = 5
"""Default number of changes that are reported."""


@dataclass(frozen=True, slots=True)
class CountedSpec:
    """A pod whose replicas are counted. name: as given. ratio: replicas in each round."""

    name: str
    pod: InputPod
    ratio: int = 1

    @property
    def template(self) -> Pod:
        return self.pod.identity, self.pod.facts


@dataclass(frozen=True, slots=True)
class FitQuestion:
    """A count to make.

    is_total: pending pods of the specs are counted as replicas; otherwise they are placed before
    the count. max_replicas: where the count stops. max_changes: how many changes of the refused
    pod that would make it fit are reported; for 0 none is searched.
    """

    specs: tuple[CountedSpec, ...]
    is_total: bool = False
    max_replicas: int = REPLICAS_MAX
    max_changes: int = CHANGES_SHOWN


def fit(
    inputs: RunInputs,
    plan: RunPlan,
    question: FitQuestion,
    source: str = "",
    progress: OnProgress = ignore,
) -> FitResult:
    """Place the given pods, then count how many more replicas fit. Raises RoadsteadError."""
    progress(Progress("placing the given pods", total=len(inputs.pending)))
    given = _without(inputs, question) if question.is_total else inputs
    sandbox = Sandbox(given, plan, progress)
    counter = _Counter(sandbox, question, progress)
    counter.count()
    nodes = _nodes(sandbox, counter.nodes)
    refused = counter.refused
    stop: Refusal | None = None
    tried, changes = 0, tuple[AdmittingChange, ...]()
    if refused is not None:
        if question.max_changes:
            progress(Progress("trying changes"))
            admission = smallest_changes(sandbox, refused.template)
            tried, changes = admission.tried, admission.changes[: question.max_changes]
        stop = _next(sandbox, refused)
    return FitResult(
        source=source,
        specs=tuple(
            FitSpec(each.name, each.pod.identity.key, each.ratio, counter.rounds * each.ratio)
            for each in question.specs
        ),
        rounds=counter.rounds,
        is_limited=refused is None,
        nodes=nodes,
        node_count=len(sandbox.nodes),
        next=stop,
        changes=changes,
        placed=len(sandbox.result_of_inputs.placed),
        pending=len(sandbox.result_of_inputs.pending),
        tried=tried,
        is_total=question.is_total,
    )


def _without(inputs: RunInputs, question: FitQuestion) -> RunInputs:
    """Return the inputs without the pending pods of the workloads in question."""
    uids = {each.pod.identity.uid for each in question.specs}
    # "" is the workload of pods without a controller.
    workloads = {each.pod.workload for each in question.specs} - {""}
    others = (
        (identity, facts)
        for identity, facts in inputs.pending
        if identity.uid not in uids and workload_of(facts) not in workloads
    )
    return replace(inputs, pending=tuple(others))


class _Counter:
    """Count rounds of replicas in a sandbox.

    nodes: node → replicas of complete rounds. refused: the spec that stops the next round; None if
    the limit stops it. The replicas of the refused round that did fit stay placed, but are not
    counted.
    """

    def __init__(self, sandbox: Sandbox, question: FitQuestion, progress: OnProgress) -> None:
        self._sandbox, self._progress = sandbox, progress
        # The specs of the replicas of one round, in order.
        self._specs = [each for each in question.specs for _ in range(each.ratio)]
        self._max_rounds = max(1, question.max_replicas // len(self._specs))
        self.rounds = 0
        self.nodes: Counter[str] = Counter()
        self.refused: CountedSpec | None = None

    def count(self) -> None:
        size, is_growing = max(1, FIRST_PODS // len(self._specs)), True
        largest = max(1, min(BATCH_MAX_PODS, self._sandbox.max_pods) // len(self._specs))
        size = min(size, largest)
        while self.rounds < self._max_rounds:
            size = min(size, self._max_rounds - self.rounds)
            pods = self._copies(size)
            # A batch that does not fit is removed, so it may end at the first refusal. A single
            # round is decided to its end, to know which of its replicas are refused.
            scheduled = self._sandbox.schedule([pod for pod, _ in pods], until_refused=size > 1)
            if not scheduled.pending:
                self._count_rounds(scheduled.placed, size)
                size = min(size * GROWTH, largest) if is_growing else max(1, size // 2)
            elif size == 1:
                self._stop(pods, scheduled)
                return
            elif len(self._specs) == 1 and (fitting := _prefix(pods, scheduled)):
                # Equal pods are refused alike: only the next one is still tried, for its reason.
                self._sandbox.remove(each.uid for each in scheduled.pending)
                self._count_rounds(scheduled.placed, fitting)
                size, is_growing = 1, False
            else:
                self._sandbox.remove(pod[0].uid for pod, _ in pods)
                size, is_growing = max(1, size // 2), False
            self._progress(Progress(f"counting replicas: {self.rounds * len(self._specs):,} fit"))

    def _copies(self, rounds: int) -> list[tuple[Pod, CountedSpec]]:
        # A replica must not evict pods: it would not fit beside them.
        copy = self._sandbox.copy_of
        return [
            (copy(each.template, preemption_policy="Never"), each)
            for _ in range(rounds)
            for each in self._specs
        ]

    def _count_rounds(self, placed: Mapping[str, str], rounds: int) -> None:
        self.rounds += rounds
        self.nodes.update(placed.values())

    def _stop(self, pods: Sequence[tuple[Pod, CountedSpec]], scheduled: Scheduled) -> None:
        pending = {each.uid for each in scheduled.pending}
        self.refused = next(spec for pod, spec in pods if pod[0].uid in pending)
        self._sandbox.remove(pending)


def _prefix(pods: Sequence[tuple[Pod, CountedSpec]], scheduled: Scheduled) -> int:
    """Return how many pods were placed, if they are the first ones; else 0."""
    count = len(scheduled.placed)
    return count if all(pod[0].uid in scheduled.placed for pod, _ in pods[:count]) else 0


def _next(sandbox: Sandbox, spec: CountedSpec) -> Refusal:
    """Try the next replica with its own preemption policy, and return why it does not fit."""
    copy = sandbox.copy_of(spec.template)
    scheduled = sandbox.schedule([copy])
    if scheduled.preempted:
        text = f"it would preempt {len(scheduled.preempted):,} pods of lower priority"
        return Refusal(spec.name, text, preempts=scheduled.preempted)
    if not scheduled.pending:
        return Refusal(spec.name, "it fits only with preemption")
    why = scheduled.pending[0]
    return Refusal(spec.name, why.message, why.reasons, why.plugins)


def _nodes(sandbox: Sandbox, counts: Counter[str]) -> tuple[FitNode, ...]:
    shapes: dict[object, str] = {}
    rows = [
        FitNode(name, zone_text((node := sandbox.nodes[name]).zone), shape_of(node, shapes), count)
        for name, count in counts.items()
    ]
    return tuple(sorted(rows, key=lambda each: (-each.replicas, each.node)))
