"""RepeatedCall: calls of compiled code that find the types of the same arguments only once.

At each call numba finds the types of all arrays in the arguments, to choose the machine code for
them: for the 134 arrays of `decide_pods` this takes 30 of 36 µs. A kernel that decides pods
one at a time passes the same arrays again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import is_
from typing import Final, Generic, ParamSpec, TypeVar, cast

ENTRIES_MAX: Final = 64
"""Maximum number of functions whose machine code is cached."""

P = ParamSpec("P")
R = TypeVar("R")


class RepeatedCall(Generic[R]):
    """Call one compiled function with arrays, or tuples in which no array can be replaced."""

    def __init__(self, function: Callable[..., R]) -> None:
        self._function = function
        self._arguments: tuple[object, ...] = ()
        self._entry: Callable[..., R] | None = None

    def call(self, before: tuple[object, ...], number: int, after: tuple[object, ...] = ()) -> R:
        """Call the function with the arguments `before`, a number, and the arguments `after`.

        The number may be another one at each call.
        """
        arguments = before + after
        if self._entry is not None and all(map(is_, arguments, self._arguments)):
            return self._entry(*before, number, *after)
        result = self._function(*before, number, *after)
        self._arguments, self._entry = arguments, only_entry(self._function)
        return result


def only_entry(function: Callable[P, R]) -> Callable[P, R] | None:
    """Return the machine code of a function if it is compiled for one set of types, else None.

    It reads its arguments as if they had these types.
    """
    overloads = getattr(function, "overloads", {})
    return cast(Callable[P, R], _entry_of(function)) if len(overloads) == 1 else None


@lru_cache(maxsize=ENTRIES_MAX)
def _entry_of(function: Callable[..., object]) -> object:
    # An OrderedDict looks up each value by its key, and a key of 134 types takes 0.2 ms to hash.
    (compiled,) = getattr(function, "overloads", {}).values()
    return compiled.entry_point
