"""YAML and JSON are read as kubectl reads them, and hostile text is an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from roadstead.protocol.documents import read_documents
from roadstead.protocol.errors import InputError
from roadstead.protocol.yaml_events import ALIAS_NODES_MAX, DEPTH_MAX


def read(text: str | bytes) -> list[Any]:
    return list(read_documents(text, source="in.yaml"))


def refusal(text: str | bytes, **options: int) -> str:
    with pytest.raises(InputError) as caught:
        list(read_documents(text, source="in.yaml", **options))
    assert str(caught.value).startswith("in.yaml: ")
    assert len(str(caught.value)) < 400
    return str(caught.value)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(JSON_VALUES) | st.dictionaries(st.text(), JSON_VALUES))
def test_json_is_read_like_python_reads_it(value: object) -> None:
    assert read(json.dumps(value)) == [value]


@given(st.dictionaries(st.text(alphabet="abcxyz. -:#'\"\n"), JSON_VALUES, min_size=1))
def test_yaml_written_by_a_library_is_read_back(value: object) -> None:
    text = yaml.safe_dump(value, default_flow_style=False, default_style='"')
    assert read(text) == read(json.dumps(value)) or "!!" in text


def test_documents_of_a_stream_are_read_one_by_one_without_empty_ones() -> None:
    assert read("---\na: 1\n---\n---\n# nothing\n---\n- b\n...\n") == [{"a": 1}, ["b"]]
    assert read('{"a": 1}\n{"b": 2} null [3]') == [{"a": 1}, {"b": 2}, [3]]
    assert read("") == []
    assert read("just text") == ["just text"]


def test_flow_style_that_is_not_json_is_read_as_yaml() -> None:
    assert read("{a: 1, b: [x, z]}") == [{"a": 1, "b": ["x", "z"]}]
    assert read("[a, 'b'] # comment") == [["a", "b"]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("On", True), ("y", True), ("TRUE", True), ("off", False), ("N", False),
        ("null", None), ("~", None), ("", None), ("'yes'", "yes"), ('"null"', "null"),
        ("12", 12), ("-7", -7), ("+5", 5), ("1_000", 1000), ("0x1F", 31), ("010", 8),
        ("-0XA", -10), ("0O7", 7), ("0B1", 1), ("0o17", 15),
        ("0b101", 5), ("08", 8.0), ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0),
        ("1e", "1e"), ("--1", "--1"), ("12x", "12x"), ("-", ["a"]), ("500m", "500m"),
        ("18446744073709551615", 2**64 - 1), ("18446744073709551616", 2.0**64),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"), ("2024-01-01", "2024-01-01"),
        ("!!str 5", "5"), ("! 5", "5"), ("!!int '5'", 5), ("!!float 5", 5.0), ("!!bool on", True),
        ("!!null ''", None), ("!!timestamp 2024-01-01", "2024-01-01"), ("!!binary aGk=", "hi"),
        ("!!seq [1]", [1]), ("!!map {a: 1}", {"a": 1}), ("|\n  two\n  lines", "two\nlines"),
    ],
)  # fmt: skip
def test_scalars_have_the_types_that_kubectl_reads(text: str, value: object) -> None:
    document = "k:\n  - a" if text == "-" else f"k: {text}"
    assert read(document) == [{"k": value}]


def test_aliases_and_merges_are_expanded() -> None:
    text = "base: &b {x: 1, w: 2}\nlist: &l [1]\nuse: {<<: *b, w: 3}\nmany: {<<: [*b, {z: 4}]}\n"
    text += "again: [*l, *l]\nname: &n v\nother: *n\n'<<': kept\n"
    assert read(text) == [
        {
            "base": {"x": 1, "w": 2}, "list": [1], "use": {"x": 1, "w": 3},
            "many": {"x": 1, "w": 2, "z": 4}, "again": [[1], [1]], "name": "v", "other": "v",
            "<<": "kept",
        }
    ]  # fmt: skip


def test_an_alias_may_stand_for_a_key() -> None:
    assert read("a: &k name\n*k : 1\n") == [{"a": "name", "name": 1}]


def test_an_anchor_may_be_on_a_key() -> None:
    assert read("&name app: 1\nvalue: *name") == [{"app": 1, "value": "app"}]


def test_utf_8_and_utf_16_are_read_with_or_without_a_byte_order_mark() -> None:
    assert read("a: ü".encode()) == [{"a": "ü"}]
    assert read("a: ü".encode("utf-8-sig")) == [{"a": "ü"}]
    assert read("a: ü".encode("utf-16")) == [{"a": "ü"}]
    assert read("\ufeffa: ü") == [{"a": "ü"}]


def alias_bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (alias_bomb(12), f"aliases stand for more than {ALIAS_NODES_MAX}"),
        ("a: &a [*a]", "stands for something that contains it"),
        ("a: &a {b: *a}", "stands for something that contains it"),
        ("a: *nowhere", "is not defined"),
        ("a: &x 1\n---\nb: *x", "is not defined"),
        ("k: " + "[" * 100_000, f"nested deeper than {DEPTH_MAX}"),
        ("{a: " * 100_000, f"nested deeper than {DEPTH_MAX}"),
        ("- " * 100_000 + "x", f"nested deeper than {DEPTH_MAX}"),
        ('{"a":' * 100_000, "nested too deep"),
        ("[" * 100_000 + "]" * 100_000, "nested too deep"),
        ("a: 1\na: 2", 'key "a" is twice'),
        ('{"a": 1, "b": 2, "a": 3}', 'key "a" is twice'),
        ("a: &k name\n*k : 1\nname: 2", 'key "name" is twice'),
        ("1: a", 'key "1" is not a string'),
        ("yes: a", 'key "yes" is not a string'),
        ("null: a", 'key "null" is not a string'),
        ("? [1]\n: a", "a key must be a string, not a list or a map"),
        ("a: &l [1]\n*l : 2", "is not a string"),
        ("a: .nan", "is not a finite number"),
        ("a: -.INF", "is not a finite number"),
        ("a: 1e999", "is too large"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1e999}', "is too large"),
        ('{"a": ' + "9" * 10_000 + "}", "Exceeds the limit"),
        ("a: " + "9" * 10_000, "is too long"),
        ("a: !!python/object/apply:os.system [ls]", "tag"),
        ("a: !custom 1", 'tag "!custom" is not known'),
        ("a: !!set {x}", "is not known"),
        ("a: !!int x", "is not of the type !!int"),
        ("a: !!binary '*'", "is not text in base64"),
        ("a: !!binary /w==", "is not text in base64"),
        ("a: {<<: 1}", "only maps can be merged"),
        ("a: [1", "line 2, column 1"),
        ("a: 'x", "line 1"),
        ("\ta: 1", "line 1"),
        ("a: b: c", "line 1, column 5"),
        ("a: \x00", "is not YAML"),
        ("a: \ud800", "is not YAML"),
        ('{"a": 1', "is neither JSON nor YAML"),
        ('{"a" 1, }', "is neither JSON nor YAML"),
        (b"\xff\xff\xff", "is not UTF-8 text"),
        (b"a: \xc3", "is not UTF-8 text (byte 3)"),
        (b"\xff\xfea", "is not UTF-16 text"),
    ],
)  # fmt: skip
def test_hostile_text_is_refused(text: str | bytes, message: str) -> None:
    assert message in refusal(text)


def test_text_above_the_size_limit_is_refused_unread() -> None:
    assert "21 bytes are more than 20" in refusal("x" * 21, max_bytes=20)


def test_an_error_names_line_and_column() -> None:
    assert refusal("a: 1\nb:\n  c: .nan\n") == (
        'in.yaml: line 3, column 6: ".nan" is not a finite number'
    )


def test_many_aliases_below_the_limit_are_accepted() -> None:
    assert len(read(alias_bomb(5))[0]["a4"]) == 10
