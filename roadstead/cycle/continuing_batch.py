"""ContinuingBatch: a batch that continues after a placement that may change answers for other rows.

decide ──► may earlier placements change answers for other rows? ── no ──► as in any batch
                            └── yes ──► results that read other nodes are computed again
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from roadstead.cycle.batch import BatchRun, Decision, PodInCycle
from roadstead.cycle.class_run import ClassRun
from roadstead.cycle.single_pod_cycle import SinglePodCycle
from roadstead.framework.post_filter import candidates_wanted
from roadstead.kernel.arrays import U64
from roadstead.kernel.lists import BestRows


class ContinuingBatch(BatchRun):
    """Decides pods over all nodes, to the same result as one pod after another.

    allocates_ahead: devices of placed pods are allocated for those behind them. Its user undoes
    that before it assumes the pods (`DevicesAhead`).
    """

    allocates_ahead = False
    _knows_devices = True

    def unlisted(self, pods: Sequence[PodInCycle]) -> list[PodInCycle]:
        """Return pods whose best rows workers may list.

        Their classes are new, and each is the only one of its class among `pods`.
        """
        code = None if self._accelerator is None else self._accelerator.code
        if code is None or self.table.nominations or self._name_best:
            return []
        counts = Counter(pod.signature for pod in pods)
        plain = {each for each in self._admit(code).listable() if counts[each] == 1}
        return [pod for pod in pods if pod.signature in plain]

    def draws(self, pods: Sequence[PodInCycle]) -> U64:
        """Return the draw of each pod: uint64[pod]."""
        draw = self._chooser.tie_break.draw
        return np.array([draw(pod.key, pod.draw) for pod in pods], np.uint64)

    def use_lists(self, best: BestRows, pods: int) -> None:
        """Store lists, by which the kernel decides if they suffice. pods: size of the batch."""
        assert self._kernel is not None, "the kernel knows which classes have no list"
        self._kernel.use_lists(best, pods)

    def decide(self, pod: PodInCycle) -> Decision | None:
        """As any batch; the devices of a placed pod are allocated for those behind it."""
        decision = super().decide(pod)
        facts = pod.pod_class.facts
        if decision is not None and decision.node_name is not None and facts.device_claims:
            self._knows_devices &= self._reserve(pod, decision.node_name)
        return decision

    def _reserve(self, pod: PodInCycle, node_name: str) -> bool:
        """Allocate a placed pod's devices; return whether this was done."""
        facts = pod.pod_class.facts
        if not self.allocates_ahead or facts.volumes:
            return False
        columns, row = self.table.columns, self.table.row_of(node_name)
        profile = self._classes[pod.signature].run.evaluation.profile
        return profile.storage.ahead.reserve(facts, columns.node(row))

    def _decide_changed(self, pod: PodInCycle, run: ClassRun) -> Decision | None:
        """Return a decision that is computed for this pod alone on the current table.

        None if the pods before it must be assumed first: claims of volumes are bound only then, as
        are claims of devices that several pods share, and no pod is evicted for pods that are not
        assumed yet.
        """
        facts, profile = pod.pod_class.facts, run.evaluation.profile
        if facts.volumes or (facts.device_claims and not self._knows_devices):
            return None
        if profile.storage.ahead.concerns(facts):
            return None
        alone = SinglePodCycle(run, pod).batch(self._chooser, name_best=self._name_best)
        decision = alone.decide(pod)
        assert decision is not None, "one pod alone is always decided"
        if decision.node_name is not None:
            self._record_placement(pod.pod_class)
            return decision
        if facts.device_claims:
            return None
        diagnosis = decision.diagnosis
        if diagnosis is None or candidates_wanted(profile, facts, diagnosis) is None:
            return decision
        return None
