"""Steps of a plan: closures that evaluate one node from the variables of an evaluation.

Each `*_step` function returns the step that computes the named expression.

Upstream: cel-go 0.26 interpreter/interpretable.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from roadstead.cel.errors import CelAbortError, CelCostError, CelRunError, no_overload
from roadstead.cel.limits import COST_MAX
from roadstead.cel.operators import contains
from roadstead.cel.semver import Semver
from roadstead.cel.values import (
    DomainMap,
    Optional,
    Uint,
    Value,
    content_of,
    encoded_key,
    equal,
    go_text,
    go_type,
    rewrapped,
)

Variables = list[Value]
"""The variables of one evaluation; the first two are `DEVICE_SLOT` and `COST_SLOT`."""

Step = Callable[[Variables], Value]
"""Evaluates one node; raises CelRunError, or CelAbortError to end the whole evaluation."""

DEVICE_SLOT: Final = 0
COST_SLOT: Final = 1


def spend(variables: Variables, cost: int) -> None:
    """Count the cost of a step; raises CelCostError beyond `COST_MAX`."""
    spent: int = variables[COST_SLOT] + cost  # type: ignore[operator]
    variables[COST_SLOT] = spent
    if spent > COST_MAX:
        raise CelCostError


# Start of Go's error where the conversion of a value to a list fails.
_NO_LIST = "internal error: interface conversion: "
# Types of the elements of constant lists that upstream replaces by a hash set.
_HASHED = frozenset({str, int, bool, float, Uint})
_INTEGERS = frozenset({int, Uint})
_NUMBERS = frozenset({int, Uint, float})
# Types of which two values are compared by `==` of Python.
_COMPARED_DIRECTLY = frozenset({str, int, bool, float, bytes, Uint})


def and_step(left: Step, right: Step) -> Step:
    """`left && right`: false wins over an error of the other side."""

    def conjunction(variables: Variables) -> Value:
        try:
            value = left(variables)
        except CelRunError as raised:
            error = raised
        else:
            if value is False:
                return False
            if value is True:
                value = right(variables)
                if value is True or value is False:
                    return value
                raise no_overload()
            error = no_overload()
        return _value_or_error(right, variables, wanted=False, error=error)

    return conjunction


def or_step(left: Step, right: Step) -> Step:
    """`left || right`: true wins over an error of the other side."""

    def disjunction(variables: Variables) -> Value:
        try:
            value = left(variables)
        except CelRunError as raised:
            error = raised
        else:
            if value is True:
                return True
            if value is False:
                value = right(variables)
                if value is True or value is False:
                    return value
                raise no_overload()
            error = no_overload()
        return _value_or_error(right, variables, wanted=True, error=error)

    return disjunction


def _value_or_error(run: Step, variables: Variables, *, wanted: bool, error: CelRunError) -> Value:
    """Return the value of the second operand, `run`, if it is `wanted`; else raise `error`.

    error: of the first operand.
    """
    try:
        value = run(variables)
    except CelRunError:
        raise error from None
    if value is wanted:
        return value
    raise error


def conditional_step(condition: Step, chosen: Step, other: Step) -> Step:
    """`condition ? chosen : other`."""

    def conditional(variables: Variables) -> Value:
        value = condition(variables)
        # `rewrapped`: upstream converts an optional here, which fails for some types.
        if value is True:
            return rewrapped(chosen(variables))
        if value is False:
            return rewrapped(other(variables))
        raise no_overload()

    return conditional


def not_strictly_false_step(run: Step) -> Step:
    """`@not_strictly_false(run)`: false only if `run` is false.

    The condition of `all` and `exists`: their loop continues after an error.
    """

    def continues(variables: Variables) -> Value:
        try:
            value = run(variables)
        except CelRunError:
            return True
        return value if isinstance(value, bool) else True

    return continues


def or_value_step(first: Step, second: Step, is_value: bool) -> Step:
    """`first.orValue(second)` if `is_value`, else `first.or(second)`.

    `second` is evaluated only if it is needed.
    """

    def chosen(variables: Variables) -> Value:
        optional = first(variables)
        if not isinstance(optional, Optional):
            return optional
        if not optional.has_value:
            return second(variables)
        return content_of(optional) if is_value else optional

    return chosen


def not_equal(first: Value, second: Value) -> bool:
    """Return `first != second`; True if the comparison is an error."""
    try:
        return not equal(first, second)
    except CelRunError:
        return True


def equality_step(left: Step, right: Step, is_negated: bool) -> Step:
    """`left == right`, or `left != right`."""
    compare = not_equal if is_negated else equal
    return lambda variables: compare(left(variables), right(variables))


def equality_with_step(left: Step, wanted: Value, is_negated: bool) -> Step:
    """`left == wanted`, or `left != wanted`, for a constant `wanted`."""
    kind = type(wanted)
    compare = not_equal if is_negated else equal
    if kind not in _COMPARED_DIRECTLY:
        return lambda variables: compare(left(variables), wanted)

    def compared(variables: Variables) -> Value:
        value = left(variables)
        if type(value) is kind:
            return (value == wanted) is not is_negated
        return compare(value, wanted)

    return compared


def constant_member_step(value: Step, container: list[Value]) -> Step:
    """`value in [...]` for a list of literals, in which upstream looks the value up by hash."""
    is_hashed = all(type(element) in _HASHED for element in container)

    def is_member(variables: Variables) -> Value:
        wanted = value(variables)
        if is_hashed and container and isinstance(wanted, (Semver, bytes)):
            name = "cel.Semver" if isinstance(wanted, Semver) else "types.Bytes"
            text = f"internal error: runtime error: hash of unhashable type {name}"
            raise CelAbortError(text)
        if is_hashed and type(wanted) in _INTEGERS:
            # A hash finds a double only under the integer that it is exactly; `==` rounds.
            return any(type(each) in _NUMBERS and each == wanted for each in container)
        return contains(wanted, container)

    return is_member


def contains_fast(wanted: Value, container: Value) -> Value:
    """Return `wanted in container`, fast for strings in maps; raises CelRunError."""
    if type(wanted) is str and (type(container) is dict or type(container) is DomainMap):
        return wanted in container
    return contains(wanted, container)


def call_step(function: Callable[..., Value], args: list[Step]) -> Step:
    """A call of a function with computed arguments."""
    match args:
        case []:
            return lambda variables: function()
        case [only]:
            return lambda variables: function(only(variables))
        case [first, second]:
            return lambda variables: function(first(variables), second(variables))
    return lambda variables: function(*[arg(variables) for arg in args])


def list_step(elements: list[Step], optional: frozenset[int]) -> Step:
    """A list. optional: positions of elements that may be missing."""
    if not optional:
        return lambda variables: [element(variables) for element in elements]

    def create(variables: Variables) -> Value:
        values: list[Value] = []
        for at, element in enumerate(elements):
            value = element(variables)
            if at in optional:
                if not isinstance(value, Optional):
                    raise CelRunError(
                        "cannot initialize optional list element from non-optional value "
                        f"{go_text(value)}"
                    )
                if not value.has_value:
                    continue
                value = value.value
            values.append(value)
        return values

    return create


def list_only_step(run: Step) -> Step:
    """`run`; a value that is no list ends the whole evaluation, because upstream panics there."""

    def checked(variables: Variables) -> Value:
        try:
            value = run(variables)
        except CelRunError:
            raise CelAbortError(
                f"{_NO_LIST}*types.Err is not traits.Lister: missing method Add"
            ) from None
        if not isinstance(value, (list, dict)):
            method = "Contains" if isinstance(value, str) else "Add"
            text = f"{go_type(value)} is not traits.Lister: missing method {method}"
            raise CelAbortError(_NO_LIST + text)
        return value

    return checked


def map_step(keys: list[Step], values: list[Step], optional: frozenset[int]) -> Step:
    """A map. optional: positions of entries that may be missing."""

    def create(variables: Variables) -> Value:
        entries: dict[Value, Value] = {}
        for at, run in enumerate(keys):
            key = run(variables)
            stored_key = encoded_key(key)
            value = values[at](variables)
            if at in optional:
                if not isinstance(value, Optional):
                    raise CelRunError(
                        f"cannot initialize optional entry '{go_text(key)}' from non-optional "
                        f"value {go_text(value)}"
                    )
                if not value.has_value:
                    # As upstream: an earlier entry with this key is removed, too.
                    entries.pop(stored_key, None)
                    continue
                value = value.value
            entries[stored_key] = value
        return entries

    return create
