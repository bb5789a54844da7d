"""Validators: they find literals with which every evaluation would fail.

Literals whose elements differ in type are refused, too. Upstream: cel-go 0.26 cel/validator.go
(durations, timestamps, regular expressions, homogeneous literals), ext/formatting.go (clauses of
`format`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from roadstead.cel.conversions import to_duration, to_timestamp
from roadstead.cel.errors import CelRunError, Issue
from roadstead.cel.formatting import UNFIT_ERRORS, Clause, clauses
from roadstead.cel.regexes import RegexError, compile_regex
from roadstead.cel.tree import Call, ListNode, Literal, MapNode, TreeNode, walk
from roadstead.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST,
    MAP,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
)
from roadstead.cel.unify import is_equivalent, unwrap_optional
from roadstead.cel.values import Value

# By clause of `format`: the types of arguments that fit; `_unfit` decides lists, maps and types.
_FITTING = {
    "d": (INT, UINT),
    "f": (DOUBLE, STRING),
    "e": (DOUBLE, STRING),
    "b": (INT, UINT, BOOL),
    "x": (INT, UINT, STRING, BYTES),
    "X": (INT, UINT, STRING, BYTES),
    "o": (INT, UINT),
    "s": (INT, UINT, DOUBLE, BOOL, STRING, TIMESTAMP, BYTES, DURATION, NULL),
}


def validate(root: TreeNode) -> list[Issue]:
    """Return the errors of literals in a checked tree."""
    calls = [node for node in walk(root) if isinstance(node, Call)]
    return [
        *_invalid_arguments(calls, "duration", to_duration),
        *_invalid_arguments(calls, "timestamp", to_timestamp),
        *_invalid_arguments(calls, "matches", _compile_pattern),
        *_mixed(root, _formatted_nodes(calls)),
        *_format_calls(calls),
    ]


def _compile_pattern(value: Value) -> Value:
    try:
        return compile_regex(str(value))
    except RegexError as error:
        raise CelRunError(str(error)) from None


def _invalid_arguments(
    calls: list[Call], name: str, convert: Callable[[Value], Value]
) -> Iterator[Issue]:
    for call in calls:
        if call.name != name or not call.args or not isinstance(call.args[0], Literal):
            continue
        try:
            convert(call.args[0].value)
        except CelRunError:
            yield Issue(call.args[0].offset, f"invalid {name} argument")


def _formatted_nodes(calls: list[Call]) -> set[TreeNode]:
    """Return all nodes below `format` calls, whose lists may have elements of several types."""
    return {
        below
        for call in calls
        if call.name == "format"
        for child in call.children()
        for below in walk(child)
    }


def _mixed(root: TreeNode, exempt: set[TreeNode]) -> Iterator[Issue]:
    """Yield issues of lists whose elements, and of maps whose keys or values, differ in type.

    exempt: nodes that are not checked.
    """
    nodes = [node for node in walk(root) if node not in exempt]
    for node in nodes:
        if isinstance(node, ListNode):
            yield from _mixed_list(node)
    for node in nodes:
        if isinstance(node, MapNode):
            yield from _mixed_map(node)


def _type(node: TreeNode, is_optional: bool = False) -> Type:
    type_ = node.type or DYN
    return unwrap_optional(type_)[0] if is_optional else type_


def _mismatch(node: TreeNode, expected: Type, actual: Type) -> Issue:
    text = f"expected type '{expected.formatted()}' but found '{actual.formatted()}'"
    return Issue(node.offset, text)


def _mixed_list(node: ListNode) -> Iterator[Issue]:
    types = [_type(element, at in node.optional) for at, element in enumerate(node.elements)]
    for element, type_ in zip(node.elements, types, strict=True):
        if not is_equivalent(types[0], type_):
            yield _mismatch(element, types[0], type_)
            return


def _mixed_map(node: MapNode) -> Iterator[Issue]:
    if not node.entries:
        return
    keys = [_type(entry.key) for entry in node.entries]
    values = [_type(entry.value, entry.is_optional) for entry in node.entries]
    for at, entry in enumerate(node.entries):
        if not is_equivalent(keys[0], keys[at]):
            yield _mismatch(entry.key, keys[0], keys[at])
        if not is_equivalent(values[0], values[at]):
            yield _mismatch(entry.value, values[0], values[at])


def _format_calls(calls: list[Call]) -> Iterator[Issue]:
    for call in calls:
        if call.name != "format" or not isinstance(call.target, Literal):
            continue
        text = call.target.value
        if isinstance(text, str) and call.args and isinstance(call.args[0], ListNode):
            yield from _format_issues(call, text, call.args[0].elements)


def _format_issues(call: Call, text: str, args: list[TreeNode]) -> Iterator[Issue]:
    clause_count = 0
    try:
        for clause in clauses(text, len(args)):
            if not isinstance(clause, Clause):
                continue
            clause_count += 1
            bad = _unfit(clause.kind, args[clause.argument])
            if bad is not None:
                given = f"{UNFIT_ERRORS[clause.kind]}, was given {_type(bad).name}"
                yield Issue(bad.offset, f"error during formatting: {given}")
                return
    except CelRunError as error:
        yield Issue(call.offset, str(error))
        return
    if len(args) > clause_count:
        counts = f"(expected {clause_count}, got {len(args)})"
        yield Issue(call.offset, f"too many arguments supplied to string.format {counts}")


def _unfit(kind: str, arg: TreeNode) -> TreeNode | None:
    """Return the node that a clause cannot format: the argument or, for `%s`, one inside."""
    type_ = _type(arg)
    fits = type_ == DYN or type_ in _FITTING[kind]
    if not fits and (kind != "s" or type_.kind not in (LIST, MAP, TYPE)):
        return arg
    if kind != "s" or not isinstance(arg, (ListNode, MapNode)):
        return None
    return next((bad for inner in arg.children() if (bad := _unfit("s", inner))), None)
