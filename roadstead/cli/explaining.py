"""Explaining pods of the inputs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from roadstead.cli.inputs import Loaded
from roadstead.cli.not_created import find_created
from roadstead.cli.options import Form
from roadstead.cli.progress import shown_progress
from roadstead.cli.result_forms import print_json
from roadstead.cli.scheduling import tell_notes, write_text
from roadstead.cli.session import Session
from roadstead.cycle.explain import Explained
from roadstead.facts.pod import Pod
from roadstead.protocol.errors import printable
from roadstead.report.result import installed_versions
from roadstead.run import RunInputs, RunPlan

if TYPE_CHECKING:
    from roadstead.report.explain_page import PageFacts


@dataclass(frozen=True, slots=True)
class Question:
    """pod: as `find_pod` takes it; None for every pending pod. after_run: others are scheduled."""

    pod: str | None
    after_run: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """How an explanation is printed. top: as in `Limits.of`. html: file of a page."""

    form: Form
    top: int | None = None
    html: Path | None = None


def explain(
    session: Session, loaded: Loaded, plan: RunPlan, question: Question, answer: Answer
) -> None:
    """Print the answer to a question. InputError if it is not clear which pod is meant."""
    tell_notes(loaded)
    if question.pod is None:
        _explain_pending(session, loaded, plan, question.after_run, answer)
    else:
        _explain_pod(session, loaded, plan, question.pod, question.after_run, answer)
    if answer.html is not None:
        click.echo(f"\nWritten to {printable(str(answer.html))}", err=True)


def _explain_pod(
    session: Session, loaded: Loaded, plan: RunPlan, name: str, after_run: bool, answer: Answer
) -> None:
    found = find_created(loaded, name)
    if found.note:
        click.echo(printable(found.note), err=True)
    pod = found.pod.identity, found.pod.facts
    inputs = without(loaded.inputs, pod, keep_pending=after_run)
    with shown_progress() as tell:
        explanation = session.launcher().explain(inputs, plan, pod, tell)
    if answer.html is not None:
        from roadstead.report.explain_page import explanation_page

        page = explanation_page(explanation, _page_facts(session, loaded), answer.top)
        write_text(answer.html, page)
    if answer.form == "json":
        print_json(explanation.document())
        return
    from rich.console import Console

    from roadstead.report.explain_table import Limits, print_explanation

    print_explanation(Console(), explanation, Limits.of(answer.top))


def _explain_pending(
    session: Session, loaded: Loaded, plan: RunPlan, after_run: bool, answer: Answer
) -> None:
    from roadstead.report.explain_sections import pending_report

    pods = loaded.inputs.pending
    first = loaded.inputs if after_run else replace(loaded.inputs, pending=())
    explained: tuple[Explained, ...] = ()
    if pods:
        with shown_progress() as tell:
            explained = session.launcher().explain_pending(first, plan, pods, tell)
    report = pending_report(explained, given=len(pods), is_after_run=after_run)
    if answer.html is not None:
        from roadstead.report.explain_page import pending_page

        write_text(answer.html, pending_page(report, _page_facts(session, loaded), answer.top))
    if answer.form == "json":
        print_json(report.document())
        return
    from rich.console import Console

    from roadstead.report.explain_table import Limits, print_pending

    print_pending(Console(), report, Limits.of(answer.top))


def _page_facts(session: Session, loaded: Loaded) -> PageFacts:
    from roadstead.report.explain_page import PageFacts

    inputs = loaded.inputs
    counts = f"{len(inputs.nodes):,} nodes, {len(inputs.running):,} running pods"
    versions = ", ".join(f"{name} {version}" for name, version in installed_versions().items())
    return PageFacts(
        command=shlex.join(("roadstead", *session.args)),
        source=f"{loaded.source}: {counts}, {len(inputs.pending):,} pending",
        versions=versions,
    )


def without(inputs: RunInputs, pod: Pod, *, keep_pending: bool) -> RunInputs:
    """The inputs without the pod; other pending pods only if they are to be scheduled first."""
    uid = pod[0].uid
    others = (each for each in inputs.pending if each[0].uid != uid)
    return replace(
        inputs,
        running=tuple(each for each in inputs.running if each[0].uid != uid),
        pending=tuple(others) if keep_pending else (),
    )
