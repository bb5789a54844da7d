"""Notes and errors on standard error: wrapped on a terminal, one line each anywhere else."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import Final

import click

from roadstead.protocol.errors import printable

INDENT: Final = "  "


def echo_note(text: str) -> None:
    """Print a text on standard error, without what would move the cursor of a terminal."""
    click.echo(wrapped(printable(text)) if sys.stderr.isatty() else printable(text), err=True)


def wrapped(text: str) -> str:
    """The lines of a text, wrapped between words; names are whole, so that they can be copied."""
    width = shutil.get_terminal_size().columns
    return "\n".join(
        textwrap.fill(
            line,
            width,
            subsequent_indent=INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.split("\n")
    )
