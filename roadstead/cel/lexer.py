"""Tokens of CEL, and the values of its literals.

Upstream: cel-go 0.26 parser/gen/CEL.g4, parser/unescape.go.
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from roadstead.cel.errors import ISSUES_MAX, Issue
from roadstead.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint, Value

RESERVED: Final = frozenset(
    [
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import"),
        *("in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void"),
        "while",
    ]
)
"""Words that cannot be names of variables or functions."""

END: Final = "<EOF>"
"""Kind of the token after all others."""
IDENTIFIER: Final = "IDENTIFIER"

_ESCAPE = (
    r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7])"
)
_ESCAPE_PATTERN = re.compile(_ESCAPE)
_QUOTED = (
    rf'"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*+"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*+'"
)
_RAW = r"""[rR](?:\"\"\"(?:.|\n)*?\"\"\"|'''(?:.|\n)*?'''|"[^"\n\r]*+"|'[^'\n\r]*+')"""
_STRING = rf"(?:{_RAW}|{_QUOTED})"
# The order decides between tokens of equal length; longer ones come first.
_TOKEN = re.compile(
    rf"""
    (?P<SPACE>[\t\ \r\n\f]++|//[^\n]*+)
  | (?P<BYTES>[bB]{_STRING})
  | (?P<STRING>{_STRING})
  | (?P<NUM_FLOAT>[0-9]++\.[0-9]++(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++
      |\.[0-9]++(?:[eE][+-]?[0-9]++)?)
  | (?P<NUM_UINT>(?:0x[0-9a-fA-F]++|[0-9]++)[uU])
  | (?P<NUM_INT>0x[0-9a-fA-F]++|[0-9]++)
  | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*+)
  | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]++`)
  | (?P<SIGN>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
_KEYWORDS = frozenset({"in", "true", "false", "null"})
_ESCAPED = re.compile(r"\\(?:([xX])(..)|u(....)|U(........)|([0-3][0-7][0-7])|(.))", re.DOTALL)
# By letter after a backslash: the character. Other characters mean themselves.
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_UNICODE_MAX, _SURROGATES = 0x10FFFF, range(0xD800, 0xE000)


class Token(NamedTuple):
    """kind: the rule of the grammar; for signs and keywords, the text itself.

    An ESC_IDENTIFIER is a name in backquotes, which selectors may not use.
    """

    kind: str
    text: str
    offset: int


def tokens_of(source: str) -> tuple[list[Token], list[Issue]]:
    """Return all tokens but spaces and comments, then `END`; and issues for invalid characters."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    offset = 0
    while offset < len(source):
        match = _TOKEN.match(source, offset)
        if match is None:
            end = _failure(source, offset)
            if len(issues) < ISSUES_MAX:
                issues.append(Issue(offset, _not_recognized(source[offset : end + 1])))
            offset = end + 1
            continue
        kind, text = match.lastgroup or "", match.group()
        if kind == "SIGN" or (kind == IDENTIFIER and text in _KEYWORDS):
            kind = text
        if kind != "SPACE":
            tokens.append(Token(kind, text, offset))
        offset = match.end()
    tokens.append(Token(END, END, len(source)))
    return tokens, issues


def _failure(source: str, offset: int) -> int:
    """Return the last offset of the invalid token at `offset`, as upstream's lexer reads it."""
    if source[offset] in "&|=":
        return offset + 1
    if source[offset] not in "\"'":
        return offset
    at = offset + 1
    while at < len(source) and source[at] not in "\n\r":
        if source[at] != "\\":
            at += 1
            continue
        escape = _ESCAPE_PATTERN.match(source, at)
        if escape is None:
            return at + 1
        at = escape.end()
    return at


def _not_recognized(text: str) -> str:
    shown = text.replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")
    return f"Syntax error: token recognition error at: '{shown}'"


def unquoted(text: str, is_bytes: bool) -> str:
    """Return the value of a quoted string; each byte of a bytes literal is a character.

    Raises:
        ValueError: an escape is no character; the text is upstream's.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    body = text[1:] if is_raw else text
    width = 3 if len(body) >= 6 and body[:3] in ('"""', "'''") else 1
    body = body[width:-width]
    if is_bytes:
        body = body.encode("utf-8", "surrogatepass").decode("latin-1")
    if is_raw or "\\" not in body:
        return body
    return _ESCAPED.sub(lambda match: _unescaped(match, is_bytes), body)


def _unescaped(match: re.Match[str], is_bytes: bool) -> str:
    _, two, four, eight, octal, simple = match.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    if is_bytes and (four or eight):
        raise ValueError("unable to unescape string")
    number = int(octal, 8) if octal else int(two or four or eight, 16)
    if number > _UNICODE_MAX or number in _SURROGATES:
        raise ValueError("invalid unicode code point")
    return chr(number)


def number_of(token: Token, sign: str) -> Value:
    """Return the value of a number, which is negative if there is a sign.

    Raises:
        ValueError: it is too large; the text is upstream's.
    """
    if token.kind == "NUM_FLOAT":
        number = float(sign + token.text)
        if math.isinf(number):
            raise ValueError("invalid double literal")
        return number
    text = token.text.rstrip("uU") if token.kind == "NUM_UINT" else token.text
    is_hex = text.startswith("0x")
    # No uint64 has more than 20 digits. Longer numbers are refused before int(), whose time is
    # quadratic.
    if len(text.lstrip("0x" if is_hex else "0")) > 20:
        whole = UINT_MAX + 1
    else:
        whole = int(text[2:], 16) if is_hex else int(text)
    if token.kind == "NUM_UINT":
        if whole > UINT_MAX:
            raise ValueError("invalid uint literal")
        return Uint(whole)
    whole = -whole if sign else whole
    if not INT_MIN <= whole <= INT_MAX:
        raise ValueError("invalid int literal")
    return whole
