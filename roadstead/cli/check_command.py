"""`roadstead check`: check committed records against the invariants, and report missing parts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from roadstead.cli.errors import FAILED, ReportingCommand
from roadstead.cli.options import OutputFormat, format_option
from roadstead.protocol.errors import InputError

if TYPE_CHECKING:
    from roadstead.invariants.checker import Checked
    from roadstead.journal.segment_end import Closed, UnreadBytes
    from roadstead.journal.segments import Reader

VIOLATIONS_SHOWN = 20


@click.command("check", cls=ReportingCommand)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--show",
    type=click.IntRange(0),
    default=VIOLATIONS_SHOWN,
    show_default=True,
    metavar="N",
    help="Maximum number of violations to show; 0 shows all.",
)
@format_option
def check_command(folder: Path, show: int, output_format: OutputFormat) -> None:
    """Check what a run committed, from its journal and its output.

    DIR is the output folder of a run, or its journal. With an output folder, a journal that
    --journal placed elsewhere is found, too. The output folder of `roadstead simulate`, and
    DIR/runs of `roadstead sweep --tables`, are checked by their tables: no node holds more than it
    has, no device is in two claims, each pod is in one place, none is lost.

    Each bind is checked, in commit order, against the state of the cluster after the earlier
    records: no node is overfilled, every hard constraint is met, volumes are reachable, no pod is
    bound twice or lost, gangs are complete, and no pod is evicted for a pod that has no higher
    priority. The rules are implemented apart from the scheduler. The journal of a finished run must
    have an end record, and the written placements must equal those of the journal. Torn or damaged
    parts are reported with file, offset and record.

    \b
    Examples:
      roadstead schedule --trace openb.trace --output out
      roadstead check out
      roadstead check out --format json

    Exit status: 0 no violation, and all records were read; 1 a violation, or records that were left
    out; 2 DIR has no journal, or one of another release.
    """
    from roadstead.api.run_check import runs_in
    from roadstead.cli.check_output import journal_and_output
    from roadstead.cli.check_simulated import check_simulated
    from roadstead.journal_copy.folder import INCOMPLETE

    # A simulated run has tables in place of a journal.
    if runs := runs_in(folder):
        check_simulated(runs, show, output_format)
        return
    journal, output = journal_and_output(folder)
    if not folder.exists():
        raise InputError("does not exist", source=str(folder))
    if not journal.is_dir() or not any(journal.glob("*.segment")):
        problem = (
            "holds no journal and no simulated runs (roadstead schedule --output and roadstead "
            "simulate write them, roadstead demo does not)"
        )
        raise InputError(problem, source=str(journal))
    # This file marks a copy that may lack acknowledged records.
    if (journal / INCOMPLETE).exists():
        problem = "is a copy that lacks records of its journal: check the journal, or another copy"
        raise InputError(problem, source=str(journal))
    checked = _checked(journal, output)
    if output_format == "json":
        click.echo(json.dumps(_as_json(checked), indent=2))
    else:
        _print_checked(checked, show)
    if checked.result.violations or checked.left_out:
        raise click.exceptions.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class _CheckedJournal:
    """The result of checking a journal.

    end: its end record, with number and digest of all records; None without one. left_out: parts
    that were not read. compared: number of bound pods compared with the written placements; None if
    not compared.
    """

    result: Checked
    last_lsn: int
    end: Closed | None
    left_out: tuple[UnreadBytes, ...]
    compared: int | None


def _checked(journal: Path, output: Path | None) -> _CheckedJournal:
    """Check a journal. Raises InputError if this release cannot read it."""
    from roadstead.cli.check_output import differences_of_output
    from roadstead.invariants.checker import Checker
    from roadstead.journal.bound_pods import BoundPods
    from roadstead.journal.disk import RealDisk
    from roadstead.journal.headers import FINISHED
    from roadstead.journal.records import JournalError
    from roadstead.journal.segments import Reader

    reader, checker, bound = Reader(RealDisk(journal), stops_at_damage=True), Checker(), BoundPods()
    try:
        # The records of a group were written together.
        for group in reader.groups():
            bound.apply(group)
            for record in group:
                checker.apply(record)
    except JournalError as unreadable:
        raise InputError(str(unreadable)) from unreadable
    result = checker.finish()
    # This file marks the journal of a run whose output is written.
    is_finished = (journal / FINISHED).exists()
    count = None
    if is_finished and output is not None:
        result.violations += differences_of_output(output, bound.pods)
        count = len(bound.pods)
    left_out = _left_out(reader, is_finished=is_finished)
    return _CheckedJournal(result, reader.last_lsn, reader.closed, left_out, count)


def _left_out(reader: Reader, *, is_finished: bool) -> tuple[UnreadBytes, ...]:
    """Return the parts that could not be read, or else a missing end record.

    A segment is a file of the journal. Its tail is an append that a crash interrupted; damage is a
    record whose checksum is wrong.
    """
    from roadstead.journal.headers import segment_name
    from roadstead.journal.segment_end import UnreadBytes

    unread = [each for each in (reader.damage, reader.tail) if each is not None]
    # Segments of format 1 have no end record.
    has_end = reader.closed is not None or (reader.ends and reader.ends[-1].header.format == 1)
    if is_finished and not has_end and not unread:
        next_lsn = reader.last_lsn + 1
        name, end = segment_name(next_lsn), 0
        if reader.ends:
            name, end = reader.ends[-1].name, reader.ends[-1].size_bytes
        why = "the run is finished, but the end record is missing: later records are lost"
        unread.append(UnreadBytes(name, offset=end, size_bytes=0, lsn=next_lsn, why=why))
    return tuple(unread)


def _as_json(checked: _CheckedJournal) -> dict[str, object]:
    end = checked.end and {"records": checked.end.records, "digest": f"{checked.end.digest:016x}"}
    return {
        "records": dict(checked.result.records),
        "last_lsn": checked.last_lsn,
        "end": end,
        "left_out": [asdict(each) for each in checked.left_out],
        "placements_compared": checked.compared,
        "binds_checked": checked.result.binds_checked,
        "counts": dict(checked.result.counts),
        "violations": [asdict(each) for each in checked.result.violations],
    }


def _print_checked(checked: _CheckedJournal, show: int) -> None:
    result = checked.result
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(result.records.items()))
    click.echo(f"Records: {kinds or 'none'}")
    if checked.end is not None:
        click.echo(f"End: {checked.end.records:,} records, digest {checked.end.digest:016x}")
    for left_out in checked.left_out:
        click.echo(f"Left out: {left_out}")
    for line in _count_lines(result.counts):
        click.echo(line)
    shown = result.violations[: show or None]
    for each in shown:
        where = f"record {each.lsn}: " if each.lsn else ""
        on = f" on {each.node}" if each.node else ""
        click.echo(f"{each.invariant}  {where}{each.pod}{on}: {each.text}")
    if len(shown) < len(result.violations):
        click.echo(f"... and {len(result.violations) - len(shown):,} more (--show 0 for all)")
    violations = len(result.violations) or "no"
    if checked.compared is not None:
        click.echo(f"{checked.compared:,} bound pods compared with the written placements")
    click.echo(f"{result.binds_checked:,} binds checked: {violations} violations")


def _count_lines(counts: Counter[str]) -> Iterator[str]:
    """Counts of events that violate no rule by themselves; zero counts are omitted.

    overtaken: binds of a pod while an identical pod waited that precedes it in the queue.
    """
    if counts["claims_bound"]:
        yield f"Claims: {counts['claims_bound']:,} bound with their pods"
    if counts["evictions"]:
        yield (
            f"Evictions: {counts['evictions']:,}, {counts['beyond_budget']:,} beyond a disruption "
            f"budget; {counts['preemptors_waiting']:,} preemptors wait at the end"
        )
    if counts["overtaken"]:
        yield f"Order: {counts['overtaken']:,} binds while an identical pod with precedence waited"
