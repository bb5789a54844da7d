"""Conversions between types: `int(x)`, `string(x)` and so on.

Upstream: cel-go 0.26 ConvertToType in common/types/*.go; Go's strconv and time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from roadstead.cel.doubles import double_text
from roadstead.cel.errors import CelRunError
from roadstead.cel.network import Address, Cidr
from roadstead.cel.times import (
    parse_duration,
    parse_timestamp,
    timestamp_of_seconds,
    timestamp_text,
)
from roadstead.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    DurationValue,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    type_name,
)

# The syntax that Go's strconv reads. With possessive quantifiers (++, *+), a string that does not
# match is refused without backtracking.
_INTEGER = re.compile(r"[+-]?[0-9]++")
_UNSIGNED = re.compile(r"[0-9]++")
_DECIMALS = r"[0-9]++(?:_[0-9]++)*+"
_DOUBLE = re.compile(
    rf"[+-]?(?:(?:{_DECIMALS}\.?(?:{_DECIMALS})?|\.{_DECIMALS})(?:e[+-]?{_DECIMALS})?"
    r"|inf(?:inity)?|nan)",
    re.IGNORECASE,
)
_HEX_DOUBLE = re.compile(
    r"[+-]?0x(?:[0-9a-f]++\.?[0-9a-f]*+|\.[0-9a-f]++)p[+-]?[0-9]{1,6}", re.IGNORECASE
)
_DIGITS_MAX = 400
"""Longer strings are refused as numbers: Python converts them in quadratic time."""
_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def conversion_error(value: Value, wanted: str) -> CelRunError:
    """Return the error of a conversion that is not possible."""
    return CelRunError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


def to_int(value: Value) -> Value:
    """Convert to int; raises CelRunError."""
    match value:
        case Uint():
            if value > INT_MAX:
                raise CelRunError("integer overflow")
            return int(value)
        case float():
            # Upstream refuses -2**63, too.
            if not -(2.0**63) < value < 2.0**63:
                raise CelRunError("integer overflow")
            return int(value)
        case DurationValue():
            return value.nanoseconds
        case Timestamp():
            return value.nanoseconds // 10**9
        case str():
            number = _read_integer(value, _INTEGER)
            if number is None or not INT_MIN <= number <= INT_MAX:
                raise conversion_error(value, "int")
            return number
        case bool():
            raise conversion_error(value, "int")
        case int():
            return value
    raise conversion_error(value, "int")


def to_uint(value: Value) -> Value:
    """Convert to uint; raises CelRunError."""
    match value:
        case Uint():
            return value
        case bool():
            raise conversion_error(value, "uint")
        case int():
            if value < 0:
                raise CelRunError("unsigned integer overflow")
            return Uint(value)
        case float():
            if not 0 <= value < 2.0**64:
                raise CelRunError("unsigned integer overflow")
            return Uint(value)
        case str():
            number = _read_integer(value, _UNSIGNED)
            if number is None or number > UINT_MAX:
                raise conversion_error(value, "uint")
            return Uint(number)
    raise conversion_error(value, "uint")


def _read_integer(text: str, pattern: re.Pattern[str]) -> int | None:
    if len(text) > _DIGITS_MAX or not pattern.fullmatch(text):
        return None
    return int(text)


def to_double(value: Value) -> Value:
    """Convert to double; raises CelRunError."""
    match value:
        case float():
            return value
        case str():
            number = _read_double(value) if len(value) <= _DIGITS_MAX else None
            if number is None:
                raise conversion_error(value, "double")
            return number
        case bool():
            raise conversion_error(value, "double")
        case int():
            return float(value)
    raise conversion_error(value, "double")


def _read_double(text: str) -> float | None:
    try:
        if _HEX_DOUBLE.fullmatch(text):
            return float.fromhex(text)
        if not _DOUBLE.fullmatch(text):
            return None
        number = float(text)
    except (ValueError, OverflowError):
        return None
    return None if math.isinf(number) and "inf" not in text.lower() else number


def to_bool(value: Value) -> Value:
    """Convert to bool; raises CelRunError."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _BOOLS:
        return _BOOLS[value]
    raise conversion_error(value, "bool")


def to_bytes(value: Value) -> Value:
    """Convert to bytes; raises CelRunError."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        # A string of YAML or JSON may contain half of a surrogate pair.
        return value.encode("utf-8", "surrogatepass")
    raise conversion_error(value, "bytes")


def to_string(value: Value) -> Value:
    """Convert to string; raises CelRunError."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case bytes():
            try:
                return value.decode("utf-8")
            except UnicodeDecodeError:
                raise CelRunError("invalid UTF-8 in bytes, cannot convert to string") from None
        case DurationValue():
            return seconds_text(value)
        case Timestamp():
            return timestamp_text(value)
        case TypeValue():
            return value.name
        case Address() | Cidr():
            return str(value)
    raise conversion_error(value, "string")


def seconds_text(duration: DurationValue) -> str:
    """Return a duration in seconds, in the shortest form that is the same double."""
    number = duration.nanoseconds / 10**9
    shortest = repr(number)
    if "e" not in shortest:
        text = shortest
    else:
        text = format(number, f".{_decimals(shortest)}f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "s"


def _decimals(shortest: str) -> int:
    """Return how many decimals a number like `1.5e-07` has without its exponent."""
    mantissa, _, power = shortest.partition("e")
    return max(0, len(mantissa.partition(".")[2]) - int(power))


def to_duration(value: Value) -> Value:
    """Convert to a duration; raises CelRunError."""
    if isinstance(value, DurationValue):
        return value
    if isinstance(value, str):
        duration = parse_duration(value)
        if duration is not None:
            return duration
    raise conversion_error(value, "google.protobuf.Duration")


def to_timestamp(value: Value) -> Value:
    """Convert to a timestamp; raises CelRunError."""
    if isinstance(value, Timestamp):
        return value
    if type(value) is int:
        return timestamp_of_seconds(value)
    if isinstance(value, str):
        timestamp = parse_timestamp(value)
        if timestamp is not None:
            return timestamp
    raise conversion_error(value, "google.protobuf.Timestamp")


def type_value(value: Value) -> Value:
    """Return the type of a value as a value."""
    return TypeValue(type_name(value))


def identity(value: Value) -> Value:
    """Return the value: `dyn(x)`."""
    return value


CONVERSIONS: Final[dict[str, Callable[[Value], Value]]] = {
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "bool": to_bool,
    "bytes": to_bytes,
    "string": to_string,
    "duration": to_duration,
    "timestamp": to_timestamp,
    "type": type_value,
    "dyn": identity,
}
"""By name. Upstream calls these at compile time if the argument is a literal."""
