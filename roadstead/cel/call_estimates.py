"""Estimated costs of calls, by function and overload, from the sizes of their arguments.

A `CallEstimate` is the cost of a call and, if it is known, the size of the result.

Upstream: cel-go 0.26 checker/cost.go (functionCost), ext/lists.go, ext/sets.go; apiserver
pkg/cel/library/cost.go (EstimateCallCost).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from roadstead.cel.declared_sizes import declared_size
from roadstead.cel.estimates import (
    ONE,
    UINT64_MAX,
    UNKNOWN,
    ZERO,
    CallEstimate,
    Estimate,
    fixed,
)
from roadstead.cel.run_costs import (
    BY_SMALLER_OPERAND,
    CONSTANT_COST,
    LIST_COST,
    REGEX_FACTOR,
    TEXT_FACTOR,
    TRAVERSING,
)
from roadstead.cel.tree import Literal, TreeNode
from roadstead.cel.types import BYTES, CIDR, FORMAT, IP, QUANTITY, SEMVER, STRING, URL, Type

# Upstream's bounds for the name of a format and for its pattern.
_FORMAT_CHARS, _FORMAT_REGEX_CHARS = 64, 128
# Of an address of IPv4 or IPv6; networks count as their addresses.
_ADDRESS_BYTES = Estimate(4, 16)
# Functions that parse a string.
_PARSING = frozenset(
    ["cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"]
)
# Methods whose result is at most as long as the string.
_SAME_SIZE = frozenset(["lowerAscii", "upperAscii", "substring", "trim"])


class Argument(NamedTuple):
    """An argument of a call, or its target: the object of a method.

    path: for a part of `device`, the variable and the fields below it, `@items` for any element of
    a list (`declared_sizes.Path`); () for any other value. node: None for an element of a list.
    size: None if unknown.
    """

    path: tuple[str, ...]
    type: Type
    node: TreeNode | None
    size: Estimate | None

    @property
    def size_or_unknown(self) -> Estimate:
        return UNKNOWN if self.size is None else self.size

    def literal_int(self, default: int) -> int:
        """Return the value of an int literal, at least 0; the default for anything else."""
        if isinstance(self.node, Literal) and type(self.node.value) is int:
            return max(0, self.node.value)
        return default


def estimate_call(
    name: str, overload: str, target: Argument | None, args: list[Argument]
) -> CallEstimate | None:
    """Return the estimate for a function of a library.

    None for a function of the language, see `estimate_standard_call`.
    """
    estimate = _list_estimate(overload, target, args)
    if estimate is not None:
        return estimate
    if name in CONSTANT_COST or overload == "cidr_ip":
        return CallEstimate(ONE)
    if name == "_==_":
        return _equality(args)
    if target is not None:
        return _method_estimate(name, overload, target, args)
    if not args:
        return None
    size = args[0].size_or_unknown
    if name == "url":
        return CallEstimate(size.scaled(TEXT_FACTOR), size)
    if name in _PARSING:
        return CallEstimate(size.scaled(TEXT_FACTOR))
    if name == "ip.isCanonical":
        return CallEstimate(size.scaled(2 * TEXT_FACTOR))
    return None


def _method_estimate(
    name: str, overload: str, target: Argument, args: list[Argument]
) -> CallEstimate | None:
    size = target.size_or_unknown
    if name in TRAVERSING:
        return _traversal(target)
    if name in _SAME_SIZE:
        return CallEstimate(size.scaled(TEXT_FACTOR), size)
    if name == "replace" and len(args) >= 2:
        result = _replaced_size(size, args[0].size_or_unknown, args[1].size_or_unknown)
        return CallEstimate(size.scaled(2 * TEXT_FACTOR), result)
    if name == "split":
        max_parts = size.high
        if len(args) > 1 and isinstance(args[1].node, Literal):
            limit = args[1].node.value
            # Go converts the int64 to a uint64: -1 is the maximum.
            max_parts = limit % 2**64 if type(limit) is int else max_parts
        return CallEstimate(size.scaled(2 * TEXT_FACTOR), Estimate(0, max_parts))
    if name == "join":
        return _join(target, args)
    if name in ("find", "findAll") and args:
        return CallEstimate(_regex_cost(target, args[0]), Estimate(0, size.high))
    if name in ("containsIP", "containsCIDR") and args:
        return _containment(name, overload, args[0])
    if name == "validate" and args:
        cost = args[0].size_or_unknown.scaled(TEXT_FACTOR)
        return CallEstimate(cost.scaled(_FORMAT_REGEX_CHARS * REGEX_FACTOR))
    return None


def _regex_cost(text: Argument, pattern: Argument) -> Estimate:
    text_cost = text.size_or_unknown.plus(ONE).scaled(TEXT_FACTOR)
    return text_cost.times(pattern.size_or_unknown.scaled(REGEX_FACTOR))


def _element(target: Argument) -> Argument | None:
    """Return any element of a list, with the size that is declared for it; None for no list."""
    if not target.type.params:
        return None
    path = (*target.path, "@items") if target.path else ()
    return Argument(path, target.type.params[0], None, declared_size(path))


def _traversal(target: Argument) -> CallEstimate:
    """Return the estimate for a function that reads all of its target."""
    size, element = target.size_or_unknown, _element(target)
    if element is None:
        return CallEstimate(size.scaled(TEXT_FACTOR))
    cost = ONE
    if element.type in (STRING, BYTES):
        cost = cost.plus(element.size_or_unknown.scaled(TEXT_FACTOR))
    return CallEstimate(size.times(cost))


def _join(target: Argument, args: list[Argument]) -> CallEstimate:
    count, element = target.size_or_unknown, _element(target)
    size = count.times(element.size_or_unknown) if element is not None else ZERO
    if args:
        separators = Estimate(max(0, count.low - 1), max(0, count.high - 1))
        size = size.plus(args[0].size_or_unknown.times(separators))
    return CallEstimate(size.scaled(TEXT_FACTOR), size)


def _ceil_quotient(number: int, divisor: int) -> int:
    # As upstream: Go converts a float that is too large for a uint64 to 2**63.
    quotient = math.ceil(float(number) / float(divisor))
    return 2**63 if quotient > UINT64_MAX else quotient


def _replaced_size(size: Estimate, old: Estimate, new: Estimate) -> Estimate:
    """Return the size after `replace`: replacements × `new`, plus the characters left unchanged.

    An empty `old` occurs before each character and at the end. If `new` is never longer (or never
    shorter) than `old`, the longest (or shortest) result is the text without replacements.
    """
    # Replacements, and unchanged characters, in the longest and in the shortest result.
    max_count = min_count = max_unchanged = min_unchanged = 0
    if old.low == 0:
        max_count, max_unchanged = min(size.high + 1, UINT64_MAX), size.high
    elif new.high <= old.low:
        max_unchanged = size.high
    else:
        max_count = _ceil_quotient(size.high, old.low)
    if old.high == 0:
        min_count, min_unchanged = min(size.low + 1, UINT64_MAX), size.low
    elif old.high <= new.low:
        min_unchanged = size.low
    else:
        min_count = _ceil_quotient(size.low, old.high)
    return Estimate(min_count, max_count).times(new).plus(Estimate(min_unchanged, max_unchanged))


def _containment(name: str, overload: str, other: Argument) -> CallEstimate:
    """Return the estimate for containsIP or containsCIDR. other: its argument."""
    size = _ADDRESS_BYTES
    cost = size.plus(size).scaled(TEXT_FACTOR)
    if name == "containsCIDR":
        cost = cost.plus(size.scaled(TEXT_FACTOR)).plus(ONE)
    if overload.endswith("_string"):
        cost = cost.plus(other.size_or_unknown.scaled(TEXT_FACTOR))
    return CallEstimate(cost)


def _equality(args: list[Argument]) -> CallEstimate | None:
    """Return the estimate for `==` of values of Kubernetes' types; None for other types."""
    first, second = args
    if first.type != second.type:
        return None
    if first.type in (IP, CIDR, QUANTITY, SEMVER):
        return CallEstimate(ONE)
    if first.type == FORMAT:
        return CallEstimate(Estimate(1, _FORMAT_CHARS).scaled(TEXT_FACTOR))
    if first.type == URL:
        max_size = 1 if second.size is None else second.size.high
        return CallEstimate(Estimate(1, max_size).scaled(TEXT_FACTOR))
    return None


