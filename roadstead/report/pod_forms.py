"""The pods of a run as text for other programs: CSV and names."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import astuple, fields
from typing import TextIO

from roadstead.report.pods import PodLine


def write_csv(lines: Iterable[PodLine], out: TextIO) -> None:
    """A header and one row for each pod."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(each.name for each in fields(PodLine))
    writer.writerows(astuple(each) for each in lines)


def write_names(lines: Iterable[PodLine], out: TextIO) -> None:
    """Write `namespace/name node` for each pod; only the name for a pending one."""
    out.writelines(f"{each.pod} {each.node}".rstrip() + "\n" for each in lines)
