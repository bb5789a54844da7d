"""Durations and timestamps: parsed, printed and split into fields as Go does.

Upstream: cel-go 0.26 common/types/duration.go, timestamp.go, overflow.go, common/stdlib; Go's time.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from roadstead.cel.errors import CelRunError
from roadstead.cel.values import INT_MAX, INT_MIN, DurationValue, Timestamp, Value
from roadstead.facts.quoting import go_quote

_SECOND: Final = 10**9
# First and last second of the years 1 to 9999, counted from 1970.
_MIN_S, _MAX_S = -62135596800, 253402300799
_DAYS_FROM_0_TO_2000 = 730_485
# Bound of this project: longer texts are no times.
_TEXT_MAX_CHARS = 1000
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_DURATION_PART = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?([^0-9.]++)")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]++))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_ZONE_NAME = re.compile(r"[A-Za-z0-9_+/-]{1,64}")
# What Go's strconv.Atoi reads; Python's int() also reads spaces, underscores and other digits.
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Zone = tzinfo | timedelta
"""A zone with a name, or a fixed offset from UTC, which in Go may be longer than a day."""


def parse_duration(text: str) -> DurationValue | None:
    """Parse "1h30m", "-1.5s", "0"; None if it is no duration."""
    if len(text) > _TEXT_MAX_CHARS:
        return None
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return DurationValue(0)
    total, position = 0, 0
    while position < len(body):
        match = _DURATION_PART.match(body, position)
        if match is None or not (match[1] or match[2]) or match[3] not in _UNITS:
            return None
        unit = _UNITS[match[3]]
        fraction = match[2] or ""
        # Even of an hour, digits after the 18th of the fraction are less than a nanosecond.
        total += int(match[1] or "0") * unit
        total += int(fraction[:18] or "0") * unit // 10 ** len(fraction[:18])
        position = match.end()
    if not body:
        return None
    total = -total if text[0] == "-" else total
    return DurationValue(total) if INT_MIN <= total <= INT_MAX else None


def parse_timestamp(text: str) -> Timestamp | None:
    """Parse a time of RFC 3339; None if it is none.

    Raises:
        CelRunError: the time is outside the years 1 to 9999.
    """
    match = _TIMESTAMP.fullmatch(text) if len(text) <= _TEXT_MAX_CHARS else None
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    offset = 0
    if match[8]:
        if int(match[9]) > 24 or int(match[10]) > 60:
            return None
        offset = (int(match[9]) * 3600 + int(match[10]) * 60) * (-1 if match[8] == "-" else 1)
    if second > 59:
        return None
    try:
        # Python has no year 0. 2000 is a leap year, too: compute there, then subtract 2000 years.
        moment = datetime(year or 2000, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - offset
    if not year:
        seconds -= _DAYS_FROM_0_TO_2000 * 86400
    nanoseconds = int(((match[7] or "") + "0" * 9)[:9])
    _check_seconds(seconds)
    return Timestamp(seconds * _SECOND + nanoseconds, offset)


def timestamp_of_seconds(seconds: int) -> Timestamp:
    """Return the moment this many seconds after 1970.

    Raises:
        CelRunError: the moment is outside the years 1 to 9999.
    """
    _check_seconds(seconds)
    return Timestamp(seconds * _SECOND)


def _check_seconds(seconds: int) -> None:
    if not _MIN_S <= seconds <= _MAX_S:
        raise CelRunError("timestamp overflow")


def timestamp_text(timestamp: Timestamp) -> str:
    """Return the time in RFC 3339, in its own zone."""
    moment = _local(timestamp, timedelta(seconds=timestamp.offset_s))
    nanoseconds = timestamp.nanoseconds % _SECOND
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    sign = "-" if timestamp.offset_s < 0 else "+"
    minutes = abs(timestamp.offset_s) // 60
    zone = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}" if timestamp.offset_s else "Z"
    # Some C libraries print years before 1000 without zeros.
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + zone


def later(timestamp: Timestamp, nanoseconds: int) -> Timestamp:
    """Return the moment this much later; raises CelRunError outside the years 1 to 9999."""
    total = timestamp.nanoseconds + nanoseconds
    _check_seconds(total // _SECOND)
    return Timestamp(total, timestamp.offset_s)


def checked_duration(nanoseconds: int) -> DurationValue:
    """Return a duration; raises CelRunError if it is no int64."""
    if not INT_MIN <= nanoseconds <= INT_MAX:
        raise CelRunError("integer overflow")
    return DurationValue(nanoseconds)


def _local(timestamp: Timestamp, zone: _Zone) -> datetime:
    """Return the local time of a moment in a zone, in whole seconds."""
    moment = _EPOCH + timedelta(seconds=timestamp.nanoseconds // _SECOND)
    try:
        return moment + zone if isinstance(zone, timedelta) else moment.astimezone(zone)
    except OverflowError:
        # In this zone the year is 0 or 10000, which Python does not have.
        return moment


def _zone(name: str) -> _Zone:
    """Return the zone that an expression names.

    Raises:
        CelRunError: there is no such zone.
    """
    if ":" in name:
        return _fixed_zone(name)
    if name in ("", "UTC"):
        return UTC
    try:
        if not _ZONE_NAME.fullmatch(name):
            raise ValueError(name)
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise CelRunError(f"unknown time zone {name}") from None


def _fixed_zone(name: str) -> timedelta:
    """Return the offset from UTC that "-08:00" or "5:30" means."""
    hours_text, _, minutes_text = name.partition(":")
    for text in (hours_text, minutes_text):
        # More than ten digits would overflow timedelta.
        if not _INTEGER.fullmatch(text):
            raise CelRunError(f"strconv.Atoi: parsing {go_quote(text[:12])}: invalid syntax")
    hours, minutes = int(hours_text), int(minutes_text)
    return timedelta(minutes=hours * 60 - minutes if name[0] == "-" else hours * 60 + minutes)


_Field = Callable[[datetime], int]
"""Returns a field of a local time, such as its year."""


def _of_timestamp(field: _Field) -> Callable[..., Value]:
    """Return the function that computes a field of a timestamp in a zone, by default UTC."""

    def compute(value: Timestamp, zone: str = "UTC") -> Value:
        return field(_local(value, _zone(zone)))

    return compute


def _milliseconds(value: Timestamp, zone: str = "UTC") -> Value:
    # The same in every zone, but an unknown zone is an error.
    _zone(zone)
    return value.nanoseconds % _SECOND // 10**6


def _of_duration(unit_ns: int) -> Callable[..., Value]:
    """Return the function that counts the whole units in a duration, rounded toward 0."""

    def compute(value: DurationValue) -> Value:
        whole = abs(value.nanoseconds) // unit_ns
        return -whole if value.nanoseconds < 0 else whole

    return compute


# By name in the overloads; months and days count from 0, as upstream.
_FIELDS: dict[str, _Field] = {
    "year": lambda moment: moment.year,
    "month": lambda moment: moment.month - 1,
    "day_of_year": lambda moment: moment.timetuple().tm_yday - 1,
    "day_of_month": lambda moment: moment.day - 1,
    "day_of_month_1_based": lambda moment: moment.day,
    "day_of_week": lambda moment: moment.isoweekday() % 7,
    "hours": lambda moment: moment.hour,
    "minutes": lambda moment: moment.minute,
    "seconds": lambda moment: moment.second,
}

TIME_FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    **{f"timestamp_to_{name}": _of_timestamp(field) for name, field in _FIELDS.items()},
    **{f"timestamp_to_{name}_with_tz": _of_timestamp(field) for name, field in _FIELDS.items()},
    "timestamp_to_seconds_tz": _of_timestamp(_FIELDS["seconds"]),
    "timestamp_to_milliseconds": _milliseconds,
    "timestamp_to_milliseconds_with_tz": _milliseconds,
    "duration_to_hours": _of_duration(3600 * _SECOND),
    "duration_to_minutes": _of_duration(60 * _SECOND),
    "duration_to_seconds": _of_duration(_SECOND),
    "duration_to_milliseconds": _of_duration(10**6),
}
"""Implementations by overload."""
