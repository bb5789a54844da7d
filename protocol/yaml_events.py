"""YAML read from parser events: no recursion, and every bound is checked while building.

Scalars resolve as in sigs.k8s.io/yaml (goyaml v2): YAML 1.1 booleans and numbers, no timestamps.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import yaml

from roadstead.protocol.errors import InputError, cut_short

DEPTH_MAX = 100
"""Depth of lists and maps beyond which a text is refused."""

ALIAS_NODES_MAX = 1_000_000
"""Maximum number of nodes that all aliases of a text together may expand to."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
# A plain key whose value is a map, or a list of maps, with defaults for the map that has the key.
_MERGE = "<<"
# Plain scalars that are booleans or null.
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMBER_START = frozenset("+-.0123456789")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# Notations of integers with their bases.
_INTEGERS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"[-+]?(0|[1-9][0-9]*)"), 10),
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]+"), 16),
    (re.compile(r"[-+]?0[oO]?[0-7]+"), 8),
    (re.compile(r"[-+]?0[bB][01]+"), 2),
)
# Longer numbers are refused: the time of their conversion is quadratic.
_NUMBER_MAX_CHARS = 400
# As goyaml: int64 and uint64. Larger integers become floats.
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


class _Mark(Protocol):
    """A position in the text, as both parsers report it, libyaml's and Python's."""

    line: int
    column: int


@dataclass(slots=True)
class _OpenCollection:
    """A list or map under construction.

    nodes_before: number of nodes of the text that were read before it. key: in a map, the key whose
    value is read next. merged: in a map, the maps that its key `<<` names.
    """

    value: list[object] | dict[str, object]
    anchor: str | None
    nodes_before: int
    key: str | None = None
    merged: list[dict[str, object]] = field(default_factory=list)


class YamlSyntaxError(InputError):
    """The text is not YAML at all."""


