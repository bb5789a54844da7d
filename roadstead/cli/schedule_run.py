"""Carrying out a run and printing its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from roadstead.api import run_steps
from roadstead.cli.notes import echo_note
from roadstead.cli.options import RunFormat
from roadstead.cli.progress import shown_progress
from roadstead.cli.result_forms import print_in_form
from roadstead.cli.session import Session
from roadstead.facts.pod import Pod
from roadstead.inputs.loaded import Loaded
from roadstead.interruption import Interrupted
from roadstead.protocol.errors import InputError
from roadstead.report.result import InputDigest, RunResult
from roadstead.run import RunPlan

WRITE = "write output"
"""Name of the phase in which the output directory is written."""


@dataclass(frozen=True, slots=True)
class ResultTarget:
    """Destination of the result: a form to print, and an optional output directory."""

    output_format: RunFormat
    output: Path | None

    def check(self, *, may_replace: bool = True) -> None:
        """Raise InputError if the directory cannot be used; called before the run.

        may_replace: results of another run may be replaced.
        """
        if self.output is not None:
            run_steps.check_output(self.output, may_replace=may_replace)


def schedule(
    session: Session,
    loaded: Loaded,
    plan: RunPlan,
    target: ResultTarget,
    digests: tuple[InputDigest, ...] = (),
) -> None:
    """Run the plan, write the output directory, print the result.

    digests: of the configuration and settings files, for the output. Raises RoadsteadError if a
    step fails.
    """
    print_notes(loaded)
    with reporting_kept_results(plan):
        _carry_out(session, loaded, plan, target, digests)


def _carry_out(
    session: Session,
    loaded: Loaded,
    plan: RunPlan,
    target: ResultTarget,
    digests: tuple[InputDigest, ...],
) -> None:
    with shown_progress() as progress:
        result = run_steps.schedule(
            session.launcher(),
            loaded,
            plan,
            progress,
            watch=session.watch,
            command=("roadstead", *session.args),
        )
    if target.output is not None:
        with session.watch.phase(WRITE):
            run_steps.write_result(target.output, result, plan, (*loaded.digests, *digests))
        session.launcher().finish(plan)
    written_s = {name: s for name, s in session.watch.timings_s.items() if name == WRITE}
    timings_s = {**result.timings_s, **written_s}
    result = replace(result, timings_s=timings_s, elapsed_s=session.watch.elapsed_s)
    print_result(result, run_steps.reported_pods(loaded, result), target)
    _print_plugin_failures(result, plan)
    if target.output is None:
        # Printing replaces the output directory; until then, the run can be resumed.
        session.launcher().finish(plan)


@contextmanager
def reporting_kept_results(plan: RunPlan) -> Iterator[None]:
    """Add to an interruption what is kept of the run, and how to continue it."""
    try:
        yield
    except Interrupted as interrupted:
        journal = plan.settings.journal
        if journal is not None and any(journal.glob("*.segment")):
            interrupted.kept = (
                f"Acknowledged binds are in {journal}; the same command with --resume continues "
                "the run."
            )
        elif plan.settings.journal_copy is not None:
            interrupted.kept = (
                f"Acknowledged binds are in {journal} and {plan.settings.journal_copy}, on the "
                "nodes of control and journal-copy; on one of these, the same command with "
                "--resume continues the run."
            )
        else:
            interrupted.kept = "No result of the run is kept."
        raise


def print_notes(loaded: Loaded) -> None:
    for note in loaded.notes:
        echo_note(note)


def _print_plugin_failures(result: RunResult, plan: RunPlan) -> None:
    if plan.plugins and result.pending:
        from roadstead.api.plugin_failures import failure_notes

        for note in failure_notes(result.pending, [*plan.user_plugins()]):
            echo_note(note)


def print_result(result: RunResult, pods: Sequence[Pod], target: ResultTarget) -> None:
    """Print the result on standard output, and the output directory on standard error."""
    print_in_form(target.output_format, result, pods)
    if target.output is not None:
        click.echo(f"\nWritten to {target.output}", err=True)


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises InputError if it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from error
