"""Plans of comprehensions: loops over lists and maps (`all`, `map`, …), and `cel.bind`.

A plan is a tree of steps: closures that compute one node of the expression from the list of
variables (`steps.py`). A comprehension is a node `Comprehension` with the fields of upstream's
ComprehensionExpr; its variables have slots in that list.

Upstream: cel-go 0.26 interpreter/interpretable.go (evalFold, folder).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from roadstead.cel.errors import CelRunError, no_overload
from roadstead.cel.lists import GrowingMap
from roadstead.cel.operators import GrowingList
from roadstead.cel.steps import COST_SLOT, Step, Variables, spend
from roadstead.cel.tree import (
    ACCUMULATOR,
    AND,
    NOT_STRICTLY_FALSE,
    OR,
    Call,
    Comprehension,
    Ident,
    Literal,
    TreeNode,
)
from roadstead.cel.values import Value, decoded_key, go_type, items_of, rewrapped


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error in place of the value of a variable, raised where the variable is read.

    A loop does not end at an error, since a later iteration may make it irrelevant: `false && e`
    is false. It ends the evaluation only if the result reads it.
    """

    error: CelRunError


_UNSET: Final = object()
"""The value of a `cel.bind` variable that has not been read yet."""


@dataclass(slots=True)
class SlotTable:
    """The slots of variables in the list of variables, and the names that are visible now.

    size: of the list. Its first two slots are `DEVICE_SLOT` and `COST_SLOT`.
    """

    size: int = COST_SLOT + 1
    _names: dict[str, list[Step]] = field(default_factory=dict)

    def add_slot(self) -> int:
        """Return the index of a new slot; no other variable of the expression uses it."""
        self.size += 1
        return self.size - 1

    def declare(self, name: str, reader: Step) -> None:
        """Make a name visible until `forget`; the step `reader` returns its value."""
        self._names.setdefault(name, []).append(reader)

    def forget(self, name: str) -> None:
        """Remove the innermost declaration of a name; an outer one is visible again."""
        self._names[name].pop()

    def is_declared(self, name: str) -> bool:
        return bool(self._names.get(name))

    def reader(self, name: str) -> Step:
        """Return the step that reads the innermost variable of a name."""
        return self._names[name][-1]


def plan_comprehension(
    node: Comprehension, slots: SlotTable, plan: Callable[[TreeNode], Step], is_metered: bool
) -> Step:
    """Return the step that computes a comprehension.

    plan: returns the step of a node below it. is_metered: count costs while it runs.
    """
    if node.is_binding:
        return _plan_binding(node, slots, plan)
    # Planned before the variables are declared: neither may read them.
    items = plan(node.items)
    start = plan(node.start)
    first = slots.add_slot()
    second = slots.add_slot() if node.second else None
    slots.declare(node.variable, _slot_reader(first))
    if second is not None:
        slots.declare(node.second, _slot_reader(second))
    iterate = _iterations(items, first, second)
    predicate = _predicate(node)
    run: Step
    if predicate is not None:
        # The value of the predicate that ends the loop: `exists` starts with false and ends at the
        # first true; `all` the other way round.
        deciding = isinstance(node.start, Literal) and node.start.value is False
        # What upstream counts for an iteration: 1 for `@not_strictly_false`, 1 for each read of the
        # accumulator, by condition and step, and 1 for `!` in the condition of `exists`.
        cost = (4 if deciding else 3) if is_metered else 0
        run = _quantifier(iterate, plan(predicate), deciding, cost)
    else:
        run = _plan_loop(node, slots, plan, iterate, start)
    slots.forget(node.variable)
    if second is not None:
        slots.forget(node.second)
    return run


def _plan_loop(
    node: Comprehension,
    slots: SlotTable,
    plan: Callable[[TreeNode], Step],
    iterate: Callable[[Variables], Iterator[None]],
    start: Step,
) -> Step:
    """Return the step of a comprehension with an accumulator: any but `all` and `exists`."""
    accumulator = slots.add_slot()
    slots.declare(node.accumulator, _accumulator_reader(accumulator))
    condition, step = plan(node.condition), plan(node.step)
    result = plan(node.result)
    slots.forget(node.accumulator)

    def looped(variables: Variables) -> Value:
        # In a nested loop these slots have values of an earlier run: set them before anything reads
        # them. The items are computed before the start value, as upstream does.
        iterations = iterate(variables)
        variables[accumulator] = _to_mutable(start(variables))
        for _ in iterations:
            if condition(variables) is False:
                break
            try:
                variables[accumulator] = step(variables)
            except CelRunError as error:
                variables[accumulator] = _Failed(error)
        return _to_immutable(result(variables))

    return looped


def _to_immutable(value: Value) -> Value:
    """Return the value of an accumulator as a list or map that is no longer changed."""
    if isinstance(value, GrowingList):
        return list(value)
    return dict(value) if isinstance(value, GrowingMap) else value


