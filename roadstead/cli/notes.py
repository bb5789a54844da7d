"""Notes of a command: what a person should know, on standard error."""

from __future__ import annotations

import click

from roadstead.protocol.errors import printable


def print_note(text: str) -> None:
    """One line on standard error."""
    click.echo(printable(text), err=True)
