"""NominatedBatch: one pod whose nominated node takes it.

The node is looked at before all others, and alone: if it takes the pod, it is the only feasible one
and nothing is scored. Where extenders look at the pod, they are asked about the node first, and the
node_search sees to that.

Upstream: pkg/scheduler/schedule_one.go (evaluateNominatedNode, schedulePod).
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.cycle.batch import Accelerator, BatchRun, Decision, PodInCycle
from roadstead.framework.nominated_node import takes_nominated
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import Chooser
from roadstead.nodes.table import NodeTable


class NominatedBatch(BatchRun):
    """Decides its pod, and no other."""

    def __init__(
        self,
        table: NodeTable,
        pod: PodInCycle,
        chooser: Chooser,
        *,
        name_best: bool,
        accelerator: Accelerator | None,
    ) -> None:
        super().__init__(table, {}, chooser, name_best=name_best, accelerator=accelerator)
        self._pod = pod

    @staticmethod
    def where_taken(
        profile: Profile,
        table: NodeTable,
        pod: PodInCycle,
        chooser: Chooser,
        *,
        name_best: bool,
        accelerator: Accelerator | None,
    ) -> NominatedBatch | None:
        """The batch of a pod that its nominated node takes; None for any other.

        Raises UnsupportedError, without a pod's name, where a plugin that is not there would be
        needed.
        """
        if not takes_nominated(profile, pod.info, table):
            return None
        return NominatedBatch(table, pod, chooser, name_best=name_best, accelerator=accelerator)

    def decide_run(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """None: the kernel does not know who is nominated."""
        if self._accelerator is not None and self._accelerator.code is not None:
            self._accelerator.coverage.by_reference["nominated pods"] += 1
        return []

    def _decide(self, pod: PodInCycle) -> Decision | None:
        if pod != self._pod:
            return None
        name = pod.info.facts.nominated_node_name
        self._put(pod, name)
        return Decision(pod, name, 1, best_size=1, best=(name,) if self._name_best else ())
