"""What the commands fit, grow and drain share: options, preparation, and output of the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from roadstead.cli.notes import echo_note
from roadstead.cli.options import (
    Form,
    PlanOptions,
    SourceOptions,
    config_parameters,
    seed_option,
    settings_option,
)
from roadstead.run import RunPlan

if TYPE_CHECKING:
    from rich.console import Console

    from roadstead.inputs.loaded import Loaded
    from roadstead.report.what_if_output import AnswerFiles

INCOMPLETE: Final = 1
"""Exit status if something stays pending."""

plan_of_one_parameters = (*config_parameters, seed_option, settings_option)
"""Options of decisions by one scheduler in this process."""

answer_output_option = click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the answer: JSON, and its table as Parquet.",
)
answer_force_option = click.option(
    "--force", is_flag=True, help="Replace another answer in the --output folder."
)


def prepare(
    source: SourceOptions,
    plan: PlanOptions,
    output: Path | None,
    *,
    is_replaced: bool,
    flag: str = "--force",
) -> tuple[Loaded, RunPlan]:
    """Check the options, read the inputs and make the plan. Raises InputError or UsageError.

    flag: the option that replaces another answer.
    """
    source.check(plan.config)
    plan.check()
    from roadstead.cli import plan as plans
    from roadstead.cli.scheduling import print_notes
    from roadstead.cli.sources import load
    from roadstead.inputs.unsupported import supported
    from roadstead.report.what_if_output import check_answer_folder

    if output is not None:
        check_answer_folder(output, is_replaced=is_replaced, flag=flag)
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
    form: Form,
    output: Path | None,
    files: AnswerFiles,
    show: Callable[[Console], None],
    *,
    is_complete: bool,
) -> None:
    """Write and print an answer. Exits with status 1 if something stays pending."""
    from roadstead.report.what_if_output import write_answer

    if output is not None:
        write_answer(output, files)
    if form == "json":
        from roadstead.cli.result_forms import print_json

        print_json(files.document)
    else:
        from rich.console import Console

        show(Console())
    if output is not None:
        click.echo(f"\nWritten to {output}", err=True)
    if not is_complete:
        raise click.exceptions.Exit(INCOMPLETE)
