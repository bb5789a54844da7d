"""Explaining pods of the inputs."""

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
from roadstead.cycle.explain import Explained
from roadstead.facts.pod import Pod
from roadstead.protocol.errors import printable
from roadstead.run import RunInputs, RunPlan


@dataclass(frozen=True, slots=True)
class Question:
    """pod: as `find_pod` takes it; None for every pending pod. after_run: others are scheduled."""

    pod: str | None
    after_run: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """How an explanation is printed. top: as `Limits.of` takes it."""

    form: Form
    top: int | None = None


def explain(
    session: Session, loaded: Loaded, plan: RunPlan, question: Question, answer: Answer
) -> None:
    """Print the answer to a question. InputError if it is not clear which pod is meant."""
    tell_notes(loaded)
    if question.pod is None:
        _explain_pending(session, loaded.inputs, plan, question.after_run, answer)
    else:
        _explain_pod(session, loaded.inputs, plan, question.pod, question.after_run, answer)


def _explain_pod(
    session: Session, inputs: RunInputs, plan: RunPlan, name: str, after_run: bool, answer: Answer
) -> None:
    found = find_pod(inputs, name)
    if found.note:
        click.echo(printable(found.note), err=True)
    pod = found.pod.identity, found.pod.facts
    inputs = without(inputs, pod, keep_pending=after_run)
    with shown_progress() as tell:
        explanation = session.launcher().explain(inputs, plan, pod, tell)
    if answer.form == "json":
        print_json(explanation.document())
        return
    from rich.console import Console

    from roadstead.report.explain_table import Limits, print_explanation

    print_explanation(Console(), explanation, Limits.of(answer.top))


def _explain_pending(
    session: Session, inputs: RunInputs, plan: RunPlan, after_run: bool, answer: Answer
) -> None:
    from roadstead.report.explain_sections import pending_report

    pods = inputs.pending
    first = inputs if after_run else replace(inputs, pending=())
    explained: tuple[Explained, ...] = ()
    if pods:
        with shown_progress() as tell:
            explained = session.launcher().explain_pending(first, plan, pods, tell)
    report = pending_report(explained, given=len(pods), is_after_run=after_run)
    if answer.form == "json":
        print_json(report.document())
        return
    from rich.console import Console

    from roadstead.report.explain_table import Limits, print_pending

    print_pending(Console(), report, Limits.of(answer.top))


def without(inputs: RunInputs, pod: Pod, *, keep_pending: bool) -> RunInputs:
    """The inputs without the pod; other pending pods only if they are to be scheduled first."""
    uid = pod[0].uid
    others = (each for each in inputs.pending if each[0].uid != uid)
    return replace(
        inputs,
        running=tuple(each for each in inputs.running if each[0].uid != uid),
        pending=tuple(others) if keep_pending else (),
    )
