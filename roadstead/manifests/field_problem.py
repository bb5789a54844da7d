"""FieldProblem: a value that the API server would refuse, with its field."""

from __future__ import annotations

from typing import NamedTuple

from roadstead.protocol.objects import field_path

RuleTexts = tuple[str, ...]
"""The rules that a value breaks."""

Path = tuple[str | int, ...]
"""Names of fields and indices of lists, from the outside in."""


class FieldProblem(NamedTuple):
    """A value that is not allowed.

    field: its path from the value that was checked, which is an object or one of its fields.
    """

    field: str
    value: str
    rules: RuleTexts

    def below(self, *path: str | int) -> FieldProblem:
        """Return the problem with `path`, that of the checked value, before its field."""
        outer = field_path(path)
        joined = f"{outer}{self.field}" if self.field.startswith("[") else f"{outer}.{self.field}"
        return self._replace(field=joined if self.field else outer)


def problem_at(path: Path, value: object, *rules: str) -> FieldProblem:
    """Return the problem of the value at a path."""
    return FieldProblem(field_path(path), str(value), rules)
