"""Running and printing explanations of pods."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from roadstead.api.explain_steps import explain_pending, explain_pod
from roadstead.cli.notes import echo_note
from roadstead.cli.options import OutputFormat
from roadstead.cli.progress import shown_progress
from roadstead.cli.result_forms import print_json
from roadstead.cli.schedule_run import print_notes, write_text
from roadstead.cli.session import Session
from roadstead.inputs.loaded import Loaded
from roadstead.inputs.not_created import find_created
from roadstead.protocol.errors import printable
from roadstead.report.result import installed_versions
from roadstead.run import RunPlan

if TYPE_CHECKING:
    from roadstead.report.explain_page import PageOrigin


@dataclass(frozen=True, slots=True)
class Question:
    """The object of an explanation.

    pod: name of a pod or a workload; None for every pending pod. after_run: schedule the other pods
    first.
    """

    pod: str | None
    after_run: bool = False


@dataclass(frozen=True, slots=True)
class ExplanationTarget:
    """The output of an explanation.

    top: number of nodes to show, None for the default. html: file for a page, None for none.
    """

    output_format: OutputFormat
    top: int | None = None
    html: Path | None = None


def explain(
    session: Session, loaded: Loaded, plan: RunPlan, question: Question, target: ExplanationTarget
) -> None:
    """Print the answer to a question. Raises InputError if the pod is ambiguous."""
    print_notes(loaded)
    if question.pod is None:
        _explain_pending(session, loaded, plan, question, target)
    else:
        _explain_pod(session, loaded, plan, question, target)
    if target.html is not None:
        click.echo(f"\nWritten to {printable(str(target.html))}", err=True)


def _explain_pod(
    session: Session,
    loaded: Loaded,
    plan: RunPlan,
    question: Question,
    target: ExplanationTarget,
) -> None:
    assert question.pod is not None, "a question about one pod"
    # For a pod that was refused at its creation, the error names the reason.
    chosen = find_created(loaded, question.pod)
    if chosen.note:
        echo_note(chosen.note)
    uid, after_run = chosen.pod.identity.uid, question.after_run
    others = sum(identity.uid != uid for identity, _ in loaded.inputs.pending)
    if others and not after_run:
        # A run also places the other pods, so its result may seem to contradict this answer.
        echo_note(
            f"Explained on the cluster as given, without the {others:,} other pending pods; "
            "--after-run schedules them first."
        )
    elif others:
        echo_note(
            f"Explained as the last pod: the {others:,} other pending pods are scheduled first. "
            "A run may place it before some of them."
        )
    with shown_progress() as progress:
        explanation = explain_pod(
            session.launcher(), loaded, plan, chosen.pod, progress, after_run=after_run
        )
    if target.html is not None:
        from roadstead.report.explain_page import explanation_page

        page = explanation_page(explanation, _page_origin(session, loaded), target.top)
        write_text(target.html, page)
    if target.output_format == "json":
        print_json(explanation.document())
        return
    from rich.console import Console

    from roadstead.report.explain_table import ShownLimits, print_explanation

    print_explanation(Console(), explanation, ShownLimits.of(target.top))


def _explain_pending(
    session: Session,
    loaded: Loaded,
    plan: RunPlan,
    question: Question,
    target: ExplanationTarget,
) -> None:
    after_run = question.after_run
    with shown_progress() as progress:
        report = explain_pending(session.launcher(), loaded, plan, progress, after_run=after_run)
    if target.html is not None:
        from roadstead.report.explain_page import pending_page

        write_text(target.html, pending_page(report, _page_origin(session, loaded), target.top))
    if target.output_format == "json":
        print_json(report.document())
        return
    from rich.console import Console

    from roadstead.report.explain_table import ShownLimits, print_pending

    print_pending(Console(), report, ShownLimits.of(target.top))


def _page_origin(session: Session, loaded: Loaded) -> PageOrigin:
    from roadstead.report.explain_page import PageOrigin

    inputs = loaded.inputs
    counts = f"{len(inputs.nodes):,} nodes, {len(inputs.running):,} running pods"
    versions = ", ".join(f"{name} {version}" for name, version in installed_versions().items())
    return PageOrigin(
        command=shlex.join(("roadstead", *session.args)),
        source=f"{loaded.source}: {counts}, {len(inputs.pending):,} pending",
        versions=versions,
    )
