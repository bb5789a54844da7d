"""Options, preparation and output that the commands fit, grow and drain share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from roadstead.cli.notes import echo_note
from roadstead.cli.options import (
    Callback,
    OutputFormat,
    RunOptions,
    SourceOptions,
    config_parameters,
    format_option,
    seed_option,
    settings_option,
    source_parameters,
)

if TYPE_CHECKING:
    from rich.console import Console

    from roadstead.api.moment import RunMoment
    from roadstead.inputs.loaded import Loaded
    from roadstead.report.what_if_output import AnswerFiles
    from roadstead.run import RunPlan

INCOMPLETE: Final = 1
"""Exit status if something stays pending."""

moment_parameters = (
    *source_parameters,
    click.option(
        "--run",
        type=click.Path(path_type=Path),
        metavar="RUN",
        help="Start from a moment of a simulated run: the folder of roadstead simulate (its first "
        "run), or of one run in it. The run's own configuration decides, unless one is given.",
    ),
    click.option(
        "--at",
        metavar="TIME",
        help="The simulated time at which to start from --run, such as 3h20m [default: 0s]. The "
        "run is played again up to this time, with all events of this time.",
    ),
)
"""Options of the source of nodes and pods, a moment of a simulated run included."""

one_scheduler_parameters = (*config_parameters, seed_option, settings_option)
"""Options of decisions by one scheduler in this process."""


@dataclass(frozen=True, slots=True)
class AnswerTarget:
    """Folder and form of an answer. may_replace: another answer in the folder may be replaced."""

    output: Path | None
    may_replace: bool
    output_format: OutputFormat


def answer_parameters(replace_flag: str) -> tuple[Callable[[Callback], Callback], ...]:
    """Return the options of an `AnswerTarget`. replace_flag: name of the flag for `may_replace`."""
    return (
        click.option(
            "--output",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Folder for the answer: JSON, and its table as Parquet.",
        ),
        click.option(
            replace_flag,
            "may_replace",
            is_flag=True,
            help="Replace another answer in the --output folder.",
        ),
        format_option,
    )


def prepare(
    source: SourceOptions,
    options: RunOptions,
    target: AnswerTarget,
    *,
    replace_flag: str = "--force",
) -> tuple[Loaded, RunPlan]:
    """Check the options, read the inputs and make the plan. Raises InputError or UsageError."""
    source.check(options.config)
    options.check()
    # Wrong options are reported before the modules for reading and deciding are loaded.
    from roadstead.cli import plan as plans
    from roadstead.cli.schedule_run import print_notes
    from roadstead.cli.sources import load
    from roadstead.report.what_if_output import check_answer_folder

    if target.output is not None:
        check_answer_folder(target.output, may_replace=target.may_replace, flag=replace_flag)
    settings = plans.read_settings(options.with_inline_default())
    if source.run is None:
        config = plans.read_config(options)
        loaded = load(source, with_digests=False)
    else:
        moment = _at_moment(source.run, source.at, options.plugin)
        loaded = moment.loaded
        # A recorded run is continued with its own configuration unless the user asks about
        # another.
        has_given_config = options.config is not None or options.preset is not None
        config = plans.read_config(options) if has_given_config else moment.config
        settings = settings if options.settings is not None else moment.settings_with(options.seed)
    run_plan = plans.make_plan(options, settings, config, loaded.cluster)
    if settings.scheduler_count > 1:
        echo_note(f"schedulers: {settings.scheduler_count} are set; one decides what-if questions.")
    print_notes(loaded)
    return loaded, run_plan


def _at_moment(run: Path, at: str | None, plugins: tuple[str, ...]) -> RunMoment:
    """Play a simulated run up to a moment, and return its state then."""
    from roadstead.api.moment import load_moment, time_of
    from roadstead.cli.simulate_run import shown_runs

    at_us = 0 if at is None else time_of(at)
    with shown_runs(max(1, at_us), runs=1) as on_progress:
        return load_moment(run, at_us, plugins, on_progress)


def answer(
    target: AnswerTarget, files: AnswerFiles, show: Callable[[Console], None], *, is_complete: bool
) -> None:
    """Write and print an answer. Exits with status 1 if something stays pending."""
    from roadstead.report.what_if_output import write_answer

    if target.output is not None:
        write_answer(target.output, files)
    if target.output_format == "json":
        from roadstead.cli.result_forms import print_json

        print_json(files.document)
    else:
        from rich.console import Console

        show(Console())
    if target.output is not None:
        click.echo(f"\nWritten to {target.output}", err=True)
    if not is_complete:
        raise click.exceptions.Exit(INCOMPLETE)
