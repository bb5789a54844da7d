"""Values of CEL at run time, with upstream's equality and order.

int, float, str, bytes, bool and None are Python's own; lists are never changed, maps are
dicts whose bool keys are encoded (True equals 1 in Python). uint, durations, timestamps,
optionals and types have classes of their own.

Upstream: cel-go 0.26 common/types/*.go. There, a value is a Go value in a wrapper (ref.Val); some
errors name the class of either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from roadstead.cel.doubles import double_text
from roadstead.cel.errors import CelRunError, no_overload
from roadstead.cel.network import Address, Cidr
from roadstead.cel.semver import Semver
from roadstead.protocol.quantity import Quantity

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1

Value = object
"""Any value of CEL; operators check its class."""


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class DurationValue:
    nanoseconds: int


@dataclass(frozen=True, slots=True, eq=False)
class Timestamp:
    """A moment. nanoseconds: since 1970 in UTC; offset_s: of the zone in which it is printed."""

    nanoseconds: int
    offset_s: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value; only its name counts."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    """A value that may be missing."""

    value: Value = None
    has_value: bool = True


NONE: Final = Optional(has_value=False)


@dataclass(frozen=True, slots=True)
class Unconvertible:
    """The content of an optional whose value upstream could not wrap again (`rewrapped`).

    text: the error, which is raised when the value is read. As upstream, elements of a list or map
    that are written with `?` may be such values, too.
    """

    text: str


def convertible(value: Value) -> Value:
    """Return a value of an optional, list or map; raises CelRunError for an `Unconvertible`."""
    if type(value) is Unconvertible:
        raise CelRunError(value.text)
    return value


def content_of(optional: Optional) -> Value:
    """Return the value of an optional; raises CelRunError if there is none."""
    if not optional.has_value:
        raise CelRunError("optional.none() dereference")
    return convertible(optional.value)


def rewrapped(value: Value) -> Value:
    """Return a value as it is after it was read from a variable or was chosen by `a ? b : c`.

    Upstream takes the Go value out of an optional there and wraps it again. This fails for types of
    Kubernetes (keys of `_GO_NAMES`): their optional then has an `Unconvertible`. Other values are
    unchanged. Raises CelRunError for an `Unconvertible`.
    """
    if type(value) is Optional and value.has_value:
        name = _GO_NAMES.get(type(value.value))
        if name is not None:
            text = f"unsupported conversion to ref.Val: ({name}){value.value}"
            return Optional(Unconvertible(text))
    return convertible(value)


class QuantityResult(Quantity):
    """The result of adding or subtracting quantities, for which upstream has another class."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL. text: as Go prints it."""

    text: str
    scheme: str
    host: str
    hostname: str
    port: str
    escaped_path: str
    query: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format of `format.named`. regex_chars: length of its pattern, which decides costs."""

    name: str
    regex_chars: int


@dataclass(frozen=True, slots=True)
class _BoolKey:
    """Key of a dict for a bool, which differs from the keys 0 and 1."""

    value: bool


_BOOL_KEYS = {True: _BoolKey(True), False: _BoolKey(False)}


# Never changed.
_EMPTY: Final[dict[object, object]] = {}


class DomainMap(dict[object, object]):
    """`device.attributes` and `device.capacity`: a map that returns {} for a missing domain.

    `m[d]`, `m.?d` and `==` use this default; `size` and iteration see only the stored domains.
    """

    __slots__ = ()

    def __missing__(self, key: object) -> dict[object, object]:
        return _EMPTY


def encoded_key(key: Value) -> Value:
    """Return the key under which a map stores `key`.

    Raises:
        CelRunError: no map can have such a key.
    """
    if type(key) is bool:
        return _BOOL_KEYS[key]
    if isinstance(key, (list, dict)):
        raise CelRunError(f"unsupported key type: {type_name(key)}")
    return key


def decoded_key(key: Value) -> Value:
    """Return the key that was encoded."""
    return key.value if isinstance(key, _BoolKey) else key


def items_of(value: Value) -> Iterator[Value]:
    """Return the elements of a list, or the keys of a map."""
    if isinstance(value, list):
        return iter(value)
    if isinstance(value, dict):
        return map(decoded_key, value)
    raise CelRunError(f"got '{go_type(value)}', expected iterable type")


# By Python class: the name of the CEL type.
_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    DurationValue: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    Optional: "optional_type",
    Unconvertible: "error",
    Quantity: "kubernetes.Quantity",
    QuantityResult: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    Url: "kubernetes.URL",
    NamedFormat: "kubernetes.NamedFormat",
    Address: "net.IP",
    Cidr: "net.CIDR",
}
# By Python class: the Go class of the value inside upstream's wrapper.
_GO_NAMES: dict[type, str] = {
    Quantity: "*resource.Quantity",
    QuantityResult: "*resource.Quantity",
    Semver: "semver.Version",
    Url: "*url.URL",
    Address: "netip.Addr",
    Cidr: "netip.Prefix",
}
# By Python class: the Go class of upstream's wrapper.
_GO_TYPES: dict[type, str] = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    DurationValue: "types.Duration",
    Timestamp: "types.Timestamp",
    TypeValue: "*types.Type",
    Optional: "*types.Optional",
    Unconvertible: "*types.Err",
    Quantity: "cel.Quantity",
    Semver: "cel.Semver",
    Url: "cel.URL",
    NamedFormat: "cel.Format",
    Address: "cel.IP",
    Cidr: "cel.CIDR",
}
# Types of Kubernetes, whose comparison with another type is an error.
_STRICT = (Quantity, Semver, Url, NamedFormat, Address, Cidr)
_COMPARED_BY_PYTHON = frozenset(
    {str, int, bool, float, bytes, Uint, type(None), DurationValue, Timestamp, TypeValue}
)
_NUMBERS = frozenset({int, Uint, float})


def type_name(value: Value) -> str:
    """Return the name of a value's type at run time."""
    if isinstance(value, list):
        return "list"
    if isinstance(value, dict):
        return "map"
    return _NAMES[type(value)]


