"""Semantic versions, read and ordered as upstream does.

Upstream: github.com/blang/semver/v4; for `semver(text, true)`, apiserver
pkg/cel/library/semverlib.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from roadstead.facts.quoting import go_quote

_UINT64_MAX = 2**64 - 1
_DIGITS: Final = frozenset("0123456789")
_ALPHANUMERIC = re.compile(r"[0-9A-Za-z-]*+")


class SemverError(ValueError):
    """No semantic version; the text is upstream's."""


@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """A version. prerelease: numbers and words. build: is printed and has no part in the order."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: str = ""

    def __str__(self) -> str:
        prerelease = f"-{'.'.join(map(str, self.prerelease))}" if self.prerelease else ""
        build = f"+{self.build}" if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{prerelease}{build}"

    def cmp(self, other: Semver) -> int:
        """Return -1, 0 or 1: older, equal or newer."""
        numbers = (self.major, self.minor, self.patch)
        other_numbers = (other.major, other.minor, other.patch)
        if numbers != other_numbers:
            return 1 if numbers > other_numbers else -1
        # Without prerelease a version is newer than with one.
        if not self.prerelease or not other.prerelease:
            return bool(other.prerelease) - bool(self.prerelease)
        first = [_part_key(part) for part in self.prerelease]
        second = [_part_key(part) for part in other.prerelease]
        return (first > second) - (first < second)

    def __eq__(self, other: object) -> bool:
        return self.cmp(other) == 0 if isinstance(other, Semver) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.major, self.minor, self.patch, self.prerelease))


def _part_key(part: int | str) -> tuple[bool, int, bytes]:
    """Return the sort key of a part of a prerelease: numbers come before words."""
    if isinstance(part, int):
        return False, part, b""
    return True, 0, part.encode("utf-8", "surrogatepass")


def parse_semver(text: str) -> Semver:
    """Parse a version with all three numbers.

    Raises:
        SemverError: it is none.
    """
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major = _number("major", parts[0])
    minor = _number("minor", parts[1])
    without_build, has_build, build = parts[2].partition("+")
    patch_text, has_prerelease, prerelease = without_build.partition("-")
    patch = _number("patch", patch_text)
    prerelease_parts = tuple(map(_prerelease_part, prerelease.split("."))) if has_prerelease else ()
    for part in build.split(".") if has_build else ():
        if not part:
            raise SemverError("Build meta data is empty")
        if not _ALPHANUMERIC.fullmatch(part):
            raise SemverError(f"Invalid character(s) found in build meta data {go_quote(part)}")
    return Semver(major, minor, patch, prerelease_parts, build)


def parse_loose_semver(text: str) -> Semver:
    """Parse a version that may begin with "v", have leading zeros or lack numbers.

    Raises as `parse_semver`.
    """
    parts = text.removeprefix("v").split(".", 2)
    for at, part in enumerate(parts):
        # Upstream counts bytes.
        if len(part.encode("utf-8", "surrogatepass")) > 1:
            stripped = part.lstrip("0")
            parts[at] = stripped if stripped[:1] in _DIGITS and stripped else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse_semver(".".join(parts))


def _number(word: str, text: str) -> int:
    # An empty number passes both checks upstream and fails when it is parsed.
    if not _DIGITS.issuperset(text):
        raise SemverError(f"Invalid character(s) found in {word} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise SemverError(
            f"{word.capitalize()} number must not contain leading zeroes {go_quote(text)}"
        )
    return _parsed(text)


def _parsed(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > _UINT64_MAX:
        raise SemverError(f"strconv.ParseUint: parsing {go_quote(text)}: value out of range")
    return int(text)


def _prerelease_part(text: str) -> int | str:
    if not text:
        raise SemverError("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text[0] == "0":
            raise SemverError(
                f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}"
            )
        return _parsed(text)
    if not _ALPHANUMERIC.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return text
