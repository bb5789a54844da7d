"""A refused configuration: the stage that refused it, and every wrong field with its rule."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from roadstead.protocol.errors import InputError, cut_short

Stage: TypeAlias = Literal["decode", "validate", "build"]

PROBLEMS_SHOWN: Final = 20
"""Number of problems that the text of an error lists; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One error of a configuration. `value` is the field's value, rendered as upstream renders it.

    `rule`: what the value breaks; in an error text it follows the value. `kind`: upstream's error
    type ("Invalid value", "Required value", …), empty where upstream has no field error; then
    upstream's whole text is `upstream`, or `rule` if `upstream` is empty. `line`: of the field in
    the document, from 1; 0 if it is not known.
    Upstream: apimachinery/pkg/util/validation/field/errors.go.
    """

    field: str
    rule: str
    kind: str = ""
    value: str | None = None
    upstream: str = ""
    line: int = 0

    @property
    def upstream_text(self) -> str:
        """The text that kube-scheduler prints, never cut."""
        if not self.kind:
            return self.upstream or self.rule
        parts = [self.field, self.kind, *([] if self.value is None else [self.value])]
        return ": ".join([*parts, *([self.rule] if self.rule else [])])

    @property
    def short_text(self) -> str:
        """The text for people: `field: value: rule`, with the value cut short."""
        value = "" if self.value is None else _cut(self.value)
        rule = self.rule or self.kind.lower()
        line = f"line {self.line}" if self.line else ""
        parts = (line, _cut(self.field, 200), value, _cut(rule, 600))
        return ": ".join(part for part in parts if part)


class ConfigError(InputError):
    """A refused configuration. `problems`: all errors that the stage `stage` found.

    The stages are upstream's: decode (not the right shape), validate (a value out of its range),
    build (profiles that cannot be put together).
    """

    def __init__(self, stage: Stage, problems: Iterable[Problem], *, source: str = "") -> None:
        self.stage: Stage = stage
        self.problems = tuple(problems)
        assert self.problems, "a refusal needs a reason"
        first = self.problems[0]
        super().__init__(first.rule, source=source, field=first.field, value=first.value or "")

    @property
    def errors(self) -> list[str]:
        """Return the texts that kube-scheduler prints, sorted."""
        return sorted(problem.upstream_text for problem in self.problems)

    def __str__(self) -> str:
        prefix = f"{self.source}: " if self.source else ""
        if len(self.problems) == 1:
            return prefix + self.problems[0].short_text
        lines = [f"  {problem.short_text}" for problem in self.problems[:PROBLEMS_SHOWN]]
        if len(self.problems) > PROBLEMS_SHOWN:
            lines.append(f"  and {len(self.problems) - PROBLEMS_SHOWN} more")
        return "\n".join([f"{prefix}{len(self.problems)} problems in the configuration:", *lines])

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.stage, self.problems, self.source))


def _rebuild(stage: Stage, problems: tuple[Problem, ...], source: str) -> ConfigError:
    return ConfigError(stage, problems, source=source)


def _cut(text: str, max_chars: int = 80) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def invalid(field: str, value: object, rule: str) -> Problem:
    """Return the problem of a value that breaks a rule."""
    return Problem(field, rule, "Invalid value", go_json(value))


def required(field: str, rule: str = "") -> Problem:
    """Return the problem of a missing value."""
    return Problem(field, rule, "Required value")


def duplicate(field: str, value: object) -> Problem:
    """Return the problem of a repeated value that must be unique."""
    return Problem(field, "", "Duplicate value", go_json(value))


def unsupported(field: str, value: str, supported: Iterable[str]) -> Problem:
    """Return the problem of a value outside an enumeration."""
    names = ", ".join(go_json(name) for name in supported)
    return Problem(field, f"supported values: {names}", "Unsupported value", go_json(value))


def forbidden(field: str, rule: str) -> Problem:
    """Return the problem of a field that must not be set here."""
    return Problem(field, rule, "Forbidden")


def malformed(field: str, value: object, rule: str) -> Problem:
    """Return a problem of decoding; its value is cut at once, as upstream's text differs anyway."""
    shown = cut_short(value)
    return Problem(field, rule, value=shown)


def go_json(value: object) -> str:
    """Encode a value as Go's json.Marshal."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=False)
    for char, escape in _GO_ESCAPES.items():
        text = text.replace(char, escape)
    return text


_GO_ESCAPES: Final = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