def _to_mutable(value: Value) -> Value:
    """Return a list or map to which steps append in place, for a start value that is empty.

    Copies at each iteration would cost the square of the result's length.
    """
    # As upstream, for any empty list or map: an empty map of a device (DomainMap) loses its default
    # for domains that it lacks.
    if isinstance(value, list) and not value:
        return GrowingList()
    if isinstance(value, dict) and not value:
        return GrowingMap()
    return value


def _slot_reader(slot: int) -> Step:
    # `rewrapped`: upstream converts an optional that a variable holds, and some conversions fail.
    return lambda variables: rewrapped(variables[slot])


def _accumulator_reader(slot: int) -> Step:
    def read(variables: Variables) -> Value:
        value = variables[slot]
        if isinstance(value, _Failed):
            raise value.error
        return value

    return read


def _iterations(
    items: Step, first: int, second: int | None
) -> Callable[[Variables], Iterator[None]]:
    """Return a function whose iterator sets the variables of a loop at each step.

    first, second: slots of the variables. A single variable has the element of a list or the key of
    a map; two have index and element, or key and value.
    """

    def single(variables: Variables) -> Iterator[None]:
        return _set_each(items_of(items(variables)), variables, first)

    if second is None:
        return single

    def pairs(variables: Variables) -> Iterator[None]:
        # Not a generator itself, so that a wrong range is an error before the loop starts.
        value = items(variables)
        if isinstance(value, dict):
            # `decoded_key`: keys that are bools are encoded, since True equals 1 in a dict.
            entries = iter([(decoded_key(key), entry) for key, entry in value.items()])
        elif isinstance(value, list):
            entries = iter(list(enumerate(value)))
        else:
            raise CelRunError(f"unsupported comprehension range type: {go_type(value)}")
        return _set_each_pair(entries, variables, first, second)

    return pairs


def _set_each(values: Iterator[Value], variables: Variables, slot: int) -> Iterator[None]:
    for value in values:
        variables[slot] = value
        yield


def _set_each_pair(
    pairs: Iterator[tuple[Value, Value]], variables: Variables, first: int, second: int
) -> Iterator[None]:
    for key, value in pairs:
        variables[first], variables[second] = key, value
        yield


def _predicate(node: Comprehension) -> TreeNode | None:
    """Return the predicate of `all` or `exists`; None for any other comprehension.

    The tree does not have the names of macros. These two have the condition
    `@not_strictly_false(…)`, and the step `@result && p` or `@result || p`, with predicate p.
    """
    condition, step, result = node.condition, node.step, node.result
    if not isinstance(condition, Call) or condition.name != NOT_STRICTLY_FALSE:
        return None
    if not isinstance(step, Call) or step.name not in (AND, OR) or not isinstance(result, Ident):
        return None
    # Only macros make such a tree: no expression can name this accumulator.
    assert node.accumulator == ACCUMULATOR
    return step.args[1]


def _quantifier(
    iterate: Callable[[Variables], Iterator[None]],
    predicate: Step,
    deciding: bool,
    cost: int,
) -> Step:
    """Return the step of `all` or `exists`, without an accumulator, which makes it faster.

    The step returns `deciding` at the first item for which the predicate has this value: true for
    `exists`, false for `all`. If there is no such item, the step raises the first error, else
    returns the opposite. cost: of an iteration apart from its predicate; 0 if no costs are counted.
    """

    def quantify(variables: Variables) -> Value:
        error: CelRunError | None = None
        for _ in iterate(variables):
            if cost:
                spend(variables, cost)
            try:
                value = predicate(variables)
            except CelRunError as raised:
                error = error or raised
                continue
            if value is deciding:
                if cost:
                    # The condition that ends the loop and the result cost as much as an iteration.
                    spend(variables, cost)
                return deciding
            if not isinstance(value, bool):
                error = error or no_overload()
        if cost:
            # The result reads the accumulator.
            spend(variables, 1)
        if error is not None:
            raise error
        return not deciding

    return quantify


def _plan_binding(node: Comprehension, slots: SlotTable, plan: Callable[[TreeNode], Step]) -> Step:
    """Return the step of `cel.bind(name, start, result)`."""
    start = plan(node.start)
    slot = slots.add_slot()

    def read(variables: Variables) -> Value:
        value = variables[slot]
        if value is _UNSET:
            # As upstream, the value is computed at the first read, and only then, even if that
            # fails; never, if the result does not need it.
            try:
                value = _to_mutable(start(variables))
            except CelRunError as error:
                value = _Failed(error)
            variables[slot] = value
        if isinstance(value, _Failed):
            raise value.error
        return rewrapped(value)

    slots.declare(node.accumulator, read)
    result = plan(node.result)
    slots.forget(node.accumulator)

    def bound(variables: Variables) -> Value:
        variables[slot] = _UNSET
        return _to_immutable(result(variables))

    return bound
