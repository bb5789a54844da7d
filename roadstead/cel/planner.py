"""The planner: it turns a checked tree into closures over one list of variables.

Two plans are possible. If the estimated cost of an expression is within the limit, nothing is
counted. Otherwise the plan is metered: each step adds its cost, as upstream's tracker, and the
evaluation ends at the limit.

Upstream: cel-go 0.26 interpreter/planner.go, interpretable.go, decorators.go (constants).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from roadstead.cel.access import is_present, no_key, qualify, qualify_if_present
from roadstead.cel.checker import DEVICE_VARIABLE
from roadstead.cel.comprehensions import SlotTable, plan_comprehension
from roadstead.cel.conversions import CONVERSIONS
from roadstead.cel.errors import CelAbortError, CelRunError
from roadstead.cel.functions import PATTERN_FUNCTIONS, implementation_of, with_pattern
from roadstead.cel.regexes import RegexError
from roadstead.cel.run_costs import LIST_COST, MAP_COST, call_cost, constant_cost
from roadstead.cel.steps import (
    DEVICE_SLOT,
    Step,
    Variables,
    and_step,
    call_step,
    conditional_step,
    constant_member_step,
    contains_fast,
    equality_step,
    equality_with_step,
    list_only_step,
    list_step,
    map_step,
    not_equal,
    not_strictly_false_step,
    or_step,
    or_value_step,
    spend,
)
from roadstead.cel.tree import (
    CONDITIONAL,
    IN,
    INDEX,
    NOT_EQUALS,
    OPTIONAL_INDEX,
    OPTIONAL_SELECT,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Select,
    TreeNode,
)
from roadstead.cel.types import DYN
from roadstead.cel.values import DomainMap, TypeValue, Value, convertible, equal

# Fields of `device` whose entries `_path_step` reads.
_PATH_FIELDS = frozenset({"attributes", "capacity"})


class PlanError(Exception):
    """A constant part of the expression fails; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The step of a node: the closure `run` that evaluates it.

    is_constant: upstream evaluates the node at compile time, as a literal, which changes its costs
    and errors. is_fixed: the value depends on no variable, so that it can be computed now; true
    also for nodes that upstream evaluates each time.
    """

    run: Step
    is_constant: bool = False
    is_fixed: bool = False


def known_value(value: Value, is_constant: bool = True) -> Planned:
    """Return the step that returns a value which is known now."""
    return Planned(lambda variables: value, is_constant, is_fixed=True)


@dataclass(frozen=True, slots=True)
class Program:
    """A planned expression. variable_count: length of the list of variables that `run` needs."""

    run: Step
    variable_count: int


def plan(root: TreeNode, is_metered: bool) -> Program:
    """Plan a checked expression.

    Raises:
        PlanError: a conversion of a literal fails.
    """
    planner = _Planner(is_metered)
    run = planner.plan(root).run
    return Program(run, planner.slots.size)


# Variables for steps that read none: no device, and no cost so far.
_NO_VARIABLES: Final[Variables] = [None, 0]


class _Planner:
    def __init__(self, is_metered: bool) -> None:
        self._is_metered = is_metered
        self.slots = SlotTable()

    def plan(self, node: TreeNode) -> Planned:
        """Return the step of a node."""
        match node:
            case Literal():
                return known_value(node.value)
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
                return Planned(plan_comprehension(node, self.slots, self._step, self._is_metered))
        raise AssertionError(f"unknown node {type(node).__name__}")

    def _step(self, node: TreeNode) -> Step:
        return self.plan(node).run

    def _metered(self, run: Step, cost: int) -> Step:
        """Return a step that also spends a cost, if the plan is metered."""
        if not self._is_metered or not cost:
            return run

        def metered(variables: Variables) -> Value:
            value = run(variables)
            spend(variables, cost)
            return value

        return metered

    def _ident(self, node: Ident) -> Planned:
        if node.is_type:
            return known_value(TypeValue(node.name))
        if node.name == DEVICE_VARIABLE and not self.slots.is_declared(node.name):
            return Planned(self._metered(lambda variables: variables[DEVICE_SLOT], 1))
        return Planned(self._metered(self.slots.reader(node.name), 1))

    def _select(self, node: Select) -> Planned:
        if node.resolved is not None:
            return self.plan(node.resolved)
        if not node.is_test and (path := self._path_step(node)):
            return Planned(path)
        operand, key = self.plan(node.operand), node.name
        run = operand.run
        if node.is_test:
            return Planned(lambda variables: is_present(run(variables), key))
        cost = 1 if _is_attribute(node.operand) else 2
        return Planned(self._metered(_select_step(run, key), cost))

    def _path_step(self, node: Select) -> Step | None:
        """Return one step for `device.attributes["domain"].name`, a frequent form; else None."""
        if self._is_metered or self.slots.is_declared(DEVICE_VARIABLE):
            return None
        index = node.operand
        if not isinstance(index, Call) or index.name != INDEX or index.target is not None:
            return None
        outer, domain = index.args
        if not isinstance(domain, Literal) or not isinstance(outer, Select) or outer.is_test:
            return None
        if outer.name not in _PATH_FIELDS or not isinstance(outer.operand, Ident):
            return None
        if outer.operand.name != DEVICE_VARIABLE:
            return None
        field, domain_name, key = outer.name, domain.value, node.name

        def attribute(variables: Variables) -> Value:
            try:
                return variables[DEVICE_SLOT][field][domain_name][key]  # type: ignore[index]
            except KeyError:
                raise no_key(key) from None

        return attribute

    def _call(self, node: Call) -> Planned:
        nodes = node.args if node.target is None else [node.target, *node.args]
        planned = [self.plan(arg) for arg in nodes]
        runs = [step.run for step in planned]
        special = self._plan_special(node, planned, runs)
        if special is not None:
            return special
        function = self._function(node, nodes, planned)
        if _traverses_last(node):
            runs[-1] = list_only_step(runs[-1])
        if node.name in CONVERSIONS and planned[0].is_constant:
            return self._converted(call_step(function, runs))
        if node.overloads == ("in_list",) and planned[1].is_constant:
            return self._constant_member(runs)
        if self._is_metered:
            overload = node.overloads[0] if len(node.overloads) == 1 else ""
            return Planned(_metered_call(node.name, overload, function, runs))
        return _constant_folded(call_step(function, runs), planned)

    def _function(
        self, node: Call, nodes: list[TreeNode], planned: list[Planned]
    ) -> Callable[..., Value]:
        """Return the function that a call evaluates; a constant pattern is compiled now."""
        if node.name in PATTERN_FUNCTIONS and planned[1].is_constant:
            pattern = planned[1].run(_NO_VARIABLES)
            if isinstance(pattern, str):
                try:
                    return with_pattern(node.name, pattern)
                except RegexError as error:
                    raise PlanError(str(error)) from None
        if node.name == IN and not self._is_metered:
            return contains_fast
        return implementation_of(node.name, node.overloads, [arg.type or DYN for arg in nodes])

    def _constant_member(self, runs: list[Step]) -> Planned:
        values = runs[1](_NO_VARIABLES)
        assert isinstance(values, list)
        if not values:
            return known_value(False)
        # Upstream looks the value up by hash, at no cost.
        return Planned(constant_member_step(runs[0], values))

    def _plan_special(self, node: Call, planned: list[Planned], runs: list[Step]) -> Planned | None:
        """Plan a call that may skip an argument, catch its error or cost otherwise; else None."""
        match node.name:
            case "_&&_":
                return Planned(and_step(runs[0], runs[1]))
            case "_||_":
                return Planned(or_step(runs[0], runs[1]))
            case "_?_:_":
                return Planned(conditional_step(runs[0], runs[1], runs[2]))
            case "@not_strictly_false":
                return Planned(self._metered(not_strictly_false_step(runs[0]), 1))
            case "_[_]":
                return Planned(self._index(node, planned[1], runs))
            case "_[?_]" | "_?._":
                return Planned(self._optional(runs[0], runs[1]))
            case "or" | "orValue":
                return Planned(or_value_step(runs[0], runs[1], node.name == "orValue"))
            case "_==_" | "_!=_":
                return self._equality(node, planned, runs)
        return None

    def _optional(self, operand: Step, key: Step) -> Step:
        if not self._is_metered:
            return lambda variables: qualify_if_present(operand(variables), key(variables))

        def metered(variables: Variables) -> Value:
            entry = qualify_if_present(operand(variables), key(variables))
            if entry.has_value:
                spend(variables, 1)
            return entry

        return metered

    def _equality(self, node: Call, planned: list[Planned], runs: list[Step]) -> Planned:
        is_negated = node.name == NOT_EQUALS
        if self._is_metered:
            function = not_equal if is_negated else equal
            return Planned(_metered_call(node.name, node.overloads[0], function, runs))
        if not planned[1].is_fixed:
            return Planned(equality_step(runs[0], runs[1], is_negated))
        value = runs[1](_NO_VARIABLES)
        run = equality_with_step(runs[0], value, is_negated)
        return _constant_folded(run, planned)

    def _index(self, node: Call, key: Planned, runs: list[Step]) -> Step:
        first, second = runs
        cost = 1 if _is_attribute(node.args[0]) else 2
        if key.is_constant:
            return self._metered(_select_step(first, second(_NO_VARIABLES)), cost)
        return self._metered(lambda v: qualify(first(v), second(v)), cost)

    def _converted(self, run: Step) -> Planned:
        try:
            return known_value(run(_NO_VARIABLES))
        except CelRunError as error:
            raise PlanError(str(error)) from None

    def _list(self, node: ListNode) -> Planned:
        planned = [self.plan(element) for element in node.elements]
        run = list_step([step.run for step in planned], node.optional)
        return self._collection(run, planned, LIST_COST)

    def _map(self, node: MapNode) -> Planned:
        keys = [self.plan(entry.key) for entry in node.entries]
        values = [self.plan(entry.value) for entry in node.entries]
        optional = frozenset(at for at, entry in enumerate(node.entries) if entry.is_optional)
        run = map_step([key.run for key in keys], [value.run for value in values], optional)
        return self._collection(run, keys + values, MAP_COST)

    def _collection(self, run: Step, parts: list[Planned], cost: int) -> Planned:
        if all(part.is_constant for part in parts):
            try:
                return known_value(run(_NO_VARIABLES))
            except CelRunError:
                return Planned(run, is_constant=False)
        return Planned(self._metered(run, cost))


def _is_attribute(node: TreeNode) -> bool:
    """Return whether reading a field or index of the node costs 1, not 2.

    Upstream reads such a node and its field in one step, an Attribute.
    """
    if isinstance(node, (Ident, Select)):
        return True
    return isinstance(node, Call) and node.name in (
        INDEX,
        OPTIONAL_INDEX,
        OPTIONAL_SELECT,
        CONDITIONAL,
    )


def _select_step(run: Step, key: Value) -> Step:
    if not isinstance(key, str):
        return lambda variables: qualify(run(variables), key)

    def selected(variables: Variables) -> Value:
        value = run(variables)
        if type(value) is dict:
            try:
                return convertible(value[key])
            except KeyError:
                raise no_key(key) from None
        return value[key] if type(value) is DomainMap else qualify(value, key)

    return selected


def _metered_call(
    name: str, overload: str, function: Callable[..., Value], runs: list[Step]
) -> Step:
    cost = constant_cost(name, overload)
    if cost is not None:
        run = call_step(function, runs)
        fixed_cost = cost

        def counted(variables: Variables) -> Value:
            value = run(variables)
            spend(variables, fixed_cost)
            return value

        return counted

    def metered(variables: Variables) -> Value:
        args = [run(variables) for run in runs]
        result = function(*args)
        spend(variables, call_cost(name, overload, args, result))
        return result

    return metered


def _traverses_last(node: Call) -> bool:
    """Return whether upstream counts the cost of a call as if its last argument were a list."""
    if len(node.overloads) != 1:
        return False
    return node.overloads[0].endswith(("_sort", "_sortByAssociatedKeys", "list_distinct"))


def _constant_folded(run: Step, args: list[Planned]) -> Planned:
    """Plan the value of a call with fixed arguments; if it fails now, plan the call itself."""
    if not all(arg.is_fixed for arg in args):
        return Planned(run)
    try:
        return known_value(run(_NO_VARIABLES), is_constant=False)
    except (CelRunError, CelAbortError):
        return Planned(run)
