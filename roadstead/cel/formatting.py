"""`"...".format([...])`: clauses %s, %d, %f, %e, %b, %x, %X and %o.

Upstream: cel-go 0.26 ext/formatting.go (version 1 of the clauses).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from roadstead.cel.conversions import to_string
from roadstead.cel.errors import CelRunError
from roadstead.cel.limits import check_chars
from roadstead.cel.values import (
    DurationValue,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    decoded_key,
    go_text,
    type_name,
)
from roadstead.facts.quoting import go_quote

# Digits after the point of a clause without a precision.
_PRECISION: Final = 6
# Bounds of this project: more digits are cut off, deeper values refused.
_PRECISION_MAX = 1000
_DEPTH_MAX = 300
# Strings that `%f` and `%e` accept.
_INFINITE = ("NaN", "Infinity", "-Infinity")

UNFIT_ERRORS: Final = {
    "b": "only integers and bools can be formatted as binary",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
    "s": (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
        "types, durations, and timestamps"
    ),
}
"""By clause: the error for an argument of another type; `, was given TYPE` follows."""


class Clause(NamedTuple):
    """A clause such as `%.2f`. kind: its letter. argument: index of the value to print."""

    kind: str
    precision: int
    argument: int


def format_text(text: str, args: list[Value]) -> str:
    """Replace each clause of the text by its argument.

    Raises:
        CelRunError: a clause is unknown, lacks an argument or does not fit it.
    """
    parts: list[str] = []
    chars = 0
    for part in clauses(text, len(args)):
        if isinstance(part, Clause):
            try:
                part = _formatted(part.kind, part.precision, args[part.argument])
            except CelRunError as error:
                raise CelRunError(f"error during formatting: {error}") from None
        chars += len(part)
        check_chars(chars)
        parts.append(part)
    return "".join(parts)


def clauses(text: str, count: int) -> Iterator[Clause | str]:
    """Yield the clauses of a text with `count` arguments, and the text between them.

    Raises:
        CelRunError: a clause is unknown or lacks an argument.
    """
    position, used = 0, 0
    while position < len(text):
        if text[position] != "%":
            end = text.find("%", position)
            end = len(text) if end < 0 else end
            yield text[position:end]
            position = end
        elif text[position + 1 : position + 2] == "%":
            yield "%"
            position += 2
        else:
            if used >= count:
                raise CelRunError(f"index {used} out of range")
            if position + 1 >= len(text):
                raise CelRunError("unexpected end of string")
            precision, position = _precision(text, position + 1)
            kind = text[position]
            if kind not in UNFIT_ERRORS:
                raise CelRunError(
                    f'could not parse formatting clause: unrecognized formatting clause "{kind}"'
                )
            yield Clause(kind, precision, used)
            position += 1
            used += 1


def _precision(text: str, position: int) -> tuple[int, int]:
    if text[position] != ".":
        return _PRECISION, position
    end = position + 1
    while end < len(text) and text[end] in "0123456789":
        end += 1
    prefix = "could not parse formatting clause: error while parsing precision: "
    if end == len(text):
        raise CelRunError(f"{prefix}could not find end of precision specifier")
    digits = text[position + 1 : end]
    if not digits or len(digits) > 9:
        raise CelRunError(
            f"{prefix}error while converting precision to integer: strconv.Atoi: parsing "
            f"{go_quote(digits[:20])}: invalid syntax"
        )
    return min(int(digits), _PRECISION_MAX), end


def _formatted(kind: str, precision: int, value: Value) -> str:
    if kind == "s":
        return _string(value, 0)
    if kind == "d":
        if type(value) not in (int, Uint):
            raise _unfit(kind, value)
        return str(int(value))  # type: ignore[call-overload]
    if kind in "fe":
        return _double(kind, precision, value)
    return _digits(kind, value)


def _unfit(kind: str, value: Value) -> CelRunError:
    """Return the error of a value of a type that the clause does not accept."""
    return CelRunError(f"{UNFIT_ERRORS[kind]}, was given {type_name(value)}")


def _double(kind: str, precision: int, value: Value) -> str:
    if value in _INFINITE and isinstance(value, str):
        value = float(value.replace("Infinity", "inf"))
    if not isinstance(value, float):
        raise _unfit(kind, value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if kind == "f":
        return f"{value:,.{precision}f}"
    mantissa, _, exponent = f"{value:.{precision}e}".partition("e")
    return f"{mantissa}\u202f×\u202f10{_superscript(int(exponent))}"


def _superscript(number: int) -> str:
    digits = str(abs(number)).rjust(2, "0").translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ("⁻" if number < 0 else "") + digits


def _digits(kind: str, value: Value) -> str:
    if isinstance(value, bool):
        if kind == "b":
            return "1" if value else "0"
    elif isinstance(value, int):
        return format(int(value), kind)
    if kind in "xX":
        if isinstance(value, str):
            value = value.encode("utf-8", "surrogatepass")
        if isinstance(value, bytes):
            digits = value.hex()
            return digits.upper() if kind == "X" else digits
    raise _unfit(kind, value)


def _string(value: Value, depth: int) -> str:
    """Return `%s` of a value. depth: number of lists and maps around it."""
    if depth > _DEPTH_MAX:
        raise CelRunError("value nests too deeply")
    if isinstance(value, list):
        return f"[{', '.join(_member(element, depth) for element in value)}]"
    if isinstance(value, dict):
        entries = sorted(
            (_key(decoded_key(key)), _member(inner, depth)) for key, inner in value.items()
        )
        return "{" + ", ".join(f"{key}:{inner}" for key, inner in entries) + "}"
    if value is None:
        return "null"
    if isinstance(value, (bool, int, float, str, bytes, DurationValue, Timestamp, TypeValue)):
        return str(to_string(value))
    raise _unfit("s", value)


def _key(key: Value) -> str:
    if isinstance(key, str):
        return go_quote(key)
    if isinstance(key, bool):
        return go_text(key)
    if isinstance(key, int):
        return str(int(key))
    raise CelRunError(f"no formatting function for map key of type {type_name(key)}")


def _member(value: Value, depth: int) -> str:
    """Return `%s` of a value inside a list or map."""
    match value:
        case str():
            return go_quote(value)
        case bytes():
            return f"b{go_quote(value.decode('utf-8', 'replace'))}"
        case float():
            if math.isnan(value) or math.isinf(value):
                return go_quote({"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(value)])
            return f"{value:.{_PRECISION}f}"
        case DurationValue():
            return f'duration("{to_string(value)}")'
        case Timestamp():
            return f'timestamp("{to_string(value)}")'
        case TypeValue():
            return f"type({value.name})"
    return _string(value, depth + 1)
