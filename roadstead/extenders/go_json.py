"""A decoder of the first JSON value of a text, with the error texts of Go.

Upstream: encoding/json (Decoder.Decode, scanner.go). Text after the first value is ignored.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from roadstead.protocol.json_escapes import without_half_pairs

_SPACE = re.compile(r"[ \t\r\n]*")
_TOO_DEEP = "exceeded max depth"
_WHOLE = r"-?(?:0|[1-9][0-9]*)"
_DIGIT = re.compile(r"[0-9]")
_NUMBER_PREFIXES = (
    (re.compile(r"-"), "in numeric literal"),
    (re.compile(rf"{_WHOLE}\."), "after decimal point in numeric literal"),
    (re.compile(rf"{_WHOLE}(?:\.[0-9]+)?[eE][+-]?"), "in exponent of numeric literal"),
)
"""Prefixes of a number after which a digit must follow, and Go's text for their position."""

_NUMBER = re.compile(rf"{_WHOLE}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LITERALS = {"t": "true", "f": "false", "n": "null"}


def decode_first(content: bytes) -> object:
    """Return the first value; ValueError with Go's text if there is none."""
    text = without_half_pairs(content.decode("utf-8", "replace"))
    start = _skip_space(text, 0)
    try:
        return json.JSONDecoder(parse_constant=_refuse).raw_decode(text, start)[0]
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError:
        pass
    # Python's error texts differ from Go's: find the error again by the scanner.
    try:
        _Scanner(text).value(start)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    raise ValueError("invalid JSON")


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None, "the pattern matches an empty text"
    return found.end()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


class _Scanner:
    """Scan a text up to its first error; each method returns the index after what it scanned."""

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, at: int) -> int:
        char = self._char(at)
        if char == "{":
            return self._object(at + 1)
        if char == "[":
            return self._array(at + 1)
        if char == '"':
            return self._string(at + 1)
        if char in _LITERALS:
            return self._literal(at, _LITERALS[char])
        if char in "-0123456789":
            return self._number(at)
        raise self._wrong(at, "looking for beginning of value")

    def _object(self, at: int) -> int:
        at = self._skip(at)
        if self._char(at) == "}":
            return at + 1
        while True:
            if self._char(at) != '"':
                raise self._wrong(at, "looking for beginning of object key string")
            at = self._skip(self._string(at + 1))
            if self._char(at) != ":":
                raise self._wrong(at, "after object key")
            at = self._skip(self.value(self._skip(at + 1)))
            if self._char(at) == "}":
                return at + 1
            if self._char(at) != ",":
                raise self._wrong(at, "after object key:value pair")
            at = self._skip(at + 1)

    def _array(self, at: int) -> int:
        at = self._skip(at)
        if self._char(at) == "]":
            return at + 1
        while True:
            at = self._skip(self.value(at))
            if self._char(at) == "]":
                return at + 1
            if self._char(at) != ",":
                raise self._wrong(at, "after array element")
            at = self._skip(at + 1)

    def _string(self, at: int) -> int:
        while (char := self._char(at)) != '"':
            if char < " ":
                raise self._wrong(at, "in string literal")
            at += 1
            if char == "\\":
                at = self._escape(at)
        return at + 1

    def _escape(self, at: int) -> int:
        char = self._char(at)
        if char != "u":
            if char not in 'bfnrt\\/"':
                raise self._wrong(at, "in string escape code")
            return at + 1
        for index in range(at + 1, at + 5):
            if self._char(index) not in "0123456789abcdefABCDEF":
                raise self._wrong(index, "in \\u hexadecimal character escape")
        return at + 5

    def _literal(self, at: int, wanted: str) -> int:
        for index in range(1, len(wanted)):
            if self._char(at + index) != wanted[index]:
                raise self._wrong(at + index, f"in literal {wanted} (expecting '{wanted[index]}')")
        return at + len(wanted)

    def _number(self, at: int) -> int:
        for prefix, where in _NUMBER_PREFIXES:
            found = prefix.match(self._text, at)
            if found and not _DIGIT.match(self._char(found.end())):
                raise self._wrong(found.end(), where)
        found = _NUMBER.match(self._text, at)
        assert found is not None, "a number begins here"
        return found.end()

    def _skip(self, at: int) -> int:
        return _skip_space(self._text, at)

    def _char(self, at: int) -> str:
        if at >= len(self._text):
            raise ValueError("unexpected EOF" if self._text.strip() else "EOF")
        return self._text[at]

    def _wrong(self, at: int, where: str) -> ValueError:
        char = self._text[at]
        # Go reports the first byte, not the character.
        char = char if char.isascii() else chr(char.encode()[0])
        shown = {"'": "'\\''", '"': "'\"'"}.get(char, repr(char))
        return ValueError(f"invalid character {shown} {where}")
