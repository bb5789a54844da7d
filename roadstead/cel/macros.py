"""Macros: calls that the parser replaces by loops (comprehensions) and tests for a field.

Upstream: cel-go 0.26 parser/macro.go, cel/library.go (optMap), ext/bindings.go,
ext/comprehensions.go, ext/lists.go (sortBy).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from roadstead.cel.errors import Issue
from roadstead.cel.tree import (
    ACCUMULATOR,
    ADD,
    AND,
    CONDITIONAL,
    EQUALS,
    MAP_INSERT,
    NOT,
    NOT_STRICTLY_FALSE,
    OLDER_ACCUMULATOR,
    OR,
    SORT_BY_KEYS,
    UNUSED,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Select,
    TreeNode,
    copied,
    walk,
)

COPY_MAX_NODES: Final = 1000
"""A larger target of `optMap` is refused: the macro copies it, so that chains would grow fast."""

# Variable whose value is the list that `sortBy` sorts.
_SORT_INPUT = "@__sortBy_input__"
_OVERWRITES = "iteration variable overwrites accumulator variable"
_NOT_SIMPLE = "argument must be a simple name"

Expansion = TreeNode | Issue | None
"""The replacement of a call, the error of a macro, or None if the call is no macro."""

_Macro = Callable[[int, TreeNode, list[TreeNode]], Expansion]
"""(offset, target, arguments) -> expansion"""


def expand(offset: int, name: str, target: TreeNode | None, args: list[TreeNode]) -> Expansion:
    """Return the expansion of a call; offset: of the call, and of the nodes that replace it."""
    if target is None:
        return _has(offset, args[0]) if (name, len(args)) == ("has", 1) else None
    macro = _MACROS.get((name, len(args)))
    return macro(offset, target, args) if macro is not None else None


def _has(offset: int, operand: TreeNode) -> Expansion:
    if not isinstance(operand, Select) or operand.is_test:
        return Issue(operand.offset, "invalid argument to has() macro")
    return Select(offset, operand.operand, operand.name, is_test=True)


class _NodeBuilder:
    """Build nodes, all at the offset of a macro."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def call(self, name: str, *args: TreeNode) -> Call:
        return Call(self._offset, name, list(args))

    def method(self, name: str, target: TreeNode, *args: TreeNode) -> Call:
        return Call(self._offset, name, list(args), target)

    def literal(self, value: bool | int) -> Literal:
        return Literal(self._offset, value)

    def ident(self, name: str = ACCUMULATOR) -> Ident:
        """Return a variable, by default the accumulator."""
        return Ident(self._offset, name)

    def items(self, *elements: TreeNode) -> ListNode:
        return ListNode(self._offset, list(elements))

    def comprehension(
        self,
        items: TreeNode,
        names: tuple[str, str],
        start: TreeNode,
        condition: TreeNode,
        step: TreeNode,
    ) -> Comprehension:
        first, second = names
        return Comprehension(
            self._offset, items, first, second, ACCUMULATOR, start, condition, step, self.ident()
        )

    def binding(self, name: str, start: TreeNode, result: TreeNode) -> Comprehension:
        """Return `result`, in which `name` is a variable with the value of `start`.

        It is a loop over nothing, with `name` as accumulator.
        """
        never = self.literal(False)
        return Comprehension(
            self._offset, self.items(), UNUSED, "", name, start, never, self.ident(name), result
        )


def _variables(args: list[TreeNode], count: int, refusal: str) -> tuple[str, str] | Issue:
    """Return the names of the variables, the second "" for a `count` of 1.

    refusal: the error of an argument that is no name.
    """
    names: list[str] = []
    for arg in args[:count]:
        if not isinstance(arg, Ident):
            return Issue(arg.offset, refusal)
        names.append(arg.name)
    if count == 2 and names[0] == names[1]:
        return Issue(args[1].offset, f"duplicate variable name: {names[0]}")
    for name, arg in zip(names, args, strict=False):
        if name in (ACCUMULATOR, OLDER_ACCUMULATOR):
            return Issue(arg.offset, _OVERWRITES)
    return names[0], names[1] if count == 2 else ""


def _quantifier(name: str, variable_count: int) -> _Macro:
    """Return the macro `all`, `exists` or `exists_one` with this number of variables."""

    def expanded(offset: int, target: TreeNode, args: list[TreeNode]) -> Expansion:
        names = _variables(args, variable_count, _NOT_SIMPLE)
        if isinstance(names, Issue):
            return names
        build, predicate = _NodeBuilder(offset), args[variable_count]
        if name == "all":
            condition = build.call(NOT_STRICTLY_FALSE, build.ident())
            step = build.call(AND, build.ident(), predicate)
            return build.comprehension(target, names, build.literal(True), condition, step)
        if name == "exists":
            condition = build.call(NOT_STRICTLY_FALSE, build.call(NOT, build.ident()))
            step = build.call(OR, build.ident(), predicate)
            return build.comprehension(target, names, build.literal(False), condition, step)
        counted = build.call(ADD, build.ident(), build.literal(1))
        step = build.call(CONDITIONAL, predicate, counted, build.ident())
        counted_all = build.comprehension(
            target, names, build.literal(0), build.literal(True), step
        )
        counted_all.result = build.call(EQUALS, build.ident(), build.literal(1))
        return counted_all

    return expanded


