"""Attributes and capacities that a selector can read, derived from its text.

Devices with equal ones of these get the same result. Recognized are `device.driver`,
`device.attributes["domain"].name` and its other notations (`_name_at`); an expression that mentions
`device` in any other way is assumed to read everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from roadstead.facts.devices import AttributeFacts, DeviceFacts

_TOKEN: Final = re.compile(r"""\s*(?:("[^"\\\n]*"|'[^'\\\n]*')|([A-Za-z_][A-Za-z0-9_]*)|(\S))""")
_UNPARSED: Final = ("\\", "//", '"""', "'''")
"""Escapes, comments and long literals, which `_TOKEN` does not know: they mean "everything"."""

_DEVICE: Final = "device"
_SCALARS: Final = ("driver", "allowMultipleAllocations")
_MAPS: Final = ("attributes", "capacity")
_BEFORE_LITERAL: Final = ("", "(", "[", ",", "?", ":", "&", "|")
"""Tokens that may precede the literal in `"name" in device.attributes["domain"]`."""

_ALWAYS_READ: Final = ("version", "")
"""Kinds of attributes that every expression reads: it fails if the value of one is invalid."""

Key = tuple[object, ...]
"""The parts of a device that selectors read."""


@dataclass(frozen=True, slots=True)
class SelectorReads:
    """Attributes of a device, besides its driver, that selectors read.

    names: of attributes and capacities, without domain; None for all.
    """

    names: frozenset[str] | None

    def key(self, driver: str, device: DeviceFacts) -> Key:
        """Return the parts of a device that the selectors read; equal keys give equal results."""
        if self.names is None:
            return driver, device.allows_several, device.attributes, device.capacity
        return (
            driver,
            device.allows_several,
            tuple(each for each in device.attributes if self._reads(each)),
            tuple(each for each in device.capacity if self._has(each.name)),
        )

    def _reads(self, attribute: AttributeFacts) -> bool:
        return attribute.kind in _ALWAYS_READ or self._has(attribute.name)

    def _has(self, name: str) -> bool:
        return self.names is None or name.rpartition("/")[2] in self.names


def reads_of(expressions: Iterable[str]) -> SelectorReads:
    """Return what any of the expressions reads."""
    names: set[str] = set()
    for expression in expressions:
        found = _names_in(expression)
        if found is None:
            return SelectorReads(None)
        names |= found
    return SelectorReads(frozenset(names))


def _names_in(expression: str) -> set[str] | None:
    """Return the names that an expression reads; None if they are not clear."""
    if any(mark in expression for mark in _UNPARSED):
        return None
    tokens = [
        match.group(1) or match.group(2) or match.group(3) for match in _TOKEN.finditer(expression)
    ]
    names: set[str] = set()
    for index, token in enumerate(tokens):
        if token == _DEVICE:
            name = _name_at(tokens, index)
            if name is None:
                return None
            names.add(name)
        elif _is_literal(token) and index and tokens[index - 1] in ("r", "R", "b", "B", "br", "rb"):
            # A raw or bytes literal, which may be another text than it seems.
            return None
    names.discard("")
    return names


def _name_at(tokens: list[str], index: int) -> str | None:
    """Return the name that is read where `device` is the token at `index`.

    "" for an expression that reads no attribute and no capacity there; None if that is not clear.
    """
    before = ["", "", "", *tokens[max(index - 3, 0) : index]][-3:]
    after = [*tokens[index + 1 : index + 10], *[""] * 9]
    if before[-1] == "." or after[0] != ".":
        return None
    if after[1] in _SCALARS:
        return ""
    if after[1] not in _MAPS or after[2] != "[" or not _is_literal(after[3]) or after[4] != "]":
        return None
    # What follows `device.attributes["domain"]`; a name before "(" is a method.
    rest = after[5:]
    # .?name
    if rest[0] == "." and rest[1] == "?":
        return rest[2] if rest[3] != "(" else None
    # .name
    if rest[0] == ".":
        return rest[1] if rest[1].isidentifier() and rest[2] != "(" else None
    # ["name"] or [?"name"]
    if rest[0] == "[":
        name, end = rest[2:4] if rest[1] == "?" else rest[1:3]
        return name[1:-1] if _is_literal(name) and end == "]" else None
    # "name" in device.attributes["domain"]
    if before[2] == "in" and _is_literal(before[1]) and before[0] in _BEFORE_LITERAL:
        return before[1][1:-1]
    return None


def _is_literal(token: str) -> bool:
    """Whether a token is a string literal."""
    return token[:1] in ("'", '"') and len(token) > 1
