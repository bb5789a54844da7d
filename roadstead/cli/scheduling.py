"""Carrying out a run and telling what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from roadstead.cli.inputs import Loaded
from roadstead.cli.options import RunForm
from roadstead.cli.progress import shown_progress
from roadstead.cli.result_forms import print_in_form
from roadstead.cli.session import Session
from roadstead.facts.pod import Pod
from roadstead.interruption import Interrupted
from roadstead.protocol.errors import InputError, printable
from roadstead.report.node_use import node_use
from roadstead.report.result import InputDigest, Json, NodeUse, RunResult, installed_versions
from roadstead.run import RunOutcome, RunPlan

READ, WRITE = "read inputs", "write output"


@dataclass(frozen=True, slots=True)
class Report:
    """Where the result goes: printed in a form, and into a directory if one is named."""

    form: RunForm
    output: Path | None

    def check(self, *, is_replaced: bool = True) -> None:
        """InputError for a directory that is not ours to write to: before the run, not after.

        is_replaced: what another run left there may be replaced.
        """
        if self.output is not None:
            from roadstead.report.output import check_directory, holds_results

            check_directory(self.output)
            if not is_replaced and holds_results(self.output):
                rule = "holds the results of another run; --force replaces them"
                raise InputError(rule, source=str(self.output))


def schedule(
    session: Session,
    loaded: Loaded,
    plan: RunPlan,
    report: Report,
    digests: tuple[InputDigest, ...] = (),
) -> None:
    """Run the plan, write the output directory, print the result.

    digests: of the configuration and settings files. RoadsteadError where any of it fails.
    """
    tell_notes(loaded)
    with told_what_is_kept(plan):
        _carry_out(session, loaded, plan, report, digests)


def _carry_out(
    session: Session,
    loaded: Loaded,
    plan: RunPlan,
    report: Report,
    digests: tuple[InputDigest, ...],
) -> None:
    with shown_progress() as tell:
        outcome = session.launcher().run(loaded.inputs, plan, tell)
    result = make_result(session, loaded, plan, outcome)
    if report.output is not None:
        with session.watch.phase(WRITE):
            _write(report.output, replace(result, inputs=(*loaded.digests, *digests)), plan)
        session.launcher().finish(plan)
    timings_s = {**result.timings_s, **_written(session)}
    result = replace(result, timings_s=timings_s, elapsed_s=session.watch.elapsed_s)
    print_result(result, _of_interest(loaded, result), report)
    _print_plugin_failures(result, plan)
    if report.output is None:
        # What is printed is all that comes of it.
        session.launcher().finish(plan)


@contextmanager
def told_what_is_kept(plan: RunPlan) -> Iterator[None]:
    """A run that is interrupted says what of it is kept, and how it is continued."""
    try:
        yield
    except Interrupted as interrupted:
        journal = plan.settings.journal
        if journal is not None and any(journal.glob("*.segment")):
            interrupted.kept = (
                f"What the binder acknowledged is in {journal}; the same command with --resume "
                "continues the run."
            )
        else:
            interrupted.kept = "Nothing of the run is kept."
        raise


def tell_notes(loaded: Loaded) -> None:
    for note in loaded.notes:
        click.echo(printable(note), err=True)


def _print_plugin_failures(result: RunResult, plan: RunPlan) -> None:
    if plan.plugins and result.pending:
        from roadstead.cli.plugin_failures import failure_notes

        for note in failure_notes(result.pending, [*plan.user_plugins()]):
            click.echo(printable(note), err=True)


def make_result(session: Session, loaded: Loaded, plan: RunPlan, outcome: RunOutcome) -> RunResult:
    return RunResult(
        source=loaded.source,
        placements=outcome.placements,
        pending=outcome.pending,
        preempted=outcome.preempted,
        concurrency=outcome.concurrency,
        node_use=_use(loaded, outcome),
        scheduling_s=outcome.scheduling_s,
        elapsed_s=session.watch.elapsed_s,
        timings_s={**session.watch.timings_s, **outcome.timings_s},
        seed=plan.settings.seed,
        command=("roadstead", *session.args),
        settings=plan.settings.model_dump(mode="json"),
        not_created=loaded.not_created,
        notes=loaded.notes,
        config_notes=plan.loaded_config().notes if plan.config_text else (),
    )


def _use(loaded: Loaded, outcome: RunOutcome) -> NodeUse:
    facts_of = {identity.uid: facts for identity, facts in loaded.inputs.pending}
    running = loaded.inputs.running
    gone = {each.uid for each in outcome.preempted}
    return node_use(
        loaded.inputs.nodes,
        ((node, facts) for _, facts, node in running),
        ((each.node, facts_of[each.uid]) for each in outcome.placements),
        ((node, facts) for identity, facts, node in running if identity.uid in gone),
    )


def _written(session: Session) -> dict[str, float]:
    timings_s = session.watch.timings_s
    return {WRITE: timings_s[WRITE]} if WRITE in timings_s else {}


def _write(directory: Path, result: RunResult, plan: RunPlan) -> None:
    from roadstead.report.output import write_output

    settings = dict(result.settings)
    if plan.settings.journal == directory / "journal":
        # Where it is by default: a run elsewhere has the same settings.
        settings["journal"] = None
    config, versions = _effective(plan), installed_versions()
    complete = replace(result, config=config, versions=versions, settings=settings)
    write_output(directory, complete)


def _effective(plan: RunPlan) -> Mapping[str, Json]:
    """The configuration with every default in it: what a later release must run with as well.

    A sample that the configuration did not ask for is left out: written as its default, 0, it would
    be asked for when this is read again.
    """
    from roadstead.config.presets import load_preset

    loaded = plan.loaded_config() if plan.config_text else load_preset("default")
    if loaded.config.percentage_is_set:
        return loaded.document
    return {k: v for k, v in loaded.document.items() if k != "percentageOfNodesToScore"}


def _of_interest(loaded: Loaded, result: RunResult) -> list[Pod]:
    """The pods that were to be scheduled, and those that had to go for them."""
    gone = {each.uid for each in result.preempted}
    pods = [*loaded.inputs.pending]
    pods += [(who, facts) for who, facts, _ in loaded.inputs.running if who.uid in gone]
    return pods


def print_result(result: RunResult, pods: Sequence[Pod], report: Report) -> None:
    """The result on standard output, and where the rest was written to on standard error."""
    print_in_form(report.form, result, pods)
    if report.output is not None:
        click.echo(f"\nWritten to {report.output}", err=True)


def write_text(path: Path, text: str) -> None:
    """Write a file; InputError where it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from error
