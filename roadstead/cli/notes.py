"""Notes and errors on standard error: wrapped on a terminal, otherwise one line each."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import Final

import click

from roadstead.protocol.errors import printable

INDENT: Final = "  "


def echo_note(text: str) -> None:
    """Print a text on standard error, without control characters."""
    click.echo(wrapped(printable(text)) if sys.stderr.isatty() else printable(text), err=True)


def wrapped(text: str) -> str:
    """Wrap lines between words; names are never broken, so that they can be copied."""
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
