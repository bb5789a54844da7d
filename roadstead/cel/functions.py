"""Implementations of functions, and the choice of the implementation for a call.

If the checker does not know the types of the arguments, each evaluation chooses an overload by
their classes; it is an error if none fits.

Upstream: cel-go 0.26 common/decls/decls.go (Bindings, matchesRuntimeSignature).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from roadstead.cel.conversions import CONVERSIONS
from roadstead.cel.declarations import FUNCTIONS, Overload
from roadstead.cel.errors import CelRunError, no_overload
from roadstead.cel.kubernetes import KUBERNETES_FUNCTIONS
from roadstead.cel.lists import LIST_FUNCTIONS, SORTS, is_list
from roadstead.cel.network import Address, Cidr
from roadstead.cel.operators import OPERATORS
from roadstead.cel.regexes import compile_regex, find, find_all, matches
from roadstead.cel.semver import Semver
from roadstead.cel.texts import TEXT_FUNCTIONS, contains_text, ends_with, starts_with
from roadstead.cel.times import TIME_FUNCTIONS
from roadstead.cel.types import LIST, MAP, NULL, OPAQUE, PARAM, STRUCT, TYPE, Type
from roadstead.cel.values import (
    NONE,
    DurationValue,
    NamedFormat,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Url,
    Value,
    content_of,
    decoded_key,
    type_name,
)
from roadstead.protocol.quantity import Quantity

Function = Callable[..., Value]
_Guard = Callable[[Value], bool]
"""Returns whether a value fits the type of an argument; it guards a call of an implementation."""

# By name of a CEL type: the Python class of its values.
_CLASSES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "null_type": type(None),
    "google.protobuf.Duration": DurationValue,
    "google.protobuf.Timestamp": Timestamp,
    "optional_type": Optional,
    "kubernetes.Quantity": Quantity,
    "kubernetes.Semver": Semver,
    "kubernetes.URL": Url,
    "kubernetes.NamedFormat": NamedFormat,
    "net.IP": Address,
    "net.CIDR": Cidr,
}


def _matches(text: Value, pattern: Value) -> Value:
    if not isinstance(text, str):
        if isinstance(text, (DurationValue, Timestamp)):
            raise no_overload()
        raise CelRunError("no such overload: matches")
    if not isinstance(pattern, str):
        raise no_overload()
    return matches(text, pattern)


PATTERN_FUNCTIONS: Final = frozenset({"matches", "find", "findAll"})
"""Functions whose second argument is a pattern."""


def with_pattern(name: str, pattern: str) -> Function:
    """Return one of `PATTERN_FUNCTIONS` with a constant pattern; raises RegexError."""
    compile_regex(pattern)
    searches: dict[str, Function] = {"matches": matches, "find": find, "findAll": find_all}
    function = searches[name]

    # The second argument is the pattern again; the third, of `findAll` only, is the limit.
    def searched(text: Value, _: Value, *limits: Value) -> Value:
        if not isinstance(text, str) or not all(type(limit) is int for limit in limits):
            raise no_overload()
        return function(text, pattern, *limits)

    return searched


def _list_checking(name: str) -> Function:
    """Return a function of `SORTS` that refuses arguments that are no lists."""
    sort = SORTS[name]

    def checked(*args: Value) -> Value:
        if not all(map(is_list, args)):
            raise CelRunError(f"no such overload: {name}")
        return sort(*args)

    return checked


def _of_non_zero(value: Value) -> Value:
    """Return `optional.ofNonZeroValue(value)`: no value for the zero of a type."""
    is_zero = value is None or (
        isinstance(value, (bool, int, float, str, bytes, list, dict)) and not value
    )
    if isinstance(value, DurationValue):
        is_zero = value.nanoseconds == 0
    return NONE if is_zero else Optional(value)


_SELF_CHECKING: Final[dict[str, Function]] = {
    **OPERATORS,
    "matches": _matches,
    "contains": contains_text,
    "startsWith": starts_with,
    "endsWith": ends_with,
    "sort": _list_checking("sort"),
    "@sortByAssociatedKeys": _list_checking("@sortByAssociatedKeys"),
}
"""Functions that check the classes of their arguments themselves."""

_BY_OVERLOAD: Final[dict[str, Function]] = {
    **TEXT_FUNCTIONS,
    **LIST_FUNCTIONS,
    **KUBERNETES_FUNCTIONS,
    **TIME_FUNCTIONS,
    **{o.id: convert for name, convert in CONVERSIONS.items() for o in FUNCTIONS[name]},
    "optional_of": Optional,
    "optional_ofNonZeroValue": _of_non_zero,
    "optional_none": lambda: NONE,
    "optional_value": content_of,
    "optional_hasValue": lambda optional: optional.has_value,
}


def implementation_of(name: str, overloads: tuple[str, ...], types: list[Type]) -> Function:
    """Return the function that a call evaluates.

    overloads: ids that the checker found. types: of the arguments, `dyn` if unknown.
    """
    function = _SELF_CHECKING.get(name)
    if function is not None:
        return function
    declared = FUNCTIONS[name]
    if len(overloads) == 1:
        declared = tuple(overload for overload in declared if overload.id == overloads[0])
        if all(map(_is_known, types)):
            return _BY_OVERLOAD[overloads[0]]
    return _dispatcher(name, declared)


def _is_known(type_: Type) -> bool:
    """Return whether a value of this type surely has the class that the overload needs."""
    # The checker accepts null for optionals and for types of Kubernetes; no function does.
    if type_.is_dyn_or_error or type_.kind == PARAM or type_ == NULL:
        return False
    # With elements of an unknown type a dispatcher is needed: it checks the first element.
    return all(map(_is_known, type_.params))


def _dispatcher(name: str, overloads: tuple[Overload, ...]) -> Function:
    """Return a function that calls the first overload whose types the arguments fit."""
    candidates = [
        ([_guard(arg) for arg in overload.args], _BY_OVERLOAD[overload.id])
        for overload in overloads
        if overload.id in _BY_OVERLOAD
    ]

    def dispatched(*args: Value) -> Value:
        for guards, function in candidates:
            if len(guards) == len(args) and all(
                guard is None or guard(arg) for guard, arg in zip(guards, args, strict=True)
            ):
                return function(*args)
        raise CelRunError(f"no such overload: {name}({', '.join(map(type_name, args))})")

    return dispatched


def _guard(type_: Type) -> _Guard | None:
    """Return the guard of a type; None if every value fits."""
    if type_.is_dyn or type_.kind == PARAM:
        return None
    if type_.kind == LIST:
        return _list_guard(_guard(type_.params[0]))
    if type_.kind == MAP:
        return _map_guard(_guard(type_.params[0]), _guard(type_.params[1]))
    if type_.kind == TYPE:
        return lambda value: isinstance(value, TypeValue)
    assert type_.kind in (OPAQUE, STRUCT) or type_.name in _CLASSES
    class_ = _CLASSES[type_.name]
    if class_ is Quantity:
        # Results of sums are of a subclass.
        return lambda value: isinstance(value, Quantity)
    return lambda value: type(value) is class_


def _list_guard(inner: _Guard | None) -> _Guard:
    def fits(value: Value) -> bool:
        if not isinstance(value, list):
            return False
        # As upstream, by the first element; the functions check the others.
        return inner is None or not value or inner(value[0])

    return fits


def _map_guard(key_guard: _Guard | None, inner: _Guard | None) -> _Guard:
    def fits(value: Value) -> bool:
        if not isinstance(value, dict):
            return False
        # As upstream, by the first entry.
        for key, entry in value.items():
            fits_key = key_guard is None or key_guard(decoded_key(key))
            return fits_key and (inner is None or inner(entry))
        return True

    return fits
