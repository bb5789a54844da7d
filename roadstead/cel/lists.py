"""Functions of lists, sets and maps.

Upstream: cel-go 0.26 ext/lists.go, ext/sets.go, ext/comprehensions.go; apiserver
pkg/cel/library/lists.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Final

from roadstead.cel.errors import CelRunError, no_overload
from roadstead.cel.limits import check_items
from roadstead.cel.operators import add
from roadstead.cel.values import (
    NONE,
    DurationValue,
    Optional,
    Uint,
    Value,
    compare,
    decoded_key,
    encoded_key,
    go_text,
    is_ordered,
    is_same,
)


class GrowingMap(dict[object, object]):
    """The map that a comprehension builds.

    Only the accumulator refers to it, so that it may be changed in place.
    """

    __slots__ = ()


def _is_sorted(values: list[Value]) -> bool:
    previous: Value = None
    for at, value in enumerate(values):
        if not is_ordered(value):
            raise no_overload()
        if at and _order(previous, value) == 1:
            return False
        previous = value
    return True


def _order(first: Value, second: Value) -> int | None:
    # Upstream ignores errors of comparisons: the values then have no order.
    try:
        return compare(first, second)
    except CelRunError:
        return None


def _extreme(name: str, order: int) -> Callable[[list[Value]], Value]:
    """Return the function `max` or `min`.

    order: how the best value so far compares to a better one, -1 for `max` and 1 for `min`.
    """

    def extreme(values: list[Value]) -> Value:
        if not values:
            raise CelRunError(f"{name} called on empty list")
        best = values[0]
        for value in values:
            if not is_ordered(value):
                raise no_overload()
            if _order(best, value) == order:
                best = value
        return best

    return extreme


def _sum_from(start: Value) -> Callable[[list[Value]], Value]:
    def total(values: list[Value]) -> Value:
        result = start
        for value in values:
            result = add(result, value)
        return result

    return total


def _index_of(values: list[Value], wanted: Value) -> int:
    return next((at for at, value in enumerate(values) if is_same(value, wanted)), -1)


def _last_index_of(values: list[Value], wanted: Value) -> int:
    last = len(values) - 1
    return next(
        (last - at for at, value in enumerate(reversed(values)) if is_same(value, wanted)), -1
    )


def _slice(values: list[Value], start: int, end: int) -> list[Value]:
    call = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise CelRunError(f"{call}, negative indexes not supported")
    if start > end:
        raise CelRunError(f"{call}, start index must be less than or equal to end index")
    if len(values) < end:
        raise CelRunError(f"{call}, list is length {len(values)}")
    return values[start:end]


def _flatten(values: list[Value], depth: int = 1) -> list[Value]:
    if depth < 0:
        raise CelRunError("level must be non-negative")
    # Each round removes one level; no list nests deeper than its expression.
    for _ in range(min(depth, 1000)):
        if not any(isinstance(value, list) for value in values):
            break
        flat: list[Value] = []
        for value in values:
            if isinstance(value, list):
                check_items(len(flat) + len(value))
                flat.extend(value)
            else:
                flat.append(value)
        values = flat
    return values


def _range(count: int) -> list[Value]:
    """Return `lists.range(count)`: the numbers from 0 below `count`."""
    check_items(count)
    return list(range(count))


def _distinct(values: list[Value]) -> list[Value]:
    # The comparisons below are quadratic.
    check_items(2 * len(values) ** 2)
    distinct: list[Value] = []
    for value in values:
        if not any(is_same(value, other) for other in distinct):
            distinct.append(value)
    return distinct


def _sorted(values: list[Value]) -> list[Value]:
    return _sorted_by(values, values)


def _sorted_by(values: list[Value], keys: list[Value]) -> list[Value]:
    if len(values) != len(keys):
        raise CelRunError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    check_items(2 * len(values) ** 2)
    if not is_ordered(keys[0]):
        raise CelRunError("list elements must be comparable")
    if len(keys) > 1 and len(set(map(type, keys))) > 1:
        raise CelRunError("list elements must have the same type")
    indices = list(range(len(values)))

    def order(one: int, other: int) -> int:
        return _order(keys[one], keys[other]) or 0

    indices.sort(key=cmp_to_key(order))
    return [values[index] for index in indices]


def _sets_contain(values: list[Value], wanted: list[Value]) -> bool:
    """Return whether all of `wanted` are among the values."""
    check_items(len(values) * len(wanted))
    return all(any(is_same(one, value) for value in values) for one in wanted)


def _sets_intersect(first: list[Value], second: list[Value]) -> bool:
    check_items(len(first) * len(second))
    return any(is_same(one, other) for one in first for other in second)


def _insert(target: dict[Value, Value], key: Value, value: Value) -> dict[Value, Value]:
    stored_key = encoded_key(key)
    if stored_key in target:
        raise CelRunError(f"insert failed: key {go_text(key)} already exists")
    check_items(len(target) + 1)
    if not isinstance(target, GrowingMap):
        return {**target, stored_key: value}
    target[stored_key] = value
    return target


def _insert_all(target: dict[Value, Value], entries: dict[Value, Value]) -> dict[Value, Value]:
    for stored_key, value in entries.items():
        if stored_key in target:
            key = decoded_key(stored_key)
            raise CelRunError(f"insert failed: key {go_text(key)} already exists")
        check_items(len(target) + 1)
        if not isinstance(target, GrowingMap):
            target = GrowingMap(target)
        target[stored_key] = value
    return target


def _first(values: list[Value]) -> Value:
    return Optional(values[0]) if values else NONE


def _last(values: list[Value]) -> Value:
    return Optional(values[-1]) if values else NONE


def _unwrapped(values: list[Value]) -> list[Value]:
    unwrapped: list[Value] = []
    for value in values:
        if not isinstance(value, Optional):
            raise CelRunError(f"value {go_text(value)} is not optional")
        if value.has_value:
            unwrapped.append(value.value)
    return unwrapped


# Types of elements, as the ids of overloads name them; those of `sort` have longer names.
_TYPES = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]
_SORTED_TYPES = [
    *["int", "uint", "double", "bool", "string", "bytes"],
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
]
_ZEROS: dict[str, Value] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": DurationValue(0)}

LIST_FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    **{f"list_{type_}_is_sorted_bool": _is_sorted for type_ in _TYPES},
    **{f"list_{type_}_max_{type_}": _extreme("max", -1) for type_ in _TYPES},
    **{f"list_{type_}_min_{type_}": _extreme("min", 1) for type_ in _TYPES},
    **{f"list_{type_}_sum_{type_}": _sum_from(zero) for type_, zero in _ZEROS.items()},
    **{f"list_{type_}_sort": _sorted for type_ in _SORTED_TYPES},
    **{f"list_{type_}_sortByAssociatedKeys": _sorted_by for type_ in _SORTED_TYPES},
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": lambda values: values[::-1],
    "list_distinct": _distinct,
    "list_first": _first,
    "list_last": _last,
    "optional_unwrap": _unwrapped,
    "optional_unwrapOpt": _unwrapped,
    "list_sets_contains_list": _sets_contain,
    "list_sets_equivalent_list": lambda first, second: (
        _sets_contain(first, second) and _sets_contain(second, first)
    ),
    "list_sets_intersects_list": _sets_intersect,
    "@mapInsert_map_key_value": _insert,
    "@mapInsert_map_map": _insert_all,
}
"""Implementations by overload."""

SORTS: Final[dict[str, Callable[..., Value]]] = {
    "sort": _sorted,
    "@sortByAssociatedKeys": _sorted_by,
}
"""Functions with one implementation for all lists."""


def is_list(value: Value) -> bool:
    """Return whether the functions of `SORTS` accept a value."""
    return isinstance(value, list)
