"""The tree of a CEL expression, as the parser builds it and the checker annotates it.

Nodes are mutable: the checker sets `type` and `overloads`, and resolves names.
Upstream: cel-go 0.26 common/ast/expr.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roadstead.cel.types import Type
    from roadstead.cel.values import Value

AND: Final = "_&&_"
OR: Final = "_||_"
NOT: Final = "!_"
NEGATE: Final = "-_"
CONDITIONAL: Final = "_?_:_"
EQUALS: Final = "_==_"
NOT_EQUALS: Final = "_!=_"
ADD: Final = "_+_"
INDEX: Final = "_[_]"
OPTIONAL_INDEX: Final = "_[?_]"
OPTIONAL_SELECT: Final = "_?._"
NOT_STRICTLY_FALSE: Final = "@not_strictly_false"
"""True unless the argument is false, also if it is an error: the condition of `all`, `exists`."""
IN: Final = "@in"
# Functions that only macros call.
MAP_INSERT: Final = "cel.@mapInsert"
SORT_BY_KEYS: Final = "@sortByAssociatedKeys"
ACCUMULATOR: Final = "@result"
"""The variable that holds the result of a macro while its loop runs."""
OLDER_ACCUMULATOR: Final = "__result__"
"""Name of that variable in earlier versions of cel-go, which some of its rules still mention."""
UNUSED: Final = "#unused"
"""The loop variable of `cel.bind`, which has no loop."""

RELATIONS: Final = {
    "<": "_<_",
    "<=": "_<=_",
    ">=": "_>=_",
    ">": "_>_",
    "==": EQUALS,
    "!=": NOT_EQUALS,
    "in": IN,
}
SUMS: Final = {"+": ADD, "-": "_-_"}
PRODUCTS: Final = {"*": "_*_", "/": "_/_", "%": "_%_"}


@dataclass(slots=True, eq=False)
class TreeNode:
    """Any node. offset: in characters, the position in the expression that errors show."""

    offset: int
    type: Type | None = field(default=None, init=False)

    def children(self) -> Iterator[TreeNode]:
        """Return the nodes directly below, in the order in which they are checked."""
        return iter(())


@dataclass(slots=True, eq=False)
class Literal(TreeNode):
    value: Value


@dataclass(slots=True, eq=False)
class Ident(TreeNode):
    """A variable, or the name of a type if `is_type`."""

    name: str
    is_type: bool = field(default=False, init=False)


@dataclass(slots=True, eq=False)
class Select(TreeNode):
    """`operand.name`, or `has(operand.name)` if `is_test`.

    resolved: set by the checker if the whole, such as `net.IP`, is the name of a type.
    """

    operand: TreeNode
    name: str
    is_test: bool = False
    resolved: Ident | None = field(default=None, init=False)

    def children(self) -> Iterator[TreeNode]:
        if self.resolved is None:
            yield self.operand


@dataclass(slots=True, eq=False)
class Call(TreeNode):
    """A call, of a method if there is a target. overloads: ids of those that fit the arguments."""

    name: str
    args: list[TreeNode]
    target: TreeNode | None = None
    overloads: tuple[str, ...] = field(default=(), init=False)

    def children(self) -> Iterator[TreeNode]:
        if self.target is not None:
            yield self.target
        yield from self.args


@dataclass(slots=True, eq=False)
class ListNode(TreeNode):
    """optional: positions of the elements that are written with `?`."""

    elements: list[TreeNode]
    optional: frozenset[int] = frozenset()

    def children(self) -> Iterator[TreeNode]:
        return iter(self.elements)


@dataclass(slots=True, eq=False)
class MapEntry:
    offset: int
    key: TreeNode
    value: TreeNode
    is_optional: bool = False


@dataclass(slots=True, eq=False)
class MapNode(TreeNode):
    entries: list[MapEntry]

    def children(self) -> Iterator[TreeNode]:
        for entry in self.entries:
            yield entry.key
            yield entry.value


@dataclass(slots=True, eq=False)
class StructNode(TreeNode):
    """A protobuf message `Name{field: value}`, only parsed: no selector may create a message."""

    name: str
    fields: list[tuple[str, TreeNode]]

    def children(self) -> Iterator[TreeNode]:
        return (value for _, value in self.fields)


@dataclass(slots=True, eq=False)
class Comprehension(TreeNode):
    """A loop, as all macros over lists and maps, and `cel.bind`, expand to (ComprehensionExpr).

    accumulator = start; for variable in items: stop if not condition, else accumulator = step; the
    value is result. second: a second variable, or ""; if there is one, it is the value, and
    `variable` is the key or index.
    """

    items: TreeNode
    variable: str
    second: str
    accumulator: str
    start: TreeNode
    condition: TreeNode
    step: TreeNode
    result: TreeNode

    @property
    def is_binding(self) -> bool:
        """Whether it is `cel.bind`: it only gives `start` a name."""
        return self.variable == UNUSED

    def children(self) -> Iterator[TreeNode]:
        yield self.items
        yield self.start
        yield self.condition
        yield self.step
        yield self.result


def walk(root: TreeNode) -> Iterator[TreeNode]:
    """Yield a node and all nodes below it, parents first, without recursion."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(node.children())))


def qualified_name(node: TreeNode) -> str | None:
    """Return `a.b.c` if the node consists of a name and fields only."""
    parts: list[str] = []
    while isinstance(node, Select):
        if node.is_test:
            return None
        parts.append(node.name)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))


def copied(node: TreeNode) -> TreeNode:
    """Return a copy of the tree below a node that is not yet checked."""
    match node:
        case Literal():
            return Literal(node.offset, node.value)
        case Ident():
            return Ident(node.offset, node.name)
        case Select():
            return Select(node.offset, copied(node.operand), node.name, node.is_test)
        case Call():
            target = copied(node.target) if node.target is not None else None
            return Call(node.offset, node.name, [copied(arg) for arg in node.args], target)
        case ListNode():
            return ListNode(node.offset, [copied(e) for e in node.elements], node.optional)
        case MapNode():
            entries = [
                MapEntry(e.offset, copied(e.key), copied(e.value), e.is_optional)
                for e in node.entries
            ]
            return MapNode(node.offset, entries)
        case StructNode():
            fields = [(name, copied(value)) for name, value in node.fields]
            return StructNode(node.offset, node.name, fields)
        case Comprehension():
            parts = [copied(part) for part in node.children()]
            items, start, condition, step, result = parts
            names = (node.variable, node.second, node.accumulator)
            return Comprehension(node.offset, items, *names, start, condition, step, result)
    raise AssertionError(f"unknown node {type(node).__name__}")