def go_type(value: Value) -> str:
    """Return the name of a value's class upstream, which some errors name."""
    return _GO_TYPES.get(type(value), type_name(value))


def equal(first: Value, second: Value) -> bool:
    """Return whether two values are equal; those of different types are not.

    Raises:
        CelRunError: the first is of a type of Kubernetes and the second is not of the same; or the
            first is `Unconvertible`.
    """
    kind = type(first)
    if kind is type(second) and kind in _COMPARED_BY_PYTHON:
        return first == second
    if first is None or second is None:
        return False
    if kind in _NUMBERS:
        return type(second) in _NUMBERS and _equal_numbers(first, second)
    if isinstance(first, list):
        return isinstance(second, list) and _equal_lists(first, second)
    if isinstance(first, dict):
        return isinstance(second, dict) and _equal_maps(first, second)
    if isinstance(first, Optional):
        return isinstance(second, Optional) and _equal_optionals(first, second)
    if isinstance(first, _STRICT):
        # As upstream, a computed quantity (QuantityResult) on the right is an error.
        if type(second) is not (Quantity if isinstance(first, Quantity) else kind):
            raise no_overload()
        return first == second
    convertible(first)
    return False


def is_not_different(first: Value, second: Value) -> bool:
    """Whether elements of lists or maps are equal; as upstream, also if comparing is an error."""
    try:
        return equal(first, second)
    except CelRunError:
        return True


def is_same(first: Value, second: Value) -> bool:
    """Whether an element is the searched value; not if comparing is an error."""
    try:
        return equal(first, second)
    except CelRunError:
        return False


def _equal_numbers(first: Value, second: Value) -> bool:
    """Whether numbers of two types are equal; as upstream, a double converts the other number."""
    if type(first) is float or type(second) is float:
        return float(first) == float(second)  # type: ignore[arg-type]
    return first == second


def _equal_lists(first: list[Value], second: list[Value]) -> bool:
    return len(first) == len(second) and all(map(is_not_different, first, second))


def _equal_maps(first: dict[Value, Value], second: dict[Value, Value]) -> bool:
    if len(first) != len(second):
        return False
    for key, value in first.items():
        if key in second:
            other = second[key]
        elif isinstance(second, DomainMap):
            other = {}
        else:
            return False
        if not is_not_different(value, other):
            return False
    return True


def _equal_optionals(first: Optional, second: Optional) -> bool:
    if not (first.has_value and second.has_value):
        return first.has_value == second.has_value
    return equal(convertible(first.value), second.value)


def compare(first: Value, second: Value) -> int:
    """Return -1, 0 or 1: the first is less, equal or more.

    Raises:
        CelRunError: the two have no order.
    """
    kind, other = type(first), type(second)
    if kind in _NUMBERS and other in _NUMBERS:
        if math.isnan(first) or math.isnan(second):  # type: ignore[arg-type]
            raise CelRunError("NaN values cannot be ordered")
        if kind is float or other is float:
            # As upstream: an int beyond 2**53 may be rounded.
            first, second = float(first), float(second)  # type: ignore[arg-type]
    elif kind is not other or kind not in _ORDERED:
        raise no_overload()
    if isinstance(first, (DurationValue, Timestamp)):
        assert isinstance(second, (DurationValue, Timestamp))
        first, second = first.nanoseconds, second.nanoseconds
    is_more: bool = first > second  # type: ignore[operator]
    is_less: bool = first < second  # type: ignore[operator]
    return is_more - is_less


_ORDERED = frozenset({bool, int, Uint, float, str, bytes, DurationValue, Timestamp})


def is_ordered(value: Value) -> bool:
    """Return whether values of this type can be compared at all."""
    return type(value) in _ORDERED


def go_text(value: Value) -> str:
    """Return a value as it is written in errors about keys (Go's `%v`)."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case bytes():
            return "[" + " ".join(map(str, value)) + "]"
        case int() | str():
            return str(value)
        case TypeValue():
            return value.name
    return type_name(value)
