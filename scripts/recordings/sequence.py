"""Replaying a recorded sequence on one path: pods one after another while the cluster changes.

If our answer differs, or needs something not implemented, the recorded one is applied in its place:
later decisions start from the recorded state, so that one mistake is one mismatch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.facts.pod import PodFacts
from roadstead.framework.post_filter import run_post_filter
from roadstead.framework.profile import Profile
from roadstead.local.decision_paths import DecisionPath
from roadstead.protocol.errors import UnsupportedError
from scripts.recordings.cases import Case, compile_node_manifest
from scripts.recordings.result import Json, RecordingResult, differing

STEPS = "steps"
MAX_BATCH = 256


class Replay:
    """The replay of one sequence. _batch: how many pods are decided in one batch if possible."""

    def __init__(self, case: Case, path: DecisionPath) -> None:
        self._case, self._path = case, path
        ops, steps = case.document["ops"], case.document[STEPS]
        assert isinstance(ops, list)
        assert isinstance(steps, list)
        self._ops: Sequence[Mapping[str, object]] = ops
        self._steps: Sequence[Json] = steps
        self._bound: dict[str, tuple[str, PodFacts]] = {}
        self._batch = MAX_BATCH
        self.result = RecordingResult(decisions=sum(each["op"] == "schedule" for each in ops))

    def run(self) -> RecordingResult:
        at = 0
        while at < len(self._ops):
            if self._ops[at]["op"] == "schedule":
                at += self._schedule(at)
            else:
                self._change(self._ops[at])
                at += 1
        return self.result

    def _change(self, operation: Mapping[str, object]) -> None:
        if operation["op"] == "delete":
            bound = self._bound.pop(str(operation["key"]), None)
            if bound is not None:
                self._path.remove_pod(*bound)
        elif operation["op"] == "deleteNode":
            self._path.remove_node(str(operation["key"]))
        else:
            assert operation["op"] == "addNode", f"an operation that is not known: {operation}"
            node = compile_node_manifest(operation["node"], self._case.path.name)
            self._path.add_nodes([node])
        self.result.ours.setdefault(STEPS, []).append({})

    def _schedule(self, at: int) -> int:
        """Decide pods from `at` on; return how many operations are done."""
        pods = self._next_pods(at)
        try:
            decisions = self._decide(pods)
        except UnsupportedError as missing:
            # Nothing was decided: smaller batches isolate the unsupported pod.
            self._batch = max(1, len(pods) // 2)
            if len(pods) > 1:
                return 0
            self.result.lack(missing.plugin, STEPS, missing.field)
            self._bind_as_recorded(pods[0], self._steps[at])
            return 1
        # The next batch probably ends early, too: pods requested beyond its end are wasted work.
        self._batch = min(MAX_BATCH, 2 * len(decisions))
        for place, decision in enumerate(decisions):
            if self._compare(at + place, decision):
                self._forget(decisions[place:])
                self._bind_as_recorded(decision.pod, self._steps[at + place])
                return place + 1
        return len(decisions)

    def _next_pods(self, at: int) -> list[PodInCycle]:
        next_ops = self._ops[at : at + self._batch]
        found = []
        for operation in takewhile(lambda each: each["op"] == "schedule", next_ops):
            index = operation["pod"]
            assert isinstance(index, int)
            found.append(self._path.prepare(*self._case.pending[index]))
        return found

    def _decide(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        return self._path.decide(pods)

    def _step(self, at: int, decision: Decision) -> tuple[Json, Json]:
        """Return our step and the recorded one, reduced to comparable fields.

        The recordings score a pod even if only one node is feasible, and record an error if that
        fails; upstream chooses the node before it scores. The node's name is not recorded.
        """
        recorded = self._steps[at]
        if "error" in recorded and recorded["feasible"] == 1 and decision.node_name is not None:
            return {"feasible": decision.feasible}, {"feasible": 1}
        profile = self._path.profile(decision.pod.pod_class.facts.scheduler_name)
        return self._named(step_of(decision, profile)), self._named(recorded)

    def _named(self, step: Json) -> Json:
        """Remove the best nodes from a step if this path does not name them."""
        if self._path.names_best:
            return step
        return {field: value for field, value in step.items() if field != "best"}

    def _compare(self, at: int, decision: Decision) -> bool:
        """Compare a step; return whether the chosen node is not the recorded one."""
        step = self._steps[at]
        try:
            ours, theirs = self._step(at, decision)
        except UnsupportedError as missing:
            self.result.lack(missing.plugin, STEPS, missing.field)
        else:
            where = f"{self._case.path.name} step {at} {decision.pod.key}"
            self.result.compare(where, STEPS, ours, differing(ours, theirs))
        if decision.node_name != step.get("chosen"):
            return True
        if decision.node_name is not None:
            self._bound[decision.pod.key] = (decision.node_name, decision.pod.pod_class.facts)
        return False

    def _forget(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            if decision.node_name is not None:
                self._path.forget(decision.pod, decision.node_name)

    def _bind_as_recorded(self, pod: PodInCycle, step: Json) -> None:
        chosen = step.get("chosen")
        if chosen is not None:
            self._path.add_pod(str(chosen), pod.pod_class.facts)
            self._bound[pod.key] = (str(chosen), pod.pod_class.facts)


def step_of(decision: Decision, profile: Profile | None) -> Json:
    """Return a decision as a recorded step. profile: its PostFilter adds to the message."""
    if decision.error:
        return {"feasible": decision.feasible, "bestSize": 0, "error": decision.error}
    if decision.node_name is None:
        assert decision.diagnosis is not None
        suffix = ""
        if profile is not None:
            status = run_post_filter(
                profile, decision.pod.pod_class.facts, decision.diagnosis
            ).status
            suffix = "" if status.is_success else status.message
        return {"feasible": 0, "bestSize": 0, "message": decision.diagnosis.message(suffix)}
    return {
        "feasible": decision.feasible,
        "bestSize": decision.best_size,
        "best": list(decision.best),
        "total": decision.total,
        "chosen": decision.node_name,
    }
