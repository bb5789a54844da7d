"""YAML and JSON text to plain data, as kubectl reads it (sigs.k8s.io/yaml), within bounds.

Plain data are dicts with string keys, lists, str, int, float, bool and None. Refused with a clear
error: aliases that expand to absurd size or into themselves, absurd depth, repeated keys, keys that
are not strings, NaN and infinities, tags of any other type. Times stay strings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.json_escapes import without_half_pairs
from roadstead.protocol.yaml_events import YamlReader, YamlSyntaxError

SIZE_MAX_BYTES = 2**30
"""Size of a text beyond which it is refused unread."""

_JSON_START = ("{", "[")


def read_documents(
    text: str | bytes, *, source: str, max_bytes: int = SIZE_MAX_BYTES
) -> Iterator[object]:
    """Yield the documents of a text, without empty ones: consecutive JSON values, or YAML.

    Raises:
        InputError: the text is too long, is neither JSON nor YAML, or contains refused data.
    """
    if len(text) > max_bytes:
        raise InputError(f"{len(text)} bytes are more than {max_bytes}", source=source)
    decoded = _decoded(text, source) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    if not decoded.startswith(_JSON_START, _skip_space(decoded, 0)):
        yield from YamlReader(decoded, source).documents()
        return
    try:
        documents = list(_json_documents(decoded, source))
    except json.JSONDecodeError as error:
        documents = _flow_style_yaml(decoded, source, error)
    yield from documents


def _decoded(data: bytes, source: str) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        problem = f"is not {encoding.removesuffix('-sig').upper()} text (byte {error.start})"
        raise InputError(problem, source=source) from None


def _flow_style_yaml(text: str, source: str, json_error: json.JSONDecodeError) -> list[object]:
    """Read YAML that starts with a brace; a text that is neither is reported as broken JSON."""
    try:
        return list(YamlReader(text, source).documents())
    except YamlSyntaxError:
        where = f"line {json_error.lineno}, column {json_error.colno}"
        problem = f"is neither JSON nor YAML: {json_error.msg}"
        raise InputError(problem, source=source, field=where) from None


def _json_documents(text: str, source: str) -> Iterator[object]:
    text = without_half_pairs(text)
    decoder = json.JSONDecoder(
        object_pairs_hook=_unique_keys, parse_float=_finite_float, parse_constant=_refuse_constant
    )
    end = _skip_space(text, 0)
    while end < len(text):
        try:
            document, end = decoder.raw_decode(text, end)
        except json.JSONDecodeError:
            # A ValueError too, but the caller may still read the text as YAML.
            raise
        except RecursionError:
            raise InputError("JSON is nested too deep", source=source) from None
        except ValueError as error:
            # For a long integer, Python adds advice for programmers after the semicolon.
            raise InputError(str(error).partition(";")[0], source=source) from None
        if document is not None:
            yield document
        end = _skip_space(text, end)


def _skip_space(text: str, start: int) -> int:
    while start < len(text) and text[start] in " \t\r\n":
        start += 1
    return start


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) == len(pairs):
        return unique
    earlier_keys: set[str] = set()
    for key, _ in pairs:
        if key in earlier_keys:
            raise ValueError(f"key {cut_short(key)} is twice in one map")
        earlier_keys.add(key)
    raise AssertionError("a map is shorter than its pairs only where a key is there twice")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"number {cut_short(text)} is too large")
    return value


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")
