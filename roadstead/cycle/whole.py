"""WholeBatch: a batch that goes on where a placement matters beyond its row.

decide ──► do earlier placements matter beyond their rows? ── no ──► as in any batch
                            └── yes ──► what looks across nodes is found again for this pod
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from roadstead.cycle.alone import Alone
from roadstead.cycle.batch import BatchRun, Decision, PodInCycle
from roadstead.cycle.class_run import ClassRun
from roadstead.framework.post_filter import candidates_wanted
from roadstead.kernel.arrays import U64
from roadstead.kernel.lists import BestRows


class WholeBatch(BatchRun):
    """Decides pods over all nodes, to the same result as one pod after another."""

    def unlisted(self, pods: Sequence[PodInCycle]) -> list[PodInCycle]:
        """Pods of new classes, each the only one of its class among these, whose best rows workers
        may list."""
        code = None if self._accelerator is None else self._accelerator.code
        if code is None or self.table.nominations or self._name_best:
            return []
        counts = Counter(pod.signature for pod in pods)
        plain = {each for each in self._admit(code).unlisted() if counts[each] == 1}
        return [pod for pod in pods if pod.signature in plain]

    def draws(self, pods: Sequence[PodInCycle]) -> U64:
        """The draw of each pod: uint64[pod]."""
        draw = self._chooser.tie_break.draw
        return np.array([draw(pod.key, pod.draw) for pod in pods], np.uint64)

    def take_lists(self, best: BestRows, pods: int) -> None:
        """Decides by these lists, as far as they say enough. pods: as many are decided at most."""
        assert self._kernel is not None, "the kernel says which classes have no list"
        self._kernel.take_lists(best, pods)

    def _decide_changed(self, pod: PodInCycle, run: ClassRun) -> Decision | None:
        """The decision by what stands on the table now; None where something else must come first.

        What claims are bound to is known once their pods are assumed.
        """
        if pod.info.facts.volumes:
            return None
        alone = Alone(run, pod).batch(self._chooser, name_best=self._name_best)
        decision = alone.decide(pod)
        assert decision is not None, "one pod alone is always decided"
        if decision.node_name is not None:
            self._note_placed(pod.info)
            return decision
        profile, diagnosis = run.evaluation.profile, decision.diagnosis
        if diagnosis is None or candidates_wanted(profile, pod.info.facts, diagnosis) is None:
            return decision
        # Nobody is evicted for pods that are not assumed yet.
        return None
