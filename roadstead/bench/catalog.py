"""The catalog of workloads: scheduler_perf's, Roadstead's own, and those of a user's file.

One of Roadstead's own replays the openb trace of a GPU cluster, which the user has to download.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

from roadstead.bench import roadstead_workloads
from roadstead.bench.build import build_script
from roadstead.bench.reading import TestCase, read_cases
from roadstead.bench.script import Script
from roadstead.protocol.errors import InputError, cut_short

PERFORMANCE = "performance"
"""Label of the workloads that upstream measures."""

_PREFIXES = ("schedulingwith", "scheduling")
"""Beginnings of case names that a user may leave out."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One workload of a test case. is_default: the name of the case alone selects it.

    make: builds its script. is_measured: upstream measures it, or it is Roadstead's own.
    """

    case: str
    workload: str
    make: Callable[[], Script]
    is_default: bool = False
    is_measured: bool = False

    @property
    def name(self) -> str:
        return f"{self.case}/{self.workload}" if self.workload else self.case


def built_in(seed: int = 0, openb_path: Path | None = None) -> list[CatalogEntry]:
    """All workloads that are part of the package."""
    return [*_scheduler_perf(), *_roadstead(seed), _openb(openb_path)]


def of_file(path: Path) -> list[CatalogEntry]:
    """The workloads of a user's file. Raises InputError."""
    return _entries(read_cases(path))


def _scheduler_perf() -> list[CatalogEntry]:
    with as_file(files(__package__) / "workloads" / "scheduler_perf.yaml") as path:
        return _entries(read_cases(path))


def _entries(cases: Iterable[TestCase]) -> list[CatalogEntry]:
    entries = []
    for case in cases:
        measured = [PERFORMANCE in (*case.spec.labels, *w.labels) for w in case.spec.workloads]
        # The first workload that upstream measures, or the first of all.
        default = measured.index(True) if any(measured) else 0
        for index, workload in enumerate(case.spec.workloads):
            make = partial(build_script, case, workload)
            is_default = index == default
            entries.append(
                CatalogEntry(case.name, workload.name, make, is_default, measured[index])
            )
    return entries


def _roadstead(seed: int) -> list[CatalogEntry]:
    entries = []
    for case in roadstead_workloads.ROADSTEAD_CASES:
        for index, (nodes, pods) in enumerate(case.sizes):
            workload = roadstead_workloads.size_name(nodes, pods)
            make = partial(case.make, f"{case.name}/{workload}", nodes, pods, seed)
            entries.append(CatalogEntry(case.name, workload, make, index == 0, is_measured=True))
    return entries


def _openb(path: Path | None) -> CatalogEntry:
    def make() -> Script:
        if path is None:
            problem = (
                "is required for openb: a trace file, or the folder of its CSV files "
                "(roadstead trace import openb --help says where they are published)"
            )
            raise InputError(problem, source="flags", field="--openb")
        return roadstead_workloads.openb(
            roadstead_workloads.OPENB, roadstead_workloads.read_openb(path)
        )

    return CatalogEntry(roadstead_workloads.OPENB, "", make, is_default=True, is_measured=True)


def choose(entries: Sequence[CatalogEntry], names: Sequence[str]) -> list[CatalogEntry]:
    """Return the selected workloads, in the order of the names.

    `Case` selects the default workload of a case, `Case/Workload` that workload; both may contain
    the wildcard `*`. For cases, upper and lower case, hyphens and a leading "Scheduling" are
    ignored. Raises InputError for a name that matches nothing.
    """
    chosen: dict[str, CatalogEntry] = {}
    for name in names:
        case, slash, workload = name.partition("/")
        of_case = [
            each
            for each in entries
            if fnmatchcase(_comparable_name(each.case), _comparable_name(case))
        ]
        if not of_case:
            raise _unknown(name, case, {each.case for each in entries})
        if slash:
            found = [each for each in of_case if fnmatchcase(each.workload, workload)]
        else:
            found = [each for each in of_case if each.is_default]
        if not found:
            raise _unknown(name, workload, {each.workload for each in of_case})
        chosen |= {each.name: each for each in found}
    return list(chosen.values())


def _comparable_name(name: str) -> str:
    plain = re.sub(r"[^a-z0-9*?\[\]]", "", name.lower())
    for prefix in _PREFIXES:
        if plain.startswith(prefix) and plain != prefix:
            return plain.removeprefix(prefix)
    return plain


def _unknown(name: str, part: str, known: set[str]) -> InputError:
    close = difflib.get_close_matches(part, sorted(known), n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(close)}?" if close else "--list shows them all"
    return InputError(f"is no workload: {hint}", field="NAME", value=cut_short(name))
