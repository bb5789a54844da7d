"""Interning: values from manifests become small integer codes for columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class CodeInterner(Generic[T]):
    """Value → code, in order of first use. Codes never change and values are never removed."""

    __slots__ = ("_code_of", "values")

    def __init__(self, values: Iterable[T] = ()) -> None:
        self.values: list[T] = []
        self._code_of: dict[T, int] = {}
        for value in values:
            self.code(value)

    def code(self, value: T) -> int:
        """Return the code of a value; a new value gets the next code."""
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self.values)
            self.values.append(value)
        return code

    def find(self, value: T) -> int:
        """Return the code of a value, or -1."""
        return self._code_of.get(value, -1)

    def __len__(self) -> int:
        return len(self.values)
