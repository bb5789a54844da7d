"""Explaining one pod of the inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import click

from roadstead.cli.find_pod import find_pod
from roadstead.cli.inputs import Loaded
from roadstead.cli.options import Form
from roadstead.cli.progress import shown_progress
from roadstead.cli.result_forms import print_json
from roadstead.cli.scheduling import tell_notes
from roadstead.cli.session import Session
from roadstead.facts.pod import Pod
from roadstead.protocol.errors import printable
from roadstead.run import RunInputs, RunPlan


@dataclass(frozen=True, slots=True)
class Question:
    """pod: as `find_pod` takes it. after_run: explained once all other pods are scheduled."""

    pod: str
    after_run: bool = False


def explain(
    session: Session,
    loaded: Loaded,
    plan: RunPlan,
    question: Question,
    form: Form,
    top: int | None,
) -> None:
    """Print why the pod goes where it goes. InputError if it is not clear which."""
    tell_notes(loaded)
    found = find_pod(loaded.inputs, question.pod)
    if found.note:
        click.echo(printable(found.note), err=True)
    pod = found.pod.identity, found.pod.facts
    inputs = without(loaded.inputs, pod, keep_pending=question.after_run)
    with shown_progress() as tell:
        explanation = session.launcher().explain(inputs, plan, pod, tell)
    if form == "json":
        print_json(explanation.document())
        return
    from rich.console import Console

    from roadstead.report.explain_table import Limits, print_explanation

    print_explanation(Console(), explanation, Limits.of(top))


def without(inputs: RunInputs, pod: Pod, *, keep_pending: bool) -> RunInputs:
    """The inputs without the pod; other pending pods only if they are to be scheduled first."""
    uid = pod[0].uid
    others = (each for each in inputs.pending if each[0].uid != uid)
    return replace(
        inputs,
        running=tuple(each for each in inputs.running if each[0].uid != uid),
        pending=tuple(others) if keep_pending else (),
    )
