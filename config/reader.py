"""YAML or JSON text → plain values, bounded, as Go's YAML library understands plain scalars.

Nothing here builds an object from a tag; an alias costs what it stands for; depth, size and the
number of values are limited before anything is built. Upstream: sigs.k8s.io/yaml (goyaml.v2).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NoReturn, TypeAlias

import yaml

from roadstead.config.errors import ConfigError, Problem, malformed
from roadstead.protocol.errors import VALUE_MAX_CHARS

MAX_TEXT_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 64
MAX_VALUES: Final = 100_000

_CONSTANTS: Final[dict[str, object]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
}
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER: Final = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_EXACT_FLOAT_MAX: Final = 1e21
_NUMBER_MAX_CHARS: Final = 100
_STR_TAG: Final = "tag:yaml.org,2002:str"
_TAG_NAMES: Final = ("str", "int", "float", "bool", "null", "map", "seq")
_PLAIN_TAGS: Final = frozenset({None, "!", *(f"tag:yaml.org,2002:{n}" for n in _TAG_NAMES)})
_OUTSIDE_DOCUMENTS: Final = (
    yaml.StreamStartEvent,
    yaml.StreamEndEvent,
    yaml.DocumentStartEvent,
    yaml.DocumentEndEvent,
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
_TEXT_PER_VALUE: Final = 100
_TOO_DEEP: Final = f"is nested deeper than {MAX_DEPTH} levels"
_SET_TWICE: Final = "this key is set twice"
_FOREIGN_TAG: Final = "this tag is not read"
_NOT_A_NUMBER: Final = "must be a finite number"

Place: TypeAlias = tuple[str | int, ...]


def read_document(text: str | bytes, *, source: str) -> object:
    """Read the one document of a text; None if it is empty. Raises ConfigError(stage="decode")."""
    decoded = _as_text(text, source)
    reader = _Reader(source)
    if decoded.lstrip().startswith("{"):
        return reader.read_json(decoded)
    return reader.read_yaml(decoded)


def _as_text(text: str | bytes, source: str) -> str:
    if len(text) > MAX_TEXT_BYTES:
        rule = f"the text is longer than the {MAX_TEXT_BYTES} bytes that are read"
        raise ConfigError("decode", [Problem("", rule)], source=source)
    try:
        return text.decode("utf-8") if isinstance(text, bytes) else text.encode("utf-8").decode()
    except UnicodeError as error:
        problem = Problem("", f"is not UTF-8 text ({error.__class__.__name__})")
        raise ConfigError("decode", [problem], source=source) from None


class _Reader:
    """One reading: counts what it builds and says where it refuses."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.count = 0
        self.anchors: dict[str, tuple[object, int]] = {}

    def refuse(self, rule: str, *, at: Place = (), value: object = None) -> NoReturn:
        field = join_path("", (part if isinstance(part, int) else _cut(part) for part in at))
        problem = Problem(field, rule) if value is None else malformed(field, value, rule)
        raise ConfigError("decode", [problem], source=self.source) from None

    def read_json(self, text: str) -> object:
        try:
            value = json.loads(text, object_pairs_hook=self._pairs, parse_constant=self._constant)
        except RecursionError:
            self.refuse(_TOO_DEEP)
        except ValueError as error:
            self.refuse(f"is not JSON, which a text that begins with {{ must be: {error}")
        return self._checked(value, ())

    def read_yaml(self, text: str) -> object:
        events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        try:
            return self._documents(events)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f"line {mark.line + 1}: " if mark else ""
            reason = getattr(error, "problem", None) or getattr(error, "reason", "")
            self.refuse(f"is not YAML: {line}{reason}")

    def _documents(self, events: Iterator[Any]) -> object:
        documents = [
            self._value(event, events, ())
            for event in events
            if not isinstance(event, _OUTSIDE_DOCUMENTS)
        ]
        if any(document is not None for document in documents[1:]):
            self.refuse("holds more than one document; a configuration is one")
        return documents[0] if documents else None

    def _value(self, event: Any, events: Iterator[Any], at: Place) -> object:  # noqa: ANN401
        self._tally(1)
        if len(at) >= MAX_DEPTH:
            self.refuse(_TOO_DEEP)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), at)
        before = self.count
        value = self._build(event, events, at)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, self.count - before + 1)
        return value

    def _build(self, event: Any, events: Iterator[Any], at: Place) -> object:  # noqa: ANN401
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, at)
        if event.tag not in _PLAIN_TAGS:
            self.refuse(_FOREIGN_TAG, at=at, value=event.tag)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[object] = []
            while not isinstance(event := next(events), yaml.SequenceEndEvent):
                items.append(self._value(event, events, (*at, len(items))))
            return items
        mapping: dict[str, object] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key = self._key(event, at)
            if key in mapping:
                self.refuse(_SET_TWICE, at=(*at, key))
            mapping[key] = self._value(next(events), events, (*at, key))
        return mapping

    def _alias(self, anchor: str, at: Place) -> object:
        if anchor not in self.anchors:
            self.refuse("this alias stands for nothing that is complete", at=at, value=anchor)
        value, cost = self.anchors[anchor]
        self._tally(cost)
        return value

    def _key(self, event: Any, at: Place) -> str:  # noqa: ANN401
        if not isinstance(event, yaml.ScalarEvent):
            self.refuse("a key must be a text", at=at)
        if event.value == "<<" and event.implicit[0]:
            self.refuse('merge keys ("<<") are not read; write the fields out', at=at)
        key = self._scalar(event, at)
        if isinstance(key, bool):
            return "true" if key else "false"
        if key is None:
            self.refuse("a key must not be empty", at=at)
        return str(key)

    def _scalar(self, event: Any, at: Place) -> object:  # noqa: ANN401
        if event.tag not in _PLAIN_TAGS:
            self.refuse(_FOREIGN_TAG, at=at, value=event.tag)
        self._tally(len(event.value) // _TEXT_PER_VALUE)
        is_plain = event.implicit[0] or (not event.style and event.tag not in (None, "!", _STR_TAG))
        value: object = resolve_plain(event.value) if is_plain else event.value
        if isinstance(value, float) and not math.isfinite(value):
            self.refuse(_NOT_A_NUMBER, at=at, value=event.value)
        return value

    def _pairs(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        self._tally(len(pairs))
        mapping: dict[str, object] = {}
        for key, value in pairs:
            if key in mapping:
                self.refuse(_SET_TWICE, at=(key,))
            mapping[key] = value
        return mapping

    def _constant(self, name: str) -> NoReturn:
        self.refuse(_NOT_A_NUMBER, value=name)

    def _checked(self, value: object, at: Place) -> object:
        if len(at) >= MAX_DEPTH:
            self.refuse(_TOO_DEEP)
        if isinstance(value, float) and not math.isfinite(value):
            self.refuse(_NOT_A_NUMBER, at=at, value=value)
        if isinstance(value, str):
            return _SURROGATE.sub(_REPLACEMENT, value)
        if isinstance(value, list):
            self._tally(len(value))
            return [self._checked(item, (*at, i)) for i, item in enumerate(value)]
        if isinstance(value, dict):
            return {
                _SURROGATE.sub(_REPLACEMENT, key): self._checked(item, (*at, key))
                for key, item in value.items()
            }
        return value

    def _tally(self, count: int) -> None:
        self.count += count
        if self.count > MAX_VALUES:
            self.refuse(f"stands for more than {MAX_VALUES} values (aliases count in full)")


def join_path(path: str, loc: Iterable[str | int]) -> str:
    """`profiles[0].plugins`: how upstream writes the place of a field."""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _cut(key: str) -> str:
    return key if len(key) <= VALUE_MAX_CHARS else key[: VALUE_MAX_CHARS - 1] + "…"


def resolve_plain(text: str) -> object:
    """What a plain YAML scalar means to Go: null, bool, int, float or the text itself.

    A number whose digits name an integer below 1e21 is one, however it is written ("1.0", "1e3"):
    Go passes it on as JSON, where it stands without a fraction. Integers of more than 64 bits are
    floats, and a float beyond its range is a text.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _NOT_FINITE.fullmatch(text):
        return math.nan
    digits = text.replace("_", "")
    if len(digits) <= _NUMBER_MAX_CHARS and _INTEGER.fullmatch(digits):
        value = _integer(digits)
        if -(2**63) <= value < 2**64:
            return value
    if not _FLOAT.fullmatch(digits):
        return text
    number = float(digits)
    if math.isinf(number):
        return text
    return int(number) if number.is_integer() and abs(number) < _EXACT_FLOAT_MAX else number


def _integer(digits: str) -> int:
    bare = digits.lstrip("+-").lower()
    base = {"0x": 16, "0b": 2, "0o": 8}.get(bare[:2], 8 if bare[0] == "0" and bare != "0" else 10)
    value = int(bare[2:] if bare[:2] in ("0x", "0b", "0o") else bare, base)
    return -value if digits.startswith("-") else value
