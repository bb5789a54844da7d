"""What the commands fit, grow and drain share: options, preparation, and output of the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from roadstead.cli.notes import echo_note
from roadstead.cli.options import (
    Callback,
    Form,
    PlanOptions,
    SourceOptions,
    config_parameters,
    format_option,
    seed_option,
    settings_option,
)

if TYPE_CHECKING:
    from rich.console import Console

    from roadstead.inputs.loaded import Loaded
    from roadstead.report.what_if_output import AnswerFiles
    from roadstead.run import RunPlan

INCOMPLETE: Final = 1
"""Exit status if something stays pending."""

plan_of_one_parameters = (*config_parameters, seed_option, settings_option)
"""Options of decisions by one scheduler in this process."""


@dataclass(frozen=True, slots=True)
class AnswerTarget:
    """Where the answer goes, and its form. is_replaced: the folder may have another answer."""

    output: Path | None
    is_replaced: bool
    form: Form


def answer_parameters(replace_flag: str) -> tuple[Callable[[Callback], Callback], ...]:
    """Return the options of an `AnswerTarget`."""
    return (
        click.option(
            "--output",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Folder for the answer: JSON, and its table as Parquet.",
        ),
        click.option(
            replace_flag,
            "is_replaced",
            is_flag=True,
            help="Replace another answer in the --output folder.",
        ),
        format_option,
    )


def prepare(
    source: SourceOptions, plan: PlanOptions, target: AnswerTarget, *, replace_flag: str = "--force"
) -> tuple[Loaded, RunPlan]:
    """Check the options, read the inputs and make the plan. Raises InputError or UsageError."""
    source.check(plan.config)
    plan.check()
    from roadstead.cli import plan as plans
    from roadstead.cli.scheduling import print_notes
    from roadstead.cli.sources import load
    from roadstead.inputs.unsupported import supported
    from roadstead.report.what_if_output import check_answer_folder

    if target.output is not None:
        check_answer_folder(target.output, is_replaced=target.is_replaced, flag=replace_flag)
    settings = plans.read_settings(plan.or_inline())
    config = plans.read_config(plan)
    loaded = load(source, with_digests=False)
    run_plan = plans.make_plan(plan, settings, config, loaded.cluster)
    if settings.scheduler_count > 1:
        echo_note(f"schedulers: {settings.scheduler_count} are set; one decides what-if questions.")
    # As for `explain --after-run`: one such pod would end the run that places the others.
    loaded = supported(loaded, run_plan, skips=True)
    print_notes(loaded)
    return loaded, run_plan


def answer(
    target: AnswerTarget, files: AnswerFiles, show: Callable[[Console], None], *, is_complete: bool
) -> None:
    """Write and print an answer. Exits with status 1 if something stays pending."""
    from roadstead.report.what_if_output import write_answer

    if target.output is not None:
        write_answer(target.output, files)
    if target.form == "json":
        from roadstead.cli.result_forms import print_json

        print_json(files.document)
    else:
        from rich.console import Console

        show(Console())
    if target.output is not None:
        click.echo(f"\nWritten to {target.output}", err=True)
    if not is_complete:
        raise click.exceptions.Exit(INCOMPLETE)
