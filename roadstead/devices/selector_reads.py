"""Which attributes and capacities an expression can read, found out from its text.

Devices that agree on these get the same result. An expression that is written in any other way
than `device.attributes["domain"].name` and the like is taken to read everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from roadstead.facts.devices import AttributeFacts, DeviceFacts

_TOKEN: Final = re.compile(r"""\s*(?:("[^"\\\n]*"|'[^'\\\n]*')|([A-Za-z_][A-Za-z0-9_]*)|(\S))""")
_UNCLEAR: Final = ("\\", "//", '"""', "'''")
_DEVICE: Final = "device"
_PLAIN: Final = ("driver", "allowMultipleAllocations")
_MAPS: Final = ("attributes", "capacity")
_BEFORE_TEST: Final = ("", "(", "[", ",", "?", ":", "&", "|")
"""What may stand before the text in `"name" in device.attributes["domain"]`."""

_ALWAYS: Final = ("version", "")
"""Kinds of attributes that may be invalid, which is an error of every expression."""

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Reads:
    """What selectors read of a device besides its driver. names: None if everything.

    names: of attributes and capacities, without domain.
    """

    names: frozenset[str] | None

    def key(self, driver: str, device: DeviceFacts) -> Key:
        """Return what of a device the selectors read; equal keys give equal results."""
        if self.names is None:
            return driver, device.allows_several, device.attributes, device.capacity
        return (
            driver,
            device.allows_several,
            tuple(each for each in device.attributes if self._reads(each)),
            tuple(each for each in device.capacity if self._has(each.name)),
        )

    def _reads(self, attribute: AttributeFacts) -> bool:
        return attribute.kind in _ALWAYS or self._has(attribute.name)

    def _has(self, name: str) -> bool:
        return self.names is None or name.rpartition("/")[2] in self.names


def reads_of(expressions: Iterable[str]) -> Reads:
    """Return what expressions read together."""
    names: set[str] = set()
    for expression in expressions:
        found = _names_in(expression)
        if found is None:
            return Reads(None)
        names |= found
    return Reads(frozenset(names))


def _names_in(expression: str) -> set[str] | None:
    if any(mark in expression for mark in _UNCLEAR):
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
        elif _is_text(token) and index and tokens[index - 1] in ("r", "R", "b", "B", "br", "rb"):
            return None
    names.discard("")
    return names


def _name_at(tokens: list[str], index: int) -> str | None:
    """Return the name read of the device mentioned at an index; "" if none, None if unclear."""
    before = ["", "", "", *tokens[max(index - 3, 0) : index]][-3:]
    after = [*tokens[index + 1 : index + 10], *[""] * 9]
    if before[-1] == "." or after[0] != ".":
        return None
    if after[1] in _PLAIN:
        return ""
    if after[1] not in _MAPS or after[2] != "[" or not _is_text(after[3]) or after[4] != "]":
        return None
    rest = after[5:]
    if rest[0] == "." and rest[1] == "?":
        return rest[2] if rest[3] != "(" else None
    if rest[0] == ".":
        return rest[1] if rest[1].isidentifier() and rest[2] != "(" else None
    if rest[0] == "[":
        name, end = rest[2:4] if rest[1] == "?" else rest[1:3]
        return name[1:-1] if _is_text(name) and end == "]" else None
    if before[2] == "in" and _is_text(before[1]) and before[0] in _BEFORE_TEST:
        return before[1][1:-1]
    return None


def _is_text(token: str) -> bool:
    return token[:1] in ("'", '"') and len(token) > 1
