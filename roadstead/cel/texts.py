"""Functions of strings.

Upstream: cel-go 0.26 ext/strings.go (version 2), common/types/string.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from roadstead.cel.errors import CelRunError, no_overload
from roadstead.cel.formatting import format_text
from roadstead.cel.limits import check_chars, check_items
from roadstead.cel.regexes import find, find_all
from roadstead.cel.values import Value, go_text
from roadstead.facts.quoting import ESCAPES

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
# The characters that Go's unicode.IsSpace accepts.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_ESCAPES = str.maketrans(ESCAPES)


def _out_of_range(index: int) -> CelRunError:
    return CelRunError(f"index out of range: {index}")


def starts_with(text: Value, part: Value) -> Value:
    """Return whether a text begins with another; raises CelRunError."""
    if isinstance(text, str) and isinstance(part, str):
        return text.startswith(part)
    raise no_overload()


def ends_with(text: Value, part: Value) -> Value:
    """Return whether a text ends with another; raises CelRunError."""
    if isinstance(text, str) and isinstance(part, str):
        return text.endswith(part)
    raise no_overload()


def contains_text(text: Value, part: Value) -> Value:
    """Return whether a text contains another; raises CelRunError."""
    if isinstance(text, str) and isinstance(part, str):
        return part in text
    raise no_overload()


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start) if start < len(text) else -1


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        if not part:
            return len(text)
        # Upstream compares bytes here, characters elsewhere.
        if len(text.encode("utf-8", "surrogatepass")) < len(part.encode("utf-8", "surrogatepass")):
            return -1
        start = len(text) - 1
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    if start >= len(text):
        return -1
    return text.rfind(part, 0, start + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    replaced = len(text) + 1 if not old else text.count(old)
    replaced = replaced if count < 0 else min(replaced, count)
    check_chars(len(text) + replaced * max(0, len(new) - len(old)))
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, count: int = -1) -> list[Value]:
    """Return at most `count` parts, all if it is negative; without a separator, characters."""
    if count == 0:
        return []
    if not separator:
        limit = len(text) if count < 0 else min(count, len(text))
        check_items(limit)
        if limit == 0:
            return []
        return [*text[: limit - 1], text[limit - 1 :] if limit < len(text) else text[-1]]
    parts = text.count(separator) + 1
    check_items(parts if count < 0 else min(parts, count))
    return list(text.split(separator, count - 1 if count > 0 else -1))


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise _out_of_range(start)
        return text[start:]
    if start > end:
        raise CelRunError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if not 0 <= end <= len(text):
        raise _out_of_range(end)
    return text[start:end]


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _join(parts: list[Value], separator: str = "") -> str:
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, str):
            raise CelRunError(f"join: invalid input: {go_text(part)}")
        texts.append(part)
    check_chars(sum(map(len, texts)) + len(separator) * max(0, len(texts) - 1))
    return separator.join(texts)


TEXT_FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_of,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring,
    "string_trim": lambda text: text.strip(_SPACE),
    "string_format": format_text,
    "strings_quote": _quote,
    "list_join": _join,
    "list_join_string": _join,
    "string_find_string": find,
    "string_find_all_string": find_all,
    "string_find_all_string_int": find_all,
}
"""Implementations by overload."""
