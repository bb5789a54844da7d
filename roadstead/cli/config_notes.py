"""What became of each part of an older configuration, told to people."""

from __future__ import annotations

import click

from roadstead.config.load import LoadedConfig
from roadstead.protocol.errors import printable


def tell_config_notes(loaded: LoadedConfig) -> None:
    """One line each on standard error; none for a document of today."""
    for note in loaded.notes:
        click.echo(printable(f"{loaded.source}: {note}"), err=True)