class YamlReader:
    """Reader of one text; not reusable."""

    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source
        self._stack: list[_OpenCollection] = []
        # By name of an anchor: its value, and the number of nodes of the value.
        self._anchors: dict[str, tuple[object, int]] = {}
        self._root: object = None
        self._nodes = self._alias_nodes = 0
        self._event: yaml.Event | None = None

    def documents(self) -> Iterator[object]:
        """Yield the documents, without empty ones.

        Raises:
            InputError: with line and column.
        """
        try:
            for event in yaml.parse(self._text, Loader=_Loader):
                self._event = event
                handle = _HANDLERS.get(type(event))
                if handle is not None:
                    handle(self, event)
                elif type(event) is yaml.DocumentEndEvent and self._root is not None:
                    yield self._root
        except yaml.MarkedYAMLError as error:
            where = _location(error.problem_mark or error.context_mark)
            problem = f"is not YAML: {error.problem or error.context}"
            raise YamlSyntaxError(problem, source=self._source, field=where) from None
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            text = str(error).partition("\n")[0]
            raise YamlSyntaxError(f"is not YAML: {text}", source=self._source) from None

    def _start_document(self, event: yaml.DocumentStartEvent) -> None:
        self._root = None
        self._anchors.clear()

    def _start_list(self, event: yaml.SequenceStartEvent) -> None:
        self._check_tag(event.tag, ("seq",))
        self._open([], event.anchor)

    def _start_map(self, event: yaml.MappingStartEvent) -> None:
        self._check_tag(event.tag, ("map",))
        self._open({}, event.anchor)

    def _open(self, value: list[object] | dict[str, object], anchor: str | None) -> None:
        if len(self._stack) >= DEPTH_MAX:
            raise self._refusal(f"is nested deeper than {DEPTH_MAX}")
        if self._stack and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None:
            raise self._refusal("a key must be a string, not a list or a map")
        if anchor:
            # An alias inside this value must not find an earlier value with the same anchor.
            self._anchors.pop(anchor, None)
        self._stack.append(_OpenCollection(value, anchor, self._nodes))

    def _end_list(self, event: yaml.SequenceEndEvent) -> None:
        self._close(self._stack.pop())

    def _end_map(self, event: yaml.MappingEndEvent) -> None:
        collection = self._stack.pop()
        assert isinstance(collection.value, dict)
        for each in collection.merged:
            for key, value in each.items():
                collection.value.setdefault(key, value)
        self._close(collection)

    def _close(self, collection: _OpenCollection) -> None:
        self._nodes += 1
        if collection.anchor:
            node_count = self._nodes - collection.nodes_before
            self._anchors[collection.anchor] = (collection.value, node_count)
        self._put(collection.value)

    def _read_scalar(self, event: yaml.ScalarEvent) -> None:
        self._nodes += 1
        value = self._resolve(event)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        top = self._stack[-1] if self._stack else None
        if top and type(top.value) is dict and top.key is None:
            # implicit[0]: whether the scalar has neither quotes nor a tag.
            self._start_entry(top, event.value, value, is_plain=event.implicit[0])
        else:
            self._put(value)

    def _start_entry(self, top: _OpenCollection, text: str, key: object, *, is_plain: bool) -> None:
        if type(key) is not str:
            raise self._refusal(f"key {cut_short(text)} is not a string: put it in quotes")
        assert isinstance(top.value, dict)
        is_merge = is_plain and key == _MERGE
        if key in top.value and not is_merge:
            raise self._refusal(f"key {cut_short(key)} is twice in one map")
        top.key = key
        if not is_merge:
            top.value[key] = None

    def _read_alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchors:
            is_open = any(each.anchor == event.anchor for each in self._stack)
            problem = "stands for something that contains it" if is_open else "is not defined"
            raise self._refusal(f"alias {cut_short(event.anchor)} {problem}")
        value, nodes = self._anchors[event.anchor]
        self._alias_nodes += nodes
        self._nodes += nodes
        if self._alias_nodes > ALIAS_NODES_MAX:
            raise self._refusal(f"aliases stand for more than {ALIAS_NODES_MAX} values")
        top = self._stack[-1]
        if isinstance(top.value, dict) and top.key is None:
            self._start_entry(top, str(event.anchor), value, is_plain=False)
        else:
            self._put(value)

    def _put(self, value: object) -> None:
        if not self._stack:
            self._root = value
            return
        top = self._stack[-1]
        if isinstance(top.value, list):
            top.value.append(value)
            return
        assert top.key is not None
        # A quoted "<<" is an ordinary key, which `_start_entry` has added already.
        if top.key == _MERGE and _MERGE not in top.value:
            self._merge(top, value)
        else:
            top.value[top.key] = value
        top.key = None

    def _merge(self, top: _OpenCollection, value: object) -> None:
        maps = value if isinstance(value, list) else [value]
        for each in maps:
            if not isinstance(each, dict):
                raise self._refusal("only maps can be merged with <<")
            top.merged.append(each)

    def _resolve(self, event: yaml.ScalarEvent) -> object:
        text: str = event.value
        tag: str | None = event.tag
        if tag is None:
            return self._resolve_plain(text) if event.implicit[0] else text
        if tag == "!" or tag == f"{_TAG}str" or tag == f"{_TAG}timestamp":
            return text
        if tag == f"{_TAG}binary":
            return self._decode_binary(text)
        self._check_tag(tag, ("int", "float", "bool", "null"))
        return self._resolve_tagged(tag.removeprefix(_TAG), text)

    def _resolve_plain(self, text: str) -> object:
        if text in _WORDS:
            return _WORDS[text]
        if text[0] not in _NUMBER_START:
            return text
        if _NOT_FINITE.fullmatch(text):
            raise self._refusal(f"{cut_short(text)} is not a finite number")
        return self._resolve_number(text)

    def _resolve_number(self, text: str) -> object:
        digits = text.replace("_", "")
        if len(digits) > _NUMBER_MAX_CHARS and _FLOAT.fullmatch(digits):
            raise self._refusal(f"number {cut_short(text)} is too long")
        for pattern, radix in _INTEGERS:
            if pattern.fullmatch(digits):
                value = int(digits.lower().replace("0o", "0"), radix)
                if _INT_MIN <= value <= _INT_MAX:
                    return value
        if not _FLOAT.fullmatch(digits):
            return text
        number = float(digits)
        if number in (float("inf"), float("-inf")):
            raise self._refusal(f"number {cut_short(text)} is too large")
        return number

    def _resolve_tagged(self, kind: str, text: str) -> object:
        value = self._resolve_plain(text)
        if kind == "float" and type(value) is int:
            return float(value)
        if type(value) is not {"int": int, "float": float, "bool": bool, "null": type(None)}[kind]:
            raise self._refusal(f"{cut_short(text)} is not of the type !!{kind}")
        return value

    def _decode_binary(self, text: str) -> str:
        try:
            return base64.b64decode(text, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise self._refusal(f"{cut_short(text)} is not text in base64") from None

    def _check_tag(self, tag: str | None, allowed: tuple[str, ...]) -> None:
        if tag is not None and tag != "!" and tag.removeprefix(_TAG) not in allowed:
            raise self._refusal(f"tag {cut_short(tag)} is not known")

    def _refusal(self, problem: str) -> InputError:
        mark = self._event.start_mark if self._event else None
        return InputError(problem, source=self._source, field=_location(mark))


def _location(mark: _Mark | None) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""


_HANDLERS: dict[type, Callable[[YamlReader, Any], None]] = {
    yaml.ScalarEvent: YamlReader._read_scalar,
    yaml.MappingStartEvent: YamlReader._start_map,
    yaml.MappingEndEvent: YamlReader._end_map,
    yaml.SequenceStartEvent: YamlReader._start_list,
    yaml.SequenceEndEvent: YamlReader._end_list,
    yaml.AliasEvent: YamlReader._read_alias,
    yaml.DocumentStartEvent: YamlReader._start_document,
}
