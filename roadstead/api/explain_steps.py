"""Explanations of pods, for the command line and the Python API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from roadstead.cycle.explain import Explained, Explanation
from roadstead.facts.pod import Pod
from roadstead.inputs.find_pod import InputPod
from roadstead.inputs.loaded import Loaded
from roadstead.report.explain_sections import PendingReport, pending_report
from roadstead.run import Launcher, Progress, RunInputs, RunPlan


def explain_pod(
    launcher: Launcher,
    loaded: Loaded,
    plan: RunPlan,
    input_pod: InputPod,
    progress: Callable[[Progress], None],
    *,
    after_run: bool,
) -> Explanation:
    """Explain one pod. after_run: all other pending pods of `loaded` are scheduled first."""
    pod = input_pod.identity, input_pod.facts
    inputs = without_pod(loaded.inputs, pod, keep_pending=after_run)
    return launcher.explain(inputs, plan, pod, progress)


def explain_pending(
    launcher: Launcher,
    loaded: Loaded,
    plan: RunPlan,
    progress: Callable[[Progress], None],
    *,
    after_run: bool,
) -> PendingReport:
    """Explain every pending pod of `loaded`.

    after_run: they are scheduled, and those that remain pending are explained.
    """
    pods = loaded.inputs.pending
    inputs = loaded.inputs if after_run else replace(loaded.inputs, pending=())
    explained: tuple[Explained, ...] = ()
    if pods:
        explained = launcher.explain_pending(inputs, plan, pods, progress)
    return pending_report(explained, input_pods=len(pods), is_after_run=after_run)


def without_pod(inputs: RunInputs, pod: Pod, *, keep_pending: bool) -> RunInputs:
    """The inputs without the pod. keep_pending: other pending pods are kept."""
    uid = pod[0].uid
    others = (each for each in inputs.pending if each[0].uid != uid)
    return replace(
        inputs,
        running=tuple(each for each in inputs.running if each[0].uid != uid),
        pending=tuple(others) if keep_pending else (),
    )
