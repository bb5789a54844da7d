"""The table of a parity run: one line for each suite and path, then what is missing and differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scripts.recordings.result import RecordingResult
from scripts.recordings.suites import Answer

COLUMNS = ("suite", "path", "cases", "decisions", "compared", "mismatches", "not supported yet")
MAX_SHOWN_CHARS = 400


class Report:
    """Add up answers by suite and path, in the order of their first answer."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], tuple[list[Answer], RecordingResult]] = {}

    def add(self, answer: Answer) -> None:
        key = (answer.suite, answer.path_name)
        answers, total = self._rows.setdefault(key, ([], RecordingResult()))
        answers.append(answer)
        total.add(answer.result)

    @property
    def mismatches(self) -> int:
        return sum(len(total.mismatches) for _, total in self._rows.values())

    @property
    def unsupported(self) -> int:
        """Number of decisions that were not, or not completely, compared."""
        left = (
            total.unsupported.total() + total.partly.total() for _, total in self._rows.values()
        )
        return sum(left)

    def lines(self, shown: int) -> list[str]:
        """Return the table, and below it at most `shown` mismatches of each of its lines."""
        rows = [COLUMNS, *(self._row(*key) for key in self._rows)]
        return [*_aligned(rows), "", *self._notes(), *self._differences(shown), self._verdict()]

    def _row(self, suite: str, path_name: str) -> tuple[str, ...]:
        answers, total = self._rows[suite, path_name]
        counts = (
            len(answers),
            total.decisions,
            total.compared,
            len(total.mismatches),
            total.unsupported.total(),
        )
        return (suite, path_name, *(f"{count:,}" for count in counts))

    def _notes(self) -> Iterable[str]:
        """Yield what is missing, with all paths to which it applies."""
        paths_of: dict[tuple[str, str], list[str]] = {}
        for (suite, path_name), (_, total) in self._rows.items():
            for note in notes_on(total):
                paths_of.setdefault((suite, note), []).append(path_name)
        for (suite, note), paths in paths_of.items():
            yield f"{suite} {','.join(paths)}: {note}"

    def _differences(self, shown: int) -> Iterable[str]:
        for (suite, path_name), (_, total) in self._rows.items():
            found = total.mismatches
            for each in found[:shown]:
                cut = each if len(each) <= MAX_SHOWN_CHARS else each[: MAX_SHOWN_CHARS - 1] + "…"
                yield f"{suite} {path_name}: {cut}"
            if len(found) > shown:
                yield f"{suite} {path_name}: and {len(found) - shown:,} more"

    def _verdict(self) -> str:
        compared = sum(total.compared for _, total in self._rows.values())
        left = sum(total.unsupported.total() for _, total in self._rows.values())
        return (
            f"{compared:,} decisions compared, {self.mismatches:,} mismatches, "
            f"{left:,} not supported yet"
        )


def notes_on(total: RecordingResult) -> Iterable[str]:
    """Yield what is missing, the most frequent first."""
    for what, count in total.unsupported.most_common():
        yield f"{count:,} not supported yet: {what}"
    for what, count in total.partly.most_common():
        yield f"{count:,} compared but for PostFilter: {what}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows with aligned columns: names left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
