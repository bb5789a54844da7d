"""`roadstead check`: what a run committed, held against the invariants, from its journal alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from roadstead.cli.errors import FAILED, ReportingCommand
from roadstead.cli.options import Form, format_option
from roadstead.protocol.errors import InputError

if TYPE_CHECKING:
    from roadstead.invariants.checker import Checked

SHOWN = 20


@click.command("check", cls=ReportingCommand)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--show",
    type=click.IntRange(0),
    default=SHOWN,
    show_default=True,
    metavar="N",
    help="Show so many violations; 0 for all.",
)
@format_option
def check_command(folder: Path, show: int, form: Form) -> None:
    """Check what a run committed, from its journal alone.

    DIR is the output folder of a run, or its journal. Every bind is held, in the order of the
    commits, against what the records before it say of the cluster: nothing overfilled, every hard
    constraint met, no pod bound twice, gangs whole. The rules are written apart from the scheduler.

    \b
    Examples:
      roadstead schedule --trace openb.trace --output out
      roadstead check out
      roadstead check out --format json

    Exit status: 0 all holds, 1 something does not, 2 DIR holds no journal or a damaged one.
    """
    from roadstead.invariants.checker import check
    from roadstead.journal.disk import RealDisk
    from roadstead.journal.records import JournalError
    from roadstead.journal.segments import Reader

    journal = folder / "journal" if (folder / "journal").is_dir() else folder
    if not journal.is_dir() or not any(journal.glob("*.segment")):
        raise InputError("holds no journal", source=str(folder))
    reader = Reader(RealDisk(journal))
    try:
        result = check(reader.records())
    except JournalError as damaged:
        raise InputError(str(damaged)) from damaged
    if form == "json":
        click.echo(json.dumps(_as_json(result, reader.last_lsn), indent=2))
    else:
        _tell(result, show)
    if result.violations:
        raise click.exceptions.Exit(FAILED)


def _as_json(result: Checked, last_lsn: int) -> dict[str, object]:
    return {
        "records": dict(result.records),
        "last_lsn": last_lsn,
        "binds_checked": result.binds_checked,
        "violations": [asdict(each) for each in result.violations],
    }


def _tell(result: Checked, show: int) -> None:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(result.records.items()))
    click.echo(f"Records: {kinds or 'none'}")
    shown = result.violations[: show or None]
    for each in shown:
        where = f"record {each.lsn}: " if each.lsn else ""
        on = f" on {each.node}" if each.node else ""
        click.echo(f"{each.invariant}  {where}{each.pod}{on}: {each.text}")
    if len(shown) < len(result.violations):
        click.echo(f"... and {len(result.violations) - len(shown):,} more (--show 0 for all)")
    held = len(result.violations) or "no"
    click.echo(f"{result.binds_checked:,} binds checked: {held} violations")
