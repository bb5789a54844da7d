"""Interning: values from manifests become small integer codes that columns can hold."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Value → code in order of first sight. Codes never change; nothing is ever forgotten."""

    __slots__ = ("_code_of", "values")

    def __init__(self, values: Iterable[T] = ()) -> None:
        self.values: list[T] = []
        self._code_of: dict[T, int] = {}
        for value in values:
            self.code(value)

    def code(self, value: T) -> int:
        """The code of a value, new if it was never seen."""
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self.values)
            self.values.append(value)
        return code

    def find(self, value: T) -> int:
        """The code of a value, or -1."""
        return self._code_of.get(value, -1)

    def __len__(self) -> int:
        return len(self.values)