def _transform(output: str, variable_count: int) -> _Macro:
    """Return a macro that builds a list or a map from a target.

    output: "list"; "map", with the keys of the target; "entry": a map from maps of one entry.
    """
    refusal = _NOT_SIMPLE if variable_count == 2 else "argument is not an identifier"

    def expanded(offset: int, target: TreeNode, args: list[TreeNode]) -> Expansion:
        names = _variables(args, variable_count, refusal)
        if isinstance(names, Issue):
            return names
        build, value = _NodeBuilder(offset), args[-1]
        start: TreeNode = build.items()
        if output == "list":
            step = build.call(ADD, build.ident(), build.items(value))
        else:
            start = MapNode(offset, [])
            key = [build.ident(names[0])] if output == "map" else []
            step = build.call(MAP_INSERT, build.ident(), *key, value)
        # With two arguments after the variables, the first of them is a condition.
        if len(args) == variable_count + 2:
            step = build.call(CONDITIONAL, args[variable_count], step, build.ident())
        return build.comprehension(target, names, start, build.literal(True), step)

    return expanded


def _filter(offset: int, target: TreeNode, args: list[TreeNode]) -> Expansion:
    names = _variables(args, 1, "argument is not an identifier")
    if isinstance(names, Issue):
        return names
    build = _NodeBuilder(offset)
    step = build.call(ADD, build.ident(), build.items(args[0]))
    step = build.call(CONDITIONAL, args[1], step, build.ident())
    return build.comprehension(target, names, build.items(), build.literal(True), step)


def _optional_map(is_flat: bool) -> _Macro:
    """Return the macro `optMap`, or `optFlatMap`, whose second argument is an optional itself."""
    name = "optFlatMap" if is_flat else "optMap"

    def expanded(offset: int, target: TreeNode, args: list[TreeNode]) -> Expansion:
        if not isinstance(args[0], Ident):
            return Issue(args[0].offset, f"{name}() variable name must be a simple identifier")
        if sum(1 for _ in walk(target)) > COPY_MAX_NODES:
            return Issue(offset, f"{name}() of an expression with too many parts")
        build = _NodeBuilder(offset)
        value = build.method("value", copied(target))
        mapped: TreeNode = build.binding(args[0].name, value, args[1])
        if not is_flat:
            mapped = build.call("optional.of", mapped)
        has_value = build.method("hasValue", target)
        return build.call(CONDITIONAL, has_value, mapped, build.call("optional.none"))

    return expanded


def _bind(offset: int, target: TreeNode, args: list[TreeNode]) -> Expansion:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        return Issue(args[0].offset, "cel.bind() variable names must be simple identifiers")
    return _NodeBuilder(offset).binding(args[0].name, args[1], args[2])


def _sort_by(offset: int, target: TreeNode, args: list[TreeNode]) -> Expansion:
    if not isinstance(target, (ListNode, Ident, Comprehension, Call)) and not (
        isinstance(target, Select) and not target.is_test
    ):
        text = (
            "sortBy can only be applied to a list, identifier, comprehension, call or select "
            "expression"
        )
        return Issue(target.offset, text)
    build = _NodeBuilder(offset)
    keys = _transform("list", variable_count=1)(offset, build.ident(_SORT_INPUT), args)
    if not isinstance(keys, TreeNode):
        return keys
    ordered = build.method(SORT_BY_KEYS, build.ident(_SORT_INPUT), keys)
    return build.binding(_SORT_INPUT, target, ordered)


# By name and number of arguments.
_MACROS: Final[dict[tuple[str, int], _Macro]] = {
    ("all", 2): _quantifier("all", variable_count=1),
    ("exists", 2): _quantifier("exists", variable_count=1),
    ("exists_one", 2): _quantifier("exists_one", variable_count=1),
    ("map", 2): _transform("list", variable_count=1),
    ("map", 3): _transform("list", variable_count=1),
    ("filter", 2): _filter,
    ("optMap", 2): _optional_map(is_flat=False),
    ("optFlatMap", 2): _optional_map(is_flat=True),
    ("bind", 3): _bind,
    ("sortBy", 2): _sort_by,
    ("all", 3): _quantifier("all", variable_count=2),
    ("exists", 3): _quantifier("exists", variable_count=2),
    ("exists_one", 3): _quantifier("exists_one", variable_count=2),
    ("existsOne", 3): _quantifier("exists_one", variable_count=2),
    ("transformList", 3): _transform("list", variable_count=2),
    ("transformList", 4): _transform("list", variable_count=2),
    ("transformMap", 3): _transform("map", variable_count=2),
    ("transformMap", 4): _transform("map", variable_count=2),
    ("transformMapEntry", 3): _transform("entry", variable_count=2),
    ("transformMapEntry", 4): _transform("entry", variable_count=2),
}
