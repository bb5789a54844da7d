"""Templates of objects: one YAML or JSON document in which some values are filled in.

Upstream runs Go's text/template over the text (scheduler_perf getSpecFromTextTemplateFile). Here
only values can be filled in: `{{.Index}}`, `{{.Count}}` and the parameters of an op, with the
functions AddInt, SubtractInt, MultiplyInt, DivideInt and Mod. Other actions are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from roadstead.config.files import read_bytes
from roadstead.protocol.documents import read_documents
from roadstead.protocol.errors import InputError, cut_short

TEMPLATE_MAX_BYTES = 1 << 20

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_VALUE = re.compile(r"\.\w+|-?[0-9]+")

Values = Mapping[str, object]
Document = dict[str, object]


def _divided(left: int, right: int) -> int:
    """Divide as Go does: towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "AddInt": lambda left, right: left + right,
    "SubtractInt": lambda left, right: left - right,
    "MultiplyInt": lambda left, right: left * right,
    "DivideInt": _divided,
    "Mod": lambda left, right: left - right * _divided(left, right),
}


@dataclass(frozen=True, slots=True)
class Template:
    """The text of one object. source: the file, for errors."""

    source: str
    text: str

    @property
    def varies(self) -> bool:
        """Whether objects made from the template may differ."""
        return "{{" in self.text

    def document(self, values: Values | None = None) -> Document:
        """Return the object as plain data. Raises InputError if the text is not one object."""
        filled = _ACTION.sub(lambda found: self._filled(found[1], values or {}), self.text)
        documents = list(read_documents(filled, source=self.source, max_bytes=TEMPLATE_MAX_BYTES))
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise InputError("must hold one Kubernetes object", source=self.source)
        if not isinstance(documents[0].get("kind"), str):
            raise InputError("is missing", source=self.source, field="kind")
        return documents[0]

    def _filled(self, action: str, values: Values) -> str:
        function, *arguments = action.split()
        if not arguments:
            return str(self._value(function, action, values))
        known = _FUNCTIONS.get(function)
        if known is None or len(arguments) != 2:
            raise self._refused(action)
        left, right = (self._value(each, action, values) for each in arguments)
        try:
            return str(known(int(str(left)), int(str(right))))
        except (ValueError, ZeroDivisionError):
            raise self._refused(action) from None

    def _value(self, word: str, action: str, values: Values) -> object:
        if not _VALUE.fullmatch(word):
            raise self._refused(action)
        if not word.startswith("."):
            return word
        if word[1:] not in values:
            problem = f"names a value that is not there (there are: {', '.join(sorted(values))})"
            raise InputError(problem, source=self.source, value=cut_short("{{" + action + "}}"))
        return values[word[1:]]

    def _refused(self, action: str) -> InputError:
        problem = 'is not an action that can be run (want e.g. "{{.Index}}", "{{Mod .Index 3}}")'
        return InputError(problem, source=self.source, value=cut_short("{{" + action + "}}"))


def read_template(path: Path) -> Template:
    """Read a template. Raises InputError if the file cannot be read or is too large."""
    return Template(str(path), read_text(path, TEMPLATE_MAX_BYTES))


def read_text(path: Path, max_bytes: int) -> str:
    """Read a file. Raises InputError if it cannot be read, is too large or is not text."""
    try:
        return read_bytes(path, max_bytes).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", source=str(path)) from None
