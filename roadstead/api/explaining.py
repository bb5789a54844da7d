"""Explanations of pods, for the command line and the Python API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from roadstead.cycle.explain import Explained, Explanation
from roadstead.facts.pod import Pod
from roadstead.inputs.find_pod import GivenPod
from roadstead.inputs.loaded import Loaded
from roadstead.report.explain_sections import PendingReport, pending_report
from roadstead.run import Launcher, Progress, RunInputs, RunPlan


def explain_pod(
    launcher: Launcher,
    loaded: Loaded,
    plan: RunPlan,
    given: GivenPod,
    progress: Callable[[Progress], None],
    *,
    after_run: bool,
) -> Explanation:
    """Explain one pod of the inputs. after_run: all other pending pods are scheduled first."""
    pod = given.identity, given.facts
    inputs = without(loaded.inputs, pod, keep_pending=after_run)
    return launcher.explain(inputs, plan, pod, progress)


def explain_pending(
    launcher: Launcher,
    loaded: Loaded,
    plan: RunPlan,
    progress: Callable[[Progress], None],
    *,
    after_run: bool,
) -> PendingReport:
    """Explain every pending pod. after_run: all are scheduled, and those left are explained."""
    pods = loaded.inputs.pending
    first = loaded.inputs if after_run else replace(loaded.inputs, pending=())
    explained: tuple[Explained, ...] = ()
    if pods:
        explained = launcher.explain_pending(first, plan, pods, progress)
    return pending_report(explained, given=len(pods), is_after_run=after_run)


def without(inputs: RunInputs, pod: Pod, *, keep_pending: bool) -> RunInputs:
    """The inputs without the pod; other pending pods only if they are to be scheduled first."""
    uid = pod[0].uid
    others = (each for each in inputs.pending if each[0].uid != uid)
    return replace(
        inputs,
        running=tuple(each for each in inputs.running if each[0].uid != uid),
        pending=tuple(others) if keep_pending else (),
    )