def _list_estimate(
    overload: str, target: Argument | None, args: list[Argument]
) -> CallEstimate | None:
    if overload.startswith("list_sets_"):
        factor = 2.0 if overload == "list_sets_equivalent_list" else 1.0
        product = args[0].size_or_unknown.times(args[1].size_or_unknown)
        return CallEstimate(product.scaled(factor).plus(ONE))
    if overload == "lists_range":
        return _allocating(1, fixed(args[0].literal_int(UINT64_MAX)))
    if target is None:
        return None
    size = target.size_or_unknown
    if overload == "list_slice":
        count = args[1].literal_int(size.high) - args[0].literal_int(0)
        return _allocating(1, fixed(count % 2**64))
    if overload == "list_reverse":
        return _allocating(1, size)
    if overload in ("list_flatten", "list_flatten_int"):
        depth = args[0].literal_int(UINT64_MAX) if args else 1
        return _allocating(float(depth), size)
    if overload == "list_distinct":
        return _allocating(2, size.times(size))
    if overload.endswith("_sort"):
        return _sorting(size, overload)
    if overload.endswith("_sortByAssociatedKeys"):
        return _sorting(args[0].size_or_unknown, overload)
    return None


def _sorting(size: Estimate, overload: str) -> CallEstimate:
    is_text = overload.startswith(("list_string_", "list_bytes_"))
    return _allocating(2 + (TEXT_FACTOR if is_text else 0), size.times(size))


