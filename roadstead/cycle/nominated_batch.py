"""NominatedBatch: one pod that passes on its nominated node.

The node is evaluated before all others and alone: if the pod passes, it is the only feasible node
and nothing is scored. If extenders handle the pod, `NodeSearch` sends this node to them first.

Upstream: pkg/scheduler/schedule_one.go (evaluateNominatedNode, schedulePod).
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.cycle.batch import Batch, CompiledKernel, Decision, PodInCycle
from roadstead.framework.nominated_node import passes_on_nominated
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import Chooser
from roadstead.nodes.table import NodeTable


class NominatedBatch(Batch):
    """Decide one pod."""

    def __init__(
        self,
        table: NodeTable,
        pod: PodInCycle,
        chooser: Chooser,
        *,
        name_best: bool,
        compiled_kernel: CompiledKernel | None,
    ) -> None:
        super().__init__(table, {}, chooser, name_best=name_best, compiled_kernel=compiled_kernel)
        self._pod = pod

    @staticmethod
    def if_it_passes(
        profile: Profile,
        table: NodeTable,
        pod: PodInCycle,
        chooser: Chooser,
        *,
        name_best: bool,
        compiled_kernel: CompiledKernel | None,
    ) -> NominatedBatch | None:
        """Return the batch of a pod that passes on its nominated node; None for any other pod.

        Raises UnsupportedError, without the pod's name, if a plugin does not support it.
        """
        if not passes_on_nominated(profile, pod.pod_class, table):
            return None
        return NominatedBatch(
            table, pod, chooser, name_best=name_best, compiled_kernel=compiled_kernel
        )

    def decide_by_kernel(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """Return no decisions: the kernel does not support nominations."""
        if self._compiled_kernel is not None and self._compiled_kernel.code is not None:
            self._compiled_kernel.decision_counts.by_reference["nominated pods"] += 1
        return []

    def _decide(self, pod: PodInCycle) -> Decision | None:
        if pod != self._pod:
            return None
        name = pod.pod_class.facts.nominated_node_name
        self._put(pod, name)
        return Decision(pod, name, 1, best_size=1, best=(name,) if self._name_best else ())
