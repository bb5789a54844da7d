"""Regular expressions of RE2, which match in time linear in pattern and text.

Upstream: Go's regexp, which has RE2's syntax; apiserver pkg/cel/library/regex.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

import re2

from roadstead.cel.errors import CelRunError

# Number of compiled patterns that are kept.
_CACHED_PATTERNS = 512
_SURROGATE = re.compile("[\ud800-\udfff]")
# By error of RE2: the error of Go's regexp.
_ERRORS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}


class _Match(Protocol):
    def start(self) -> int: ...
    def end(self) -> int: ...


class Regex(Protocol):
    """A compiled pattern."""

    def search(self, text: str, pos: int = 0) -> _Match | None: ...


class RegexError(ValueError):
    """No pattern of RE2; the text is close to upstream's."""


@lru_cache(maxsize=_CACHED_PATTERNS)
def compile_regex(pattern: str) -> Regex:
    """Compile a pattern; raises RegexError."""
    options = re2.Options()
    options.log_errors = False
    try:
        compiled: Regex = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise RegexError(_go_error(error)) from None
    return compiled


def _go_error(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    code, _, part = text.partition(": ")
    return f"error parsing regexp: {_ERRORS.get(code, code)}: `{part}`"


def _compiled(pattern: str, prefix: str = "") -> Regex:
    try:
        return compile_regex(pattern)
    except RegexError as error:
        raise CelRunError(f"{prefix}{error}") from None


def _search(regex: Regex, text: str, position: int = 0) -> _Match | None:
    try:
        return regex.search(text, position)
    except UnicodeEncodeError:
        # Half of a surrogate pair, which a string of YAML or JSON may contain; Go replaces it.
        return regex.search(_SURROGATE.sub("\ufffd", text), position)


def matches(text: str, pattern: str) -> bool:
    """Return whether the pattern occurs in the text; raises CelRunError."""
    return _search(_compiled(pattern), text) is not None


def find(text: str, pattern: str) -> str:
    """Return the first occurrence, or ""; raises CelRunError."""
    match = _search(_compiled(pattern, "Illegal regex: "), text)
    return text[match.start() : match.end()] if match is not None else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[object]:
    """Return all occurrences, at most `limit` if it is not negative; raises CelRunError."""
    regex = _compiled(pattern, "Illegal regex: ")
    results: list[object] = []
    position, last_end = 0, -1
    while position <= len(text) and len(results) != limit:
        match = _search(regex, text, position)
        if match is None:
            break
        start, end = match.start(), match.end()
        # As Go, an empty match right after a match does not count.
        if end > start or start != last_end:
            results.append(text[start:end])
        last_end = end
        position = end if end > start else end + 1
    return results
