"""Errors of CEL selectors, with upstream's texts.

Upstream: cel-go 0.26 common/error.go, common/errors.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NO_OVERLOAD: Final = "no such overload"
COST_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
NO_OFFSET: Final = -1
"""Offset of an error that concerns no place of the expression."""
ISSUES_MAX: Final = 100
"""Number of issues that are printed; only the number of the others is."""

# The line under the source marks the column; below characters that are not ASCII it has wide ones.
_WIDE_DOT, _WIDE_MARK = "\uff0e", "\uff3e"
# Upstream shows no longer lines.
_SNIPPET_MAX_BYTES = 16384


class CelCompileError(ValueError):
    """The expression does not compile upstream; the text is upstream's."""


class CelRunError(Exception):
    """An error in place of a value, with upstream's text; `&&`, `||` and loops may ignore it."""


class CelAbortError(Exception):
    """An error that ends the whole evaluation, with upstream's text; no operator ignores it."""


class CelCostError(CelAbortError):
    """The evaluation costs more than allowed."""

    def __init__(self) -> None:
        super().__init__(COST_EXCEEDED)


@dataclass(frozen=True, slots=True)
class Issue:
    """One error of compilation. offset: in characters, or `NO_OFFSET`."""

    offset: int
    text: str


class IssuesError(Exception):
    """Issues that end the compilation, in the order of their discovery."""

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__("; ".join(issue.text for issue in issues))
        self.issues = issues


def no_overload() -> CelRunError:
    """Return the error of an operator whose operands do not fit."""
    return CelRunError(NO_OVERLOAD)


def issues_text(issues: list[Issue], source: str) -> str:
    """Return all issues as upstream prints them: sorted by offset, each with its line."""
    lines = source.split("\n")
    # Offsets of the lines, and of the end.
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    ordered = sorted(issues[:ISSUES_MAX], key=lambda issue: issue.offset)
    texts = [_issue_text(issue, lines, starts, bool(source)) for issue in ordered]
    if len(issues) > ISSUES_MAX:
        texts.append(f"{len(issues) - ISSUES_MAX} more errors were truncated")
    return "\n".join(texts)


def _issue_text(issue: Issue, lines: list[str], starts: list[int], has_source: bool) -> str:
    if issue.offset == NO_OFFSET:
        return f"ERROR: <input>:-1:0: {issue.text}"
    number = next(
        n for n in range(len(lines)) if issue.offset < starts[n + 1] or n == len(lines) - 1
    )
    column = issue.offset - starts[number]
    # Without characters there is no line to show, and upstream's column is one less.
    if not has_source:
        return f"ERROR: <input>:1:0: {issue.text}"
    text = f"ERROR: <input>:{number + 1}:{column + 1}: {issue.text}"
    snippet = lines[number].replace("\t", " ")
    if len(snippet.encode("utf-8", "replace")) > _SNIPPET_MAX_BYTES:
        return text
    dots = "".join("." if char < "\x80" else _WIDE_DOT for char in snippet[:column])
    is_wide = snippet[column : column + 1] >= "\x80"
    return f"{text}\n | {snippet}\n | {dots}{_WIDE_MARK if is_wide else '^'}"
