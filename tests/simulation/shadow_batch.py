"""A shadow of batches: some decisions are made again, naively.

A scheduler's decision depends on its table alone, whatever faults led to that state. So the shadow
decides on the same table at the same moment; in runs without faults the judge checks more
(`judge.py`).
"""

from roadstead.cycle.batch import Batch
from roadstead.cycle.continuing_batch import ContinuingBatch
from roadstead.framework.guarded import PluginFailure
from tests.faulty_plugins import RaisesAtFirst
from tests.simulation.naive import Naive, Verdict

FAILS_ONCE = f'plugin "{RaisesAtFirst.name}" failed'

ASKED_EVERY = 4
SHOWN = 3


class ShadowBatches:
    """Follows one life of a cycle that decides on its own table. problems: the first few."""

    def __init__(self, cycle):
        self._profiles = cycle._profiles
        self._naive = Naive(cycle.table, cycle._chooser.tie_break)
        self._begin = cycle.begin
        self._asked = 0
        self.problems = []
        cycle.begin = self.begin

    def begin(self, pods):
        batch = self._begin(pods)
        # The shadow does not know where samples of sampled rows begin.
        if type(batch) in (Batch, ContinuingBatch):
            batch.decide = self._followed(batch, batch.decide)
            batch.decide_by_kernel = self._followed_run(batch, batch.decide_by_kernel)
        return batch

    def look(self):
        """Every decision was compared when it was made."""

    def _is_due(self):
        self._asked += 1
        return self._asked % ASKED_EVERY == 0

    def _followed(self, batch, decide):
        def followed(pod):
            wanted = None
            if self._is_due():
                # Pods that the kernel placed may be missing on the table.
                batch.flush()
                wanted = self._decide(pod)
            decision = decide(pod)
            if wanted is not None and decision is not None:
                self._compare(decision, *wanted)
            return decision

        return followed

    def _followed_run(self, batch, decide_by_kernel):
        def followed(pods):
            is_due = batch._kernel is None and bool(pods) and self._is_due()
            wanted = self._decide(pods[0]) if is_due else None
            decisions = decide_by_kernel(pods)
            if wanted is not None and decisions:
                self._compare(decisions[0], *wanted)
            return decisions

        return followed

    def _decide(self, pod):
        profile = self._profiles[pod.pod_class.facts.scheduler_name]
        try:
            found = self._naive.decide(profile, pod.pod_class, pod)
        except PluginFailure:
            return None
        if found.verdict is not None and self._failed_first(profile, found.verdict):
            # The shadow called the plugin first, so the batch meets no failure any more.
            return None
        return found.verdict or Verdict(None), found.diagnosis

    def _failed_first(self, profile, verdict):
        """Whether the shadow met the failure of a plugin that fails once per pod; a single node is
        chosen all the same, and then has no total.
        """
        may_fail = any(each.plugin.name == RaisesAtFirst.name for each in profile.score)
        return FAILS_ONCE in verdict.error or (may_fail and verdict.node_name and not verdict.total)

    def _compare(self, decision, wanted, diagnosis):
        actual = Verdict(
            decision.node_name,
            error=decision.error,
            feasible=decision.feasible,
            total=decision.total,
            best=decision.best_size,
        )
        if actual != wanted:
            self._differs(decision, actual, wanted)
        if _contents(decision.diagnosis) != _contents(diagnosis):
            self._differs(decision, _contents(decision.diagnosis), _contents(diagnosis))

    def _differs(self, decision, actual, wanted):
        if len(self.problems) < SHOWN:
            self.problems.append(f"shadow of batches: {decision.pod.key}: {actual}, not {wanted}")


def _contents(diagnosis):
    """The contents of a diagnosis; the order in which nodes refused does not matter."""
    if diagnosis is None:
        return None
    return (
        diagnosis.message(""),
        diagnosis.plugins,
        diagnosis.unreached,
        diagnosis.restricted_by,
        sorted((str(status), nodes) for status, nodes in diagnosis.refused.items()),
    )
