"""The cost of a call at run time, from its arguments and its result.

Upstream: cel-go 0.26 interpreter/runtimecost.go, ext/lists.go, ext/sets.go; apiserver
pkg/cel/library/cost.go (CallCost).
"""

from __future__ import annotations

import math
from typing import Final

from roadstead.cel.network import Address, Cidr
from roadstead.cel.semver import Semver
from roadstead.cel.values import NamedFormat, Optional, Url, Value
from roadstead.protocol.quantity import Quantity

# Cost of creating a list or a map.
LIST_COST: Final = 10
MAP_COST: Final = 30
# Cost of each character of a string that is read, and of each of a regular expression.
TEXT_FACTOR: Final = 0.1
REGEX_FACTOR: Final = 0.25

# Functions that cost 1.
CONSTANT_COST = frozenset(
    [
        "masked",
        "prefixLength",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "format.named",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "getEscapedPath",
        "getQuery",
    ]
)
# Functions that read all of their target; their cost is its `traversal`.
TRAVERSING = frozenset(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"])
# Functions that read their first argument once.
_COST_BY_LENGTH = frozenset(
    [
        "url",
        "lowerAscii",
        "upperAscii",
        "substring",
        "trim",
        "cidr",
        "isIP",
        "isCIDR",
        "quantity",
        "isQuantity",
        "semver",
        "isSemver",
    ]
)
# Overloads that compare at most the length of the shorter operand.
BY_SMALLER_OPERAND = frozenset({"equals", "not_equals"}) | {
    f"{relation}_{type_}"
    for relation in ("less", "greater", "less_equals", "greater_equals")
    for type_ in ("string", "bytes")
}
# Overloads of the language that read their first argument once.
_BY_FIRST = frozenset(
    [
        "starts_with_string",
        "ends_with_string",
        "string_to_bytes",
        "bytes_to_string",
        "strings_quote",
        "string_format",
    ]
)
# Overloads that create a list.
_LIST_OUTPUT = frozenset({"list_slice", "lists_range", "list_reverse"})
# Other functions of the libraries whose cost depends on sizes.
_SIZED = frozenset(
    {
        "ip",
        "replace",
        "split",
        "ip.isCanonical",
        "join",
        "find",
        "findAll",
        "containsIP",
        "containsCIDR",
        "validate",
        "_==_",
    }
)
# Other overloads of the language whose cost depends on sizes.
_STANDARD_SIZED = frozenset(
    {"in_list", "add_string", "add_bytes", "matches_string", "contains_string", "list_distinct"}
)
# Types of Kubernetes' libraries. As upstream, a comparison by == costs 1, whatever their size.
_LIBRARY_TYPES = (Quantity, Semver, Url, NamedFormat, Address, Cidr)


def size_of(value: Value) -> int:
    """Return the size from which costs are computed; 1 for values without a size."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    if isinstance(value, Optional) and value.has_value:
        return size_of(value.value)
    if isinstance(value, (Address, Cidr)):
        return value.size_bytes
    return 1


def _scaled(size: float, factor: float) -> int:
    return math.ceil(size * factor)


def traversal(value: Value) -> int:
    """Return the cost of reading all of a value."""
    total, waiting = 0, [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            total += int(len(current.encode("utf-8", "surrogatepass")) * TEXT_FACTOR)
        elif isinstance(current, bytes):
            total += int(len(current) * TEXT_FACTOR)
        elif isinstance(current, list):
            waiting.extend(current)
        elif isinstance(current, dict):
            waiting.extend(current.keys())
            waiting.extend(current.values())
        else:
            total += 1
    return total


def call_cost(name: str, overload: str, args: list[Value], result: Value) -> int:
    """Return the cost of one call. overload: "" if several fit the types of the arguments."""
    cost = _list_cost(overload, args, result)
    if cost is None:
        cost = _library_cost(name, overload, args, result)
    return _standard_cost(overload, args) if cost is None else cost


def constant_cost(name: str, overload: str) -> int | None:
    """Return the cost of a call if it is the same for all arguments, else None."""
    if name in CONSTANT_COST or overload == "cidr_ip":
        return 1
    depends_on_arguments = (
        name in TRAVERSING | _COST_BY_LENGTH | _SIZED
        or overload in _BY_FIRST | BY_SMALLER_OPERAND | _LIST_OUTPUT | _STANDARD_SIZED
        or overload.startswith(("list_sets_", "list_flatten"))
        or overload.endswith(("_sort", "_sortByAssociatedKeys"))
    )
    return None if depends_on_arguments else 1


def _list_cost(overload: str, args: list[Value], result: Value) -> int | None:
    if overload.startswith("list_sets_"):
        factor = 2 if overload == "list_sets_equivalent_list" else 1
        return 1 + size_of(args[0]) * size_of(args[1]) * factor
    fixed_cost = 1 + LIST_COST
    if overload in _LIST_OUTPUT:
        return fixed_cost + size_of(result)
    if overload in ("list_flatten", "list_flatten_int"):
        depth = args[1] if len(args) == 2 else 1
        assert isinstance(depth, int)
        return fixed_cost + size_of(args[0]) * depth
    if overload == "list_distinct":
        return fixed_cost + 2 * size_of(args[0]) ** 2
    if overload.endswith(("_sort", "_sortByAssociatedKeys")):
        keys = args[-1]
        if not isinstance(keys, list) or not keys:
            return fixed_cost
        per_pair = 2 + (TEXT_FACTOR if isinstance(keys[0], (str, bytes)) else 0)
        return fixed_cost + int(len(keys) ** 2 * per_pair)
    return None


def _library_cost(name: str, overload: str, args: list[Value], result: Value) -> int | None:
    if name in CONSTANT_COST or overload == "cidr_ip":
        return 1
    if name in TRAVERSING:
        return traversal(args[0])
    if name in _COST_BY_LENGTH or name == "ip":
        return _scaled(size_of(args[0]), TEXT_FACTOR)
    if name in ("replace", "split", "ip.isCanonical"):
        return _scaled(size_of(args[0]) * 2, TEXT_FACTOR)
    if name == "join":
        return _scaled(size_of(result) * 2, TEXT_FACTOR)
    if name in ("find", "findAll"):
        return _regex_cost(size_of(args[0]), size_of(args[1]))
    if name in ("containsIP", "containsCIDR"):
        return _containment_cost(name, overload, args)
    if name == "validate" and isinstance(args[0], NamedFormat):
        return _regex_cost(size_of(args[1]), args[0].regex_chars)
    if name == "_==_" and isinstance(args[0], _LIBRARY_TYPES):
        return 1
    return None


def _containment_cost(name: str, overload: str, args: list[Value]) -> int:
    """Return the cost of containsIP or containsCIDR; the argument is a string or parsed already."""
    size = size_of(args[0])
    cost = _scaled(size * 2, TEXT_FACTOR)
    if name == "containsCIDR":
        cost += _scaled(size, TEXT_FACTOR) + 1
    if overload.endswith("_string"):
        cost += _scaled(size_of(args[1]), TEXT_FACTOR)
    return cost


def _regex_cost(text_size: int, pattern_size: int) -> int:
    return _scaled(1.0 + text_size, TEXT_FACTOR) * _scaled(pattern_size, REGEX_FACTOR)


def _standard_cost(overload: str, args: list[Value]) -> int:
    if overload in _BY_FIRST:
        return _scaled(size_of(args[0]), TEXT_FACTOR)
    if overload == "in_list":
        return size_of(args[1])
    if overload in BY_SMALLER_OPERAND:
        return _scaled(min(size_of(args[0]), size_of(args[1])), TEXT_FACTOR)
    if overload in ("add_string", "add_bytes"):
        return _scaled(size_of(args[0]) + size_of(args[1]), TEXT_FACTOR)
    if overload == "matches_string":
        return _regex_cost(size_of(args[0]), size_of(args[1]))
    if overload == "contains_string":
        return _scaled(size_of(args[0]), TEXT_FACTOR) * _scaled(size_of(args[1]), TEXT_FACTOR)
    return 1
