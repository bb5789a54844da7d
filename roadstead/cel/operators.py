"""Operators on values: arithmetic, concatenation, order, membership, size.

Each operator checks the classes of its operands; upstream checks the interfaces (traits) that they
implement, such as Receiver.

Upstream: cel-go 0.26 common/types/*.go, common/types/overflow.go, interpreter (evalBinary).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from roadstead.cel.errors import CelRunError, no_overload
from roadstead.cel.limits import check_chars, check_items
from roadstead.cel.times import checked_duration, later
from roadstead.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    DurationValue,
    Timestamp,
    Uint,
    Value,
    compare,
    encoded_key,
    is_ordered,
    is_same,
)


class GrowingList(list[Value]):
    """The list that a comprehension builds.

    Only the accumulator refers to it, so that it may be changed in place.
    """

    __slots__ = ()


def _no_such_overload(value: Value, name: str) -> CelRunError:
    # Upstream's strings, durations and timestamps implement Receiver, whose error has no name.
    if isinstance(value, (str, DurationValue, Timestamp)):
        return no_overload()
    return CelRunError(f"no such overload: {name}")


def _checked_int(number: int) -> Value:
    if not INT_MIN <= number <= INT_MAX:
        raise CelRunError("integer overflow")
    return number


def _checked_uint(number: int) -> Value:
    if not 0 <= number <= UINT_MAX:
        raise CelRunError("unsigned integer overflow")
    return Uint(number)


def _is_int(value: Value) -> bool:
    return type(value) is int


def add(first: Value, second: Value) -> Value:
    """Return `first + second`; raises CelRunError."""
    kind = type(first)
    if kind is type(second):
        if kind is int:
            return _checked_int(first + second)  # type: ignore[operator]
        if kind is str or kind is bytes:
            check_chars(len(first) + len(second))  # type: ignore[arg-type]
            return first + second  # type: ignore[operator]
        if kind is float:
            return first + second  # type: ignore[operator]
        if kind is Uint:
            return _checked_uint(int(first) + int(second))  # type: ignore[call-overload]
    if isinstance(first, list):
        return _concatenated(first, second)
    if isinstance(first, DurationValue) and isinstance(second, (DurationValue, Timestamp)):
        if isinstance(second, Timestamp):
            return later(second, first.nanoseconds)
        return checked_duration(first.nanoseconds + second.nanoseconds)
    if isinstance(first, Timestamp) and isinstance(second, DurationValue):
        return later(first, second.nanoseconds)
    if isinstance(first, (str, bytes, DurationValue, Timestamp)) or kind in (int, float, Uint):
        raise no_overload()
    raise _no_such_overload(first, "_+_")


def _concatenated(first: list[Value], second: Value) -> list[Value]:
    if not isinstance(second, list):
        raise no_overload()
    check_items(len(first) + len(second))
    if isinstance(first, GrowingList):
        first.extend(second)
        return first
    return first + second


def subtract(first: Value, second: Value) -> Value:
    """Return `first - second`; raises CelRunError."""
    if _is_int(first) and _is_int(second):
        return _checked_int(first - second)  # type: ignore[operator]
    if isinstance(first, float) and isinstance(second, float):
        return first - second
    if isinstance(first, Uint) and isinstance(second, Uint):
        return _checked_uint(int(first) - int(second))
    if isinstance(first, Timestamp):
        if isinstance(second, Timestamp):
            return checked_duration(first.nanoseconds - second.nanoseconds)
        if isinstance(second, DurationValue):
            return later(first, -second.nanoseconds)
    if isinstance(first, DurationValue) and isinstance(second, DurationValue):
        return checked_duration(first.nanoseconds - second.nanoseconds)
    if _is_int(first) or isinstance(first, (float, Uint, Timestamp, DurationValue)):
        raise no_overload()
    raise _no_such_overload(first, "_-_")


def multiply(first: Value, second: Value) -> Value:
    """Return `first * second`; raises CelRunError."""
    if _is_int(first) and _is_int(second):
        return _checked_int(first * second)  # type: ignore[operator]
    if isinstance(first, float) and isinstance(second, float):
        return first * second
    if isinstance(first, Uint) and isinstance(second, Uint):
        return _checked_uint(int(first) * int(second))
    if _is_int(first) or isinstance(first, (float, Uint)):
        raise no_overload()
    raise _no_such_overload(first, "_*_")


def divide(first: Value, second: Value) -> Value:
    """Return `first / second`, integers cut towards zero; raises CelRunError."""
    if _is_int(first) and _is_int(second):
        return _checked_int(_quotient(first, second))  # type: ignore[arg-type]
    if isinstance(first, Uint) and isinstance(second, Uint):
        return Uint(_quotient(first, second))
    if isinstance(first, float) and isinstance(second, float):
        return _double_quotient(first, second)
    if _is_int(first) or isinstance(first, (float, Uint)):
        raise no_overload()
    raise _no_such_overload(first, "_/_")


def _quotient(first: int, second: int) -> int:
    if second == 0:
        raise CelRunError("division by zero")
    whole = abs(first) // abs(second)
    return whole if (first < 0) == (second < 0) else -whole


def _double_quotient(first: float, second: float) -> float:
    if second:
        return first / second
    if first == 0 or math.isnan(first):
        return math.nan
    return math.copysign(math.inf, first) * math.copysign(1, second)


def modulo(first: Value, second: Value) -> Value:
    """Return the remainder, with the sign of the first operand; raises CelRunError."""
    if (_is_int(first) and _is_int(second)) or (
        isinstance(first, Uint) and isinstance(second, Uint)
    ):
        assert isinstance(first, int)
        assert isinstance(second, int)
        if second == 0:
            raise CelRunError("modulus by zero")
        if first == INT_MIN and second == -1:
            raise CelRunError("integer overflow")
        remainder = abs(first) % abs(second)
        return (
            Uint(remainder) if isinstance(first, Uint) else (-remainder if first < 0 else remainder)
        )
    if _is_int(first) or isinstance(first, Uint):
        raise no_overload()
    raise _no_such_overload(first, "_%_")


def negate(value: Value) -> Value:
    """Return `-value`; raises CelRunError."""
    if _is_int(value):
        return _checked_int(-value)  # type: ignore[operator]
    if isinstance(value, float):
        return -value
    if isinstance(value, DurationValue):
        return checked_duration(-value.nanoseconds)
    if isinstance(value, bool):
        raise no_overload()
    raise _no_such_overload(value, "-_")


def logical_not(value: Value) -> Value:
    """Return `!value`; raises CelRunError."""
    if value is True:
        return False
    if value is False:
        return True
    raise no_overload()


def relation(name: str, holds: Callable[[int], bool]) -> Callable[[Value, Value], Value]:
    """Return a comparison. holds: whether it is true for this order (-1, 0, 1) of its operands."""

    def related(first: Value, second: Value) -> Value:
        if not is_ordered(first):
            raise _no_such_overload(first, name)
        return holds(compare(first, second))

    return related


less = relation("_<_", lambda order: order < 0)
less_or_equal = relation("_<=_", lambda order: order <= 0)
greater = relation("_>_", lambda order: order > 0)
greater_or_equal = relation("_>=_", lambda order: order >= 0)


def contains(value: Value, container: Value) -> Value:
    """Return `value in container`; raises CelRunError."""
    if isinstance(container, list):
        return any(is_same(value, element) for element in container)
    if isinstance(container, dict):
        return not isinstance(value, (list, dict)) and encoded_key(value) in container
    raise no_overload()


def size(value: Value) -> Value:
    """Return the number of characters, bytes, elements or entries; raises CelRunError."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    if isinstance(value, (DurationValue, Timestamp)):
        raise no_overload()
    raise CelRunError("no such overload: size")


OPERATORS: Final[dict[str, Callable[..., Value]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": logical_not,
    "_<_": less,
    "_<=_": less_or_equal,
    "_>_": greater,
    "_>=_": greater_or_equal,
    "@in": contains,
    "size": size,
}
"""Functions with one implementation for all overloads."""
