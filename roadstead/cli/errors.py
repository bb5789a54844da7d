"""Reporting of expected errors: one text on standard error, an exit status, no traceback.

1  the run failed; for fit, grow and drain also: something does not fit
2  the input is invalid: a file, an object, a field, a flag
3  a plugin does not support a field of a pod
"""

from __future__ import annotations

from typing import Final

import click

from roadstead.cli.exhaustion import allow_files, exhausted
from roadstead.cli.notes import echo_note
from roadstead.protocol.errors import InputError, RoadsteadError, UnsupportedError

FAILED: Final = 1
BAD_INPUT: Final = 2
UNSUPPORTED: Final = 3


EXIT_STATUS: Final = "Exit status"
USUAL_STATUSES: Final = (
    f"{EXIT_STATUS}: 0 done, 1 failed, 2 invalid input, 130 or 143 interrupted (SIGINT, SIGTERM)."
)
"""For the help of commands that have no other meanings."""


class ReportingCommand(click.Command):
    """A command that reports expected errors as a text and an exit status."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help text, with the usual exit statuses if it has none."""
        super().format_help_text(ctx, formatter)
        if EXIT_STATUS not in (self.help or ""):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(USUAL_STATUSES)

    def invoke(self, ctx: click.Context) -> object:
        allow_files()
        try:
            result: object = super().invoke(ctx)
        except RoadsteadError as error:
            echo_note(error_text(error))
            raise click.exceptions.Exit(exit_status(error)) from error
        except Exception as error:
            if not (why := exhausted(error)):
                raise
            click.echo(f"The run failed: {why}", err=True)
            raise click.exceptions.Exit(FAILED) from error
        return result


def exit_status(error: RoadsteadError) -> int:
    if isinstance(error, InputError):
        return BAD_INPUT
    return UNSUPPORTED if isinstance(error, UnsupportedError) else FAILED


def error_text(error: RoadsteadError) -> str:
    """The error's text; an introduction is added to errors that are not about the input.

    An error that exhausted memory, files or threads caused has their text, which names the remedy.
    """
    names_input = isinstance(error, (InputError, UnsupportedError))
    return str(error) if names_input else f"The run failed: {exhausted(error) or error}"
