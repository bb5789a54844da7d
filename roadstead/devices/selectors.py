"""Results of selectors, evaluated once for all devices that are equal in what these read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from roadstead.devices.selector_reads import Key, SelectorReads, reads_of

if TYPE_CHECKING:
    from roadstead.facts.devices import DeviceFacts

RESULTS_MAX: Final = 1_000_000
"""Results that are cached; beyond, all are dropped and evaluated again when needed."""

QUERIES_MAX: Final = 65_536
"""Queries that `query_of` caches. One that was dropped becomes a new object when it occurs again,
and is evaluated again."""


class DeviceSelectorError(Exception):
    """A selector that does not compile, or fails on a device; the text is upstream's."""


class Selector(Protocol):
    """A compiled expression."""

    def matches(self, driver: str, device: DeviceFacts) -> bool:
        """Whether the device matches; raises `DeviceSelectorError`."""
        ...


Compile = Callable[[str], Selector]
"""Compiles an expression; raises `DeviceSelectorError`."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """The selectors that a device must match: those of the class, then those of the request.

    Call `query_of`, not the constructor: equal queries must be one object, since they are compared
    by identity.
    """

    of_class: tuple[str, ...]
    of_request: tuple[str, ...]


@lru_cache(QUERIES_MAX)
def query_of(of_class: tuple[str, ...], of_request: tuple[str, ...]) -> Query:
    """Return the query with these selectors."""
    return Query(of_class, of_request)


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """The error of a selector. index: among those of the class or request. text: upstream's."""

    is_of_class: bool
    index: int
    text: str


Outcome = bool | SelectorFailure
"""Whether a device matches, or the first failure."""


class SelectorResults:
    """Evaluate queries, once for all devices that differ only in what the query does not read.

    compile_selector: called once per expression.
    """

    def __init__(self, compile_selector: Compile) -> None:
        self._compile = compile_selector
        # By expression: its selector, or the text of the error if it does not compile.
        self._selectors: dict[str, Selector | str] = {}
        # By query: what it reads of a device, and outcomes by the device's parts that it reads.
        self._outcomes: dict[Query, tuple[SelectorReads, dict[Key, Outcome]]] = {}
        self._count = 0

    def evaluate(self, query: Query, driver: str, device: DeviceFacts) -> Outcome:
        """Return whether a device matches, or the first failure."""
        known = self._outcomes.get(query)
        if known is None or self._count >= RESULTS_MAX:
            if self._count >= RESULTS_MAX:
                self._outcomes.clear()
                self._count = 0
            known = (reads_of((*query.of_class, *query.of_request)), {})
            self._outcomes[query] = known
        reads, outcomes = known
        key = reads.key(driver, device)
        outcome = outcomes.get(key)
        if outcome is None:
            outcome = outcomes[key] = self._evaluate(query, driver, device)
            self._count += 1
        return outcome

    def _evaluate(self, query: Query, driver: str, device: DeviceFacts) -> Outcome:
        for is_of_class, selectors in ((True, query.of_class), (False, query.of_request)):
            for index, expression in enumerate(selectors):
                outcome = self.matches(expression, driver, device)
                if isinstance(outcome, str):
                    return SelectorFailure(is_of_class, index, outcome)
                if not outcome:
                    return False
        return True

    def matches(self, expression: str, driver: str, device: DeviceFacts) -> bool | str:
        """Return whether a device matches one expression, or the text of its error."""
        selector = self._selectors.get(expression)
        if selector is None:
            try:
                selector = self._compile(expression)
            except DeviceSelectorError as error:
                selector = f"CEL compile error: {error}"
            self._selectors[expression] = selector
        if isinstance(selector, str):
            return selector
        try:
            return selector.matches(driver, device)
        except DeviceSelectorError as error:
            return f"CEL runtime error: {error}"
