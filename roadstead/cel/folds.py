"""Comprehensions: loops of a plan, and names bound to values.

Upstream: cel-go 0.26 interpreter/interpretable.go (evalFold, folder).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from roadstead.cel.errors import CelRunError, no_overload
from roadstead.cel.lists import GrowingMap
from roadstead.cel.operators import Growing
from roadstead.cel.steps import Step, Variables, spend
from roadstead.cel.tree import (
    ACCUMULATOR,
    AND,
    NOT_STRICTLY_FALSE,
    OR,
    Call,
    Fold,
    Ident,
    Literal,
    Node,
)
from roadstead.cel.values import Value, decoded, go_type, items_of, reread


@dataclass(frozen=True, slots=True)
class _Failed:
    """The error that an accumulator holds: later steps may still make it irrelevant."""

    error: CelRunError


_UNSET: Final = object()


@dataclass(slots=True)
class Scope:
    """Places of variables. size: of the list of variables."""

    size: int = 2
    _names: dict[str, list[Step]] = field(default_factory=dict)

    def place(self) -> int:
        """Return a new place."""
        self.size += 1
        return self.size - 1

    def declare(self, name: str, reader: Step) -> None:
        """Let a name be read by a step, until `forget`."""
        self._names.setdefault(name, []).append(reader)

    def forget(self, name: str) -> None:
        """End the innermost declaration of a name."""
        self._names[name].pop()

    def is_declared(self, name: str) -> bool:
        return bool(self._names.get(name))

    def reader(self, name: str) -> Step:
        """Return the step that reads a name."""
        return self._names[name][-1]


def plan_fold(node: Fold, scope: Scope, plan: Callable[[Node], Step], is_metered: bool) -> Step:
    """Return the step of a comprehension."""
    if node.is_binding:
        return _plan_binding(node, scope, plan)
    items = plan(node.items)
    start = plan(node.start)
    first = scope.place()
    second = scope.place() if node.second else 0
    scope.declare(node.variable, _place_reader(first))
    if node.second:
        scope.declare(node.second, _place_reader(second))
    predicate = _predicate(node)
    run: Step
    if predicate is not None:
        wanted = isinstance(node.start, Literal) and node.start.value is False
        # Condition and step read the accumulator; `exists` negates it once more.
        cost = (4 if wanted else 3) if is_metered else 0
        run = _quantified(_assigning(items, first, second), plan(predicate), wanted, cost)
    else:
        run = _plan_loop(node, scope, plan, _assigning(items, first, second), start)
    scope.forget(node.variable)
    if node.second:
        scope.forget(node.second)
    return run


def _plan_loop(
    node: Fold,
    scope: Scope,
    plan: Callable[[Node], Step],
    iterate: Callable[[Variables], Iterator[None]],
    start: Step,
) -> Step:
    place = scope.place()
    scope.declare(node.accumulator, _accumulator_reader(place))
    condition, step = plan(node.condition), plan(node.step)
    result = plan(node.result)
    scope.forget(node.accumulator)

    def looped(variables: Variables) -> Value:
        # The places of an inner loop are used again in each round of the outer one.
        rounds = iterate(variables)
        variables[place] = _grown(start(variables))
        for _ in rounds:
            if condition(variables) is False:
                break
            try:
                variables[place] = step(variables)
            except CelRunError as error:
                variables[place] = _Failed(error)
        return _settled(result(variables))

    return looped


def _settled(value: Value) -> Value:
    if isinstance(value, Growing):
        return list(value)
    return dict(value) if isinstance(value, GrowingMap) else value


def _grown(value: Value) -> Value:
    # Upstream replaces whatever is empty, so also device maps, which then lack their default.
    if isinstance(value, list) and not value:
        return Growing()
    if isinstance(value, dict) and not value:
        return GrowingMap()
    return value


def _place_reader(place: int) -> Step:
    return lambda variables: reread(variables[place])


def _accumulator_reader(place: int) -> Step:
    def read(variables: Variables) -> Value:
        value = variables[place]
        if isinstance(value, _Failed):
            raise value.error
        return value

    return read


def _assigning(items: Step, first: int, second: int) -> Callable[[Variables], Iterator[None]]:
    """Return what sets the variables of a loop for each round."""

    def single(variables: Variables) -> Iterator[None]:
        return _each(items_of(items(variables)), variables, first)

    def pairs(variables: Variables) -> Iterator[None]:
        value = items(variables)
        if isinstance(value, dict):
            found = iter([(decoded(key), entry) for key, entry in value.items()])
        elif isinstance(value, list):
            found = iter(list(enumerate(value)))
        else:
            raise CelRunError(f"unsupported comprehension range type: {go_type(value)}")
        return _each_pair(found, variables, first, second)

    return pairs if second else single


def _each(values: Iterator[Value], variables: Variables, place: int) -> Iterator[None]:
    for value in values:
        variables[place] = value
        yield


def _each_pair(
    pairs: Iterator[tuple[Value, Value]], variables: Variables, first: int, second: int
) -> Iterator[None]:
    for key, value in pairs:
        variables[first], variables[second] = key, value
        yield


def _predicate(node: Fold) -> Node | None:
    """Return the predicate of `all` or `exists`, if the comprehension is one of them."""
    condition, step, result = node.condition, node.step, node.result
    if not isinstance(condition, Call) or condition.name != NOT_STRICTLY_FALSE:
        return None
    if not isinstance(step, Call) or step.name not in (AND, OR) or not isinstance(result, Ident):
        return None
    assert node.accumulator == ACCUMULATOR
    return step.args[1]


def _quantified(
    iterate: Callable[[Variables], Iterator[None]], predicate: Step, wanted: bool, cost: int
) -> Step:
    """Return whether the predicate is `wanted` once; else its first error, else the contrary.

    cost: of a round without the predicate, if costs are counted; the result costs 1.
    """

    def quantified(variables: Variables) -> Value:
        error: CelRunError | None = None
        for _ in iterate(variables):
            if cost:
                spend(variables, cost)
            try:
                value = predicate(variables)
            except CelRunError as raised:
                error = error or raised
                continue
            if value is wanted:
                if cost:
                    spend(variables, cost)
                return wanted
            if not isinstance(value, bool):
                error = error or no_overload()
        if cost:
            spend(variables, 1)
        if error is not None:
            raise error
        return not wanted

    return quantified


def _plan_binding(node: Fold, scope: Scope, plan: Callable[[Node], Step]) -> Step:
    start = plan(node.start)
    place = scope.place()

    def read(variables: Variables) -> Value:
        value = variables[place]
        if value is _UNSET:
            # Evaluated when it is first read, as upstream; so is its error.
            try:
                value = _grown(start(variables))
            except CelRunError as error:
                value = _Failed(error)
            variables[place] = value
        if isinstance(value, _Failed):
            raise value.error
        return reread(value)

    scope.declare(node.accumulator, read)
    result = plan(node.result)
    scope.forget(node.accumulator)

    def bound(variables: Variables) -> Value:
        variables[place] = _UNSET
        return _settled(result(variables))

    return bound