def _allocating(factor: float, size: Estimate) -> CallEstimate:
    """Return the estimate for a function that creates a list of `size`, at `factor` per element."""
    return CallEstimate(size.scaled(factor).plus(ONE).plus(fixed(LIST_COST)), size)


def estimate_standard_call(
    overload: str, target: Argument | None, args: list[Argument]
) -> CallEstimate:
    """Return the estimate for a function of the language."""
    if overload == "string_format" and target is not None:
        return CallEstimate(target.size_or_unknown.scaled(TEXT_FACTOR))
    if len(args) == 1:
        estimate = _one_argument(overload, target, args[0].size_or_unknown)
        if estimate is not None:
            return estimate
    if len(args) != 2:
        return CallEstimate(ONE)
    first, second = args[0].size_or_unknown, args[1].size_or_unknown
    if overload == "in_list":
        return CallEstimate(second.scaled(1))
    if overload in ("add_string", "add_bytes"):
        size = first.plus(second)
        return CallEstimate(size.scaled(TEXT_FACTOR), size)
    if overload == "add_list":
        return CallEstimate(ONE, first.plus(second))
    if overload in BY_SMALLER_OPERAND:
        smaller = min(first.high, second.high)
        return CallEstimate(Estimate(1 if smaller else 0, smaller).scaled(TEXT_FACTOR))
    return CallEstimate(ONE)


def _one_argument(overload: str, target: Argument | None, size: Estimate) -> CallEstimate | None:
    cost = size.scaled(TEXT_FACTOR)
    if overload == "string_to_bytes":
        return CallEstimate(cost, Estimate(size.low, size.high * 4 % 2**64))
    if overload == "bytes_to_string":
        return CallEstimate(cost, Estimate(size.low // 4, size.high))
    if overload == "strings_quote":
        return CallEstimate(cost, Estimate(size.low + 2, (size.high * 2 + 2) % 2**64))
    if overload in ("starts_with_string", "ends_with_string"):
        return CallEstimate(cost)
    if target is None:
        return None
    target_size = target.size_or_unknown
    if overload == "matches_string":
        text_cost = target_size.plus(ONE).scaled(TEXT_FACTOR)
        return CallEstimate(text_cost.times(size.scaled(REGEX_FACTOR)))
    if overload == "contains_string":
        return CallEstimate(target_size.scaled(TEXT_FACTOR).times(cost))
    return None
