"""The estimated maximum cost of an expression: the same integer as upstream's.

Upstream: cel-go 0.26 checker/cost.go; dynamic-resource-allocation cel/compile.go (sizeEstimator).
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.cel.call_estimates import Argument, estimate_call, estimate_standard_call
from roadstead.cel.declared_sizes import Path, declared_size
from roadstead.cel.estimates import (
    EMPTY_RANGE,
    ONE,
    UNKNOWN,
    ZERO,
    CallEstimate,
    EntrySize,
    Estimate,
    fixed,
)
from roadstead.cel.run_costs import LIST_COST, MAP_COST
from roadstead.cel.tree import (
    ACCUMULATOR,
    OLDER_ACCUMULATOR,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Select,
    TreeNode,
)
from roadstead.cel.types import DYN, LIST, MAP, PARAM, SCALARS, STRUCT, Type


def estimate_max_cost(root: TreeNode) -> int:
    """Return the maximum cost of a checked expression, at most 2**64 - 1."""
    return _CostEstimator().cost(root).high


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable of a comprehension. path: as in `Argument`. entry: sizes of keys and values."""

    path: Path
    size: Estimate | None
    entry: EntrySize | None


class _CostEstimator:
    """Estimate one expression.

    _paths: by node, its variable and the fields below it. _locals: by name, the variables of the
    comprehensions around the current node, innermost last. _sizes: by node, the size of its value.
    _entries: by node, the sizes of the value's keys and values. Both lack nodes of unknown sizes.
    """

    def __init__(self) -> None:
        self._paths: dict[TreeNode, Path] = {}
        self._locals: dict[str, list[_Variable]] = {}
        self._sizes: dict[TreeNode, Estimate] = {}
        self._entries: dict[TreeNode, EntrySize] = {}

    def cost(self, node: TreeNode) -> Estimate:
        """Return the cost of a node and of all nodes below it."""
        match node:
            case Literal():
                return ZERO
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Comprehension():
                return self._binding(node) if node.is_binding else self._comprehension(node)
        raise AssertionError(f"unknown node {type(node).__name__}")

    def _local(self, name: str) -> _Variable | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _push(self, name: str, local: _Variable) -> None:
        self._locals.setdefault(name, []).append(local)

    def _ident(self, node: Ident) -> Estimate:
        local = self._local(node.name)
        self._paths[node] = local.path if local is not None else (node.name,)
        return ONE

    def _select(self, node: Select) -> Estimate:
        if node.resolved is not None:
            return self._ident(node.resolved)
        total = self.cost(node.operand)
        if node.is_test:
            return total
        if _type(node.operand).kind in (MAP, STRUCT, PARAM):
            total = total.plus(ONE)
        self._paths[node] = (*self._path(node.operand), node.name)
        return total

    def _path(self, node: TreeNode) -> Path:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(node, ())

    def _argument(self, node: TreeNode) -> Argument:
        path = self._path(node)
        # Accumulators of macros, by their name now or in earlier versions, are no part of `device`.
        if path and path[0] in (OLDER_ACCUMULATOR, ACCUMULATOR):
            path = ()
        return Argument(path, _type(node), node, self._size(node))

    def _call(self, node: Call) -> Estimate:
        if node.name == "dyn":
            cost = self.cost(node.args[0])
            self._copy_sizes(node, node.args[0])
            return ONE.plus(cost)
        costs: list[Estimate] = []
        args: list[Argument] = []
        for arg in node.args:
            costs.append(self.cost(arg))
            args.append(self._argument(arg))
        total, target = ZERO, None
        if node.target is not None:
            total = self.cost(node.target)
            target = self._argument(node.target)
        # EMPTY_RANGE has no numbers: the unions below start with it.
        cost, size = EMPTY_RANGE, None
        for overload in node.overloads:
            estimate = self._overload_cost(node, overload, target, args, costs)
            cost = cost.union(estimate.cost)
            if estimate.result is not None:
                size = estimate.result if size is None else size.union(estimate.result)
            if overload in ("index_list", "index_map"):
                # The result is an entry: its size is known from the list or map, its path is one
                # part longer than theirs (`Path`).
                entry = self._entry(node.args[0])
                size = entry.value if entry is not None else None
                part = "@items" if overload == "index_list" else "@values"
                self._paths[node] = (*self._path(node.args[0]), part)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[node] = size
        return total.plus(cost)

    def _overload_cost(
        self,
        node: Call,
        overload: str,
        target: Argument | None,
        args: list[Argument],
        costs: list[Estimate],
    ) -> CallEstimate:
        args_cost = ZERO
        for cost in costs:
            args_cost = args_cost.plus(cost)
        estimate = estimate_call(node.name, overload, target, args)
        if estimate is not None:
            return CallEstimate(estimate.cost.plus(args_cost), estimate.result)
        if overload in ("logical_or", "logical_and"):
            return CallEstimate(Estimate(costs[0].low, costs[0].plus(costs[1]).high))
        if overload == "conditional":
            return self._conditional(node, costs)
        if overload in ("add_string", "add_bytes", "add_list"):
            self._join_entries(node)
        estimate = estimate_standard_call(overload, target, args)
        return CallEstimate(estimate.cost.plus(args_cost), estimate.result)

    def _conditional(self, node: Call, costs: list[Estimate]) -> CallEstimate:
        _, chosen, other = node.args
        size = self._size_or_unknown(chosen).union(self._size_or_unknown(other))
        first = self._entry(chosen)
        joined = first.union(self._entry(other)) if first is not None else None
        if joined is not None:
            self._entries[node] = joined
        return CallEstimate(costs[0].plus(costs[1].union(costs[2])), size)

    def _join_entries(self, node: Call) -> None:
        """Record the sizes of entries of a sum of two values."""
        first = self._entry(node.args[0])
        joined = first.union(self._entry(node.args[1])) if first is not None else None
        if joined is not None:
            self._entries[node] = joined

    def _list(self, node: ListNode) -> Estimate:
        total = ZERO
        size = EMPTY_RANGE if node.elements else ZERO
        for element in node.elements:
            total = total.plus(self.cost(element))
            size = size.union(self._size_or_unknown(element))
        self._entries[node] = EntrySize(is_list=True, key=ONE, value=size)
        return total.plus(fixed(LIST_COST))

    def _map(self, node: MapNode) -> Estimate:
        total = ZERO
        keys = values = EMPTY_RANGE if node.entries else ZERO
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self._size_or_unknown(entry.key))
            values = values.union(self._size_or_unknown(entry.value))
        self._entries[node] = EntrySize(is_list=False, key=keys, value=values)
        return total.plus(fixed(MAP_COST))

    def _comprehension(self, node: Comprehension) -> Estimate:
        total = self.cost(node.items).plus(self.cost(node.start))
        self._push(node.accumulator, self._variable_of(node.start))
        names = self._push_iterated(node)
        condition = self.cost(node.condition)
        step = self.cost(node.step)
        for name in names:
            self._locals[name].pop()
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        count = self._size_or_unknown(node.items)
        total = total.plus(count.times(step.plus(condition)))
        # As upstream: a list or map that a macro builds has as many entries as the items.
        if isinstance(node.start, Literal):
            self._set_size(node, self._size(node.start))
        elif isinstance(node.start, (ListNode, MapNode)):
            self._sizes[node] = count
            entry = self._entry(node.step)
            if entry is not None:
                self._entries[node] = entry
        return total

    def _variable_of(self, node: TreeNode) -> _Variable:
        """Return a variable with the value of a node."""
        return _Variable(self._path(node), self._size(node), self._entry(node))

    def _push_iterated(self, node: Comprehension) -> list[str]:
        """Declare the variables of a loop; return their names."""
        entry = self._entry(node.items)
        path = self._path(node.items)
        is_list = entry.is_list if entry is not None else _type(node.items).kind == LIST
        keys = entry.key if entry is not None else None
        values = entry.value if entry is not None else None
        key = _Variable((*path, "@indices" if is_list else "@keys"), keys, None)
        value = _Variable((*path, "@items" if is_list else "@values"), values, None)
        if not node.second:
            self._push(node.variable, value if is_list else key)
            return [node.variable]
        self._push(node.variable, key)
        self._push(node.second, value)
        return [node.variable, node.second]

    def _binding(self, node: Comprehension) -> Estimate:
        total = self.cost(node.items).plus(self.cost(node.start))
        self._push(node.accumulator, self._variable_of(node.start))
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        self._copy_sizes(node, node.result)
        return total

    def _copy_sizes(self, node: TreeNode, source: TreeNode) -> None:
        self._set_size(node, self._size(source))
        entry = self._entry(source)
        if entry is not None:
            self._entries[node] = entry

    def _set_size(self, node: TreeNode, size: Estimate | None) -> None:
        if size is not None:
            self._sizes[node] = size

    def _size_or_unknown(self, node: TreeNode) -> Estimate:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _size(self, node: TreeNode) -> Estimate | None:
        size = self._sizes.get(node)
        if size is None:
            size = _literal_size(node)
        if size is not None:
            return size
        size = declared_size(self._path(node))
        if size is not None:
            self._sizes[node] = size
            return size
        if _is_scalar(_type(node)):
            return ONE
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.size
        return None

    def _entry(self, node: TreeNode) -> EntrySize | None:
        entry = self._entries.get(node)
        if entry is None and isinstance(node, Ident):
            local = self._local(node.name)
            entry = local.entry if local is not None else None
        return entry


def _type(node: TreeNode) -> Type:
    return node.type or DYN


def _literal_size(node: TreeNode) -> Estimate | None:
    if isinstance(node, Literal):
        return fixed(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
    if isinstance(node, ListNode):
        return fixed(len(node.elements))
    return fixed(len(node.entries)) if isinstance(node, MapNode) else None


def _is_scalar(type_: Type) -> bool:
    if type_.is_optional:
        return _is_scalar(type_.params[0])
    return type_ in SCALARS
