"""WholeBatch: a batch that goes on where a placement matters beyond its row.

decide ──► do earlier placements matter beyond their rows? ── no ──► as in any batch
                            └── yes ──► what looks across nodes is found again for this pod
"""

from __future__ import annotations

from roadstead.cycle.alone import Alone
from roadstead.cycle.batch import BatchRun, Decision, PodInCycle
from roadstead.cycle.class_run import ClassRun
from roadstead.framework.post_filter import candidates_wanted


class WholeBatch(BatchRun):
    """Decides pods over all nodes, to the same result as one pod after another."""

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
