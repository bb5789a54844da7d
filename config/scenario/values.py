"""Values of a scenario: times, percentages, file names, and choices of exactly one key.

`DocumentedAs` in a type: the words for it in docs/scenario.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field

from roadstead.config.durations import parse_long_duration
from roadstead.protocol.names import label_value_errors, subdomain_errors

MILLI_US: Final = 1_000
SECOND_US: Final = 1_000_000
DAY_US: Final = 86_400 * SECOND_US
LONGEST_US: Final = 36_500 * DAY_US
"""A hundred years. Sums of a few such times fit into int64."""

RATE_MIN_PER_HOUR: Final = 1e-6
RATE_MAX_PER_HOUR: Final = 1e9
TAG_START: Final = "<"
"""First character of a tag, the name of a model in a union; it is no part of a path in an error."""


@dataclass(frozen=True, slots=True)
class DocumentedAs:
    """Metadata of a type: the words for it in docs/scenario.md, such as `number`."""

    text: str


@dataclass(frozen=True, slots=True)
class Percentage:
    """A percentage in basis points, hundredths of a percent."""

    basis_points: int

    def __str__(self) -> str:
        return f"{self.basis_points / 100:g}%"


def micros(value: object) -> object:
    """Read a time as whole microseconds; ValueError for anything else, or more than 100 years."""
    if value is None:
        return None
    if value == 0 and type(value) is int:
        return 0
    if type(value) in (int, float):
        raise ValueError('needs a unit (want e.g. "90s", "20m", "6h", "30d")')
    if not isinstance(value, str):
        raise ValueError('must be a time (want e.g. "90s", "20m", "6h", "30d")')
    ns = parse_long_duration(value).ns
    if ns < 0:
        raise ValueError("must not be negative")
    if ns % 1_000:
        raise ValueError("must be a whole number of microseconds")
    if ns // 1_000 > LONGEST_US:
        raise ValueError("must be at most 36500d")
    return ns // 1_000


def time_text(us: int) -> str:
    """Write a time as `micros` reads it: "7d", "1h30m", "250ms"."""
    if us % MILLI_US:
        return f"{us}us"
    if us < SECOND_US:
        return f"{us // MILLI_US}ms" if us else "0s"
    parts, rest = [], us
    for unit, length in (("d", DAY_US), ("h", DAY_US // 24), ("m", 60 * SECOND_US)):
        count, rest = divmod(rest, length)
        parts += [f"{count}{unit}"] if count else []
    seconds, millis = divmod(rest // MILLI_US, 1_000)
    parts += [f"{seconds}s"] if seconds else []
    parts += [f"{millis}ms"] if millis else []
    return "".join(parts)


def _check_positive(value: int) -> int:
    if value <= 0:
        raise ValueError("must be longer than 0")
    return value


def percentage(value: object) -> object:
    """Read "1%" or "0.25%" as a `Percentage`; anything that is no text stays as it is."""
    if not isinstance(value, str):
        return value
    whole, dot, fraction = value.removesuffix("%").partition(".")
    digits = whole + fraction
    if not value.endswith("%") or not digits.isascii() or not digits.isdecimal():
        raise ValueError('must be a number or a percentage (want e.g. 5, "1%")')
    if len(whole) > 3 or len(fraction) > 2 or (dot and not fraction):
        raise ValueError("must be at most 100%, in steps of 0.01%")
    basis_points = int(whole or 0) * 100 + int(fraction.ljust(2, "0") if fraction else 0)
    if basis_points > 10_000:
        raise ValueError("must be at most 100%, in steps of 0.01%")
    return Percentage(basis_points)


def _fraction(value: object) -> object:
    """Read a percentage as a number from 0 to 1; a number stays as it is."""
    read = percentage(value)
    return read.basis_points / 10_000 if isinstance(read, Percentage) else read


def _check_file_name(value: object) -> object:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("must be the name of a file")
    return value


def _check_name(value: str) -> str:
    if value and (rules := subdomain_errors(value)):
        raise ValueError(f"is not a name: {'; '.join(rules)}")
    return value


def _check_label(value: str) -> str:
    if rules := label_value_errors(value):
        raise ValueError(f"is not a label value: {'; '.join(rules)}")
    return value


def one_of(*keys: str) -> Discriminator:
    """Return a discriminator of a union, each of whose models has exactly one of the keys."""

    def tag_of(value: object) -> str | None:
        present = [key for key in keys if isinstance(value, Mapping) and key in value]
        return tag(present[0]) if len(present) == 1 else None

    message = f"needs exactly one of {', '.join(keys)}"
    return Discriminator(tag_of, custom_error_type="one_of", custom_error_message=message)


def tag(key: str) -> str:
    """Return the tag of the model that has this key in a union."""
    return f"{TAG_START}{key}>"


Micros = Annotated[int, BeforeValidator(micros), DocumentedAs("time")]
PositiveMicros = Annotated[
    int, BeforeValidator(micros), AfterValidator(_check_positive), DocumentedAs("time above 0")
]
Rate = Annotated[
    float,
    Field(ge=RATE_MIN_PER_HOUR, le=RATE_MAX_PER_HOUR, allow_inf_nan=False),
    DocumentedAs("per hour"),
]
Factor = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), DocumentedAs("factor")]
Weight = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), DocumentedAs("number")]
Fraction = Annotated[
    float,
    Field(ge=0, le=1, allow_inf_nan=False),
    BeforeValidator(_fraction),
    DocumentedAs("percentage, or 0 to 1"),
]
PositiveFraction = Annotated[
    float,
    Field(gt=0, le=1, allow_inf_nan=False),
    BeforeValidator(_fraction),
    DocumentedAs("percentage, or 0 to 1"),
]
PositiveCount = Annotated[int, Field(ge=1, le=1_000_000), DocumentedAs("number")]
PodCount = Annotated[int, Field(ge=0, le=1_000_000), DocumentedAs("number")]
_SHARE = DocumentedAs("number or percentage")
NodeShare = Annotated[PositiveCount | Percentage, BeforeValidator(percentage), _SHARE]
PodShare = Annotated[PodCount | Percentage, BeforeValidator(percentage), _SHARE]
FileName = Annotated[str, BeforeValidator(_check_file_name), DocumentedAs("file")]
Name = Annotated[str, AfterValidator(_check_name), DocumentedAs("name")]
LabelValue = Annotated[str, AfterValidator(_check_label), DocumentedAs("text")]
