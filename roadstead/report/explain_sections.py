"""Explanations of many pending pods, grouped by workload and reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from roadstead.cycle.explain import Explained, Explanation
from roadstead.report.explain_view import headline, status_text
from roadstead.report.pods import workload_of

State = Literal["terminating", "gated", "failing", "unschedulable", "schedulable"]
"""failing: a plugin or an extender raised an error, so whether the pod fits is not known."""

# The title of pods without a controller (bare pods), which have no workload.
BARE_PODS = "Pods without a controller"


@dataclass(frozen=True, slots=True)
class Section:
    """Pods of one workload that are pending for one reason.

    reason: for an unschedulable pod, the text of its FailedScheduling event. pods: their keys.
    explanation: that of the first pod; None for pods that are never attempted, for which `reason`
    says why.
    """

    workload: str
    state: State
    reason: str
    pods: tuple[str, ...]
    explanation: Explanation | None = field(repr=False)

    @property
    def title(self) -> str:
        """The workload and its number of pods, or the name of a single pod without a workload."""
        count = len(self.pods)
        if not self.workload and count == 1:
            return f"Pod {self.pods[0]}"
        return f"{self.workload or BARE_PODS}, {count:,} pod{'s' * (count > 1)}"

    def document(self) -> dict[str, object]:
        """The section as JSON."""
        document: dict[str, object] = {
            "workload": self.workload,
            "state": self.state,
            "reason": self.reason,
            "count": len(self.pods),
            "pods": list(self.pods),
        }
        if self.explanation is not None:
            document["explanation"] = self.explanation.document()
        return document


@dataclass(frozen=True, slots=True)
class PendingReport:
    """All pending pods. input_pods: number of them in the inputs. is_after_run: after a run."""

    sections: tuple[Section, ...]
    input_pods: int
    is_after_run: bool

    @property
    def pending(self) -> int:
        return sum(len(each.pods) for each in self.sections)

    @property
    def summary(self) -> str:
        """Numbers of pending pods and of those that can be scheduled."""
        if not self.pending:
            return f"No pod is pending{self._why_none}."
        if self.is_after_run:
            counts = f"{self.pending:,} of {self.input_pods:,}"
            return f"{counts} pending pods are still pending after the run"
        good = sum(len(each.pods) for each in self.sections if each.state == "schedulable")
        bad = f"{self.pending - good:,} cannot"
        return f"Pending pods: {self.pending:,}. Each by itself, {good:,} can be scheduled, {bad}"

    @property
    def basis(self) -> str:
        """The cluster state on which the pods are explained; "" if no pod is explained."""
        if not self.pending:
            return ""
        if self.is_after_run:
            return "They are explained on the cluster as it is after the run."
        return (
            "They are explained on the cluster as given, without the other pending pods; "
            "--after-run schedules all of them first, and explains those that are still pending."
        )

    @property
    def _why_none(self) -> str:
        if not self.input_pods:
            return ": every pod has a node"
        return f": the run placed all {self.input_pods:,}"

    def document(self) -> dict[str, object]:
        """The report as JSON."""
        return {
            "pending": self.pending,
            "afterRun": self.is_after_run,
            "sections": [each.document() for each in self.sections],
        }


def pending_report(
    explained: Iterable[Explained], *, input_pods: int, is_after_run: bool
) -> PendingReport:
    """Group explained pods: those that cannot be scheduled first, then large sections first."""
    keys: dict[tuple[str, State, str], list[str]] = {}
    explanations: dict[tuple[str, State, str], Explanation | None] = {}
    for each in explained:
        # Pods that share an explanation have equal facts, and so the same workload.
        key = (workload_of(each.pods[0][1]), *_reason(each))
        keys.setdefault(key, []).extend(identity.key for identity, _ in each.pods)
        explanations.setdefault(key, each.explanation)
    sections = [Section(*key, tuple(pods), explanations[key]) for key, pods in keys.items()]
    sections.sort(key=lambda each: (each.state == "schedulable", -len(each.pods), each.title))
    return PendingReport(tuple(sections), input_pods, is_after_run)


def _reason(explained: Explained) -> tuple[State, str]:
    explanation = explained.explanation
    if explanation is None:
        return "failing", explained.error
    first = headline(explanation)[0].text
    if explanation.is_terminating:
        return "terminating", first
    if not explanation.pre_enqueue.is_success:
        return "gated", status_text(explanation.pre_enqueue)
    if explanation.cycle_error:
        return "failing", first
    if len(explanation.feasible):
        return "schedulable", first
    return "unschedulable", explanation.message
