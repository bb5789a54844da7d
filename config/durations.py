"""Durations as Go writes and reads them: "1m30s" (Go time.ParseDuration, Duration.String)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_UNIT_NS: Final = {
    "ns": 1,
    "us": 1_000,
    # As in Go: the micro sign, and the Greek letter.
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_PART_OR_DAYS: Final = re.compile(_PART.pattern.replace("|h)", "|h|d)"))
# Longer texts are no durations.
_MAX_CHARS: Final = 100
_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A signed number of nanoseconds within int64."""

    ns: int = 0

    @property
    def seconds(self) -> float:
        return self.ns / _UNIT_NS["s"]

    def __str__(self) -> str:
        sign, ns = ("-", -self.ns) if self.ns < 0 else ("", self.ns)
        if ns < _UNIT_NS["s"]:
            unit = next((u for u in ("ms", "µs", "ns") if ns >= _UNIT_NS[u]), "s")
            return f"{sign}{_decimal(ns, _UNIT_NS[unit])}{unit}"
        hours, rest_ns = divmod(ns, _UNIT_NS["h"])
        minutes, rest_ns = divmod(rest_ns, _UNIT_NS["m"])
        text = f"{hours}h" if hours else ""
        text += f"{minutes}m" if hours or minutes else ""
        return f"{sign}{text}{_decimal(rest_ns, _UNIT_NS['s'])}s"


def parse_duration(text: str) -> Duration:
    """Parse Go's notation; raises ValueError for anything else or beyond int64 nanoseconds."""
    return _parse(text, _PART, 'is not a duration (want e.g. "15s", "1m30s")')


def parse_long_duration(text: str) -> Duration:
    """Parse Go's notation, and days ("30d", "1d12h"); raises as `parse_duration`."""
    return _parse(text, _PART_OR_DAYS, 'is not a duration (want e.g. "90s", "1h30m", "30d")')


def _parse(text: str, pattern: re.Pattern[str], problem: str) -> Duration:
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration()
    if not body or len(body) > _MAX_CHARS:
        raise ValueError(problem)
    total, position = 0, 0
    while position < len(body):
        part = pattern.match(body, position)
        if part is None or not (part[1] or part[2]):
            raise ValueError(problem)
        fraction = part[2] or ""
        unit = _UNIT_NS[part[3]]
        total += int(part[1] or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        position = part.end()
    if total > _INT64_MAX:
        raise ValueError("is too long for a duration (about 292 years at most)")
    return Duration(-total if text.startswith("-") else total)


def _decimal(value: int, unit: int) -> str:
    """Return value / unit in decimal notation; unit: a power of ten."""
    whole, remainder = divmod(value, unit)
    fraction = str(remainder).zfill(len(str(unit)) - 1).rstrip("0") if remainder else ""
    return f"{whole}.{fraction}" if fraction else str(whole)
