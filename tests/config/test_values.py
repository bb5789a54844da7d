"""Durations, names and plain scalars as Go reads and writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.durations import Duration, parse_duration
from roadstead.config.names import (
    is_extended_resource,
    label_value_errors,
    qualified_name_errors,
)
from roadstead.config.reader import read_document, resolve_plain


@pytest.mark.parametrize(
    ("text", "ns", "printed"),
    [
        ("0", 0, "0s"),
        ("15s", 15_000_000_000, "15s"),
        ("90s", 90_000_000_000, "1m30s"),
        ("1h", 3_600_000_000_000, "1h0m0s"),
        ("1h2m3.5s", 3_723_500_000_000, "1h2m3.5s"),
        ("-1.5s", -1_500_000_000, "-1.5s"),
        ("+2ms", 2_000_000, "2ms"),
        (".5us", 500, "500ns"),
        ("1.5µs", 1_500, "1.5µs"),
        ("2.ms", 2_000_000, "2ms"),
        ("1ns", 1, "1ns"),
    ],
)
def test_duration_is_read_and_printed_as_go_does(text: str, ns: int, printed: str) -> None:
    duration = parse_duration(text)

    assert duration.ns == ns
    assert str(duration) == printed
    assert duration.seconds == ns / 1e9


@pytest.mark.parametrize("text", ["", "-", "15", "s", ".s", "1 s", "1d", "1s2", "9" * 101 + "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


def test_duration_beyond_int64_nanoseconds_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        parse_duration("2562048h")


@given(st.integers(min_value=-(2**62), max_value=2**62))
def test_printed_duration_reads_back_as_itself(ns: int) -> None:
    assert parse_duration(str(Duration(ns))) == Duration(ns)


@pytest.mark.parametrize(
    "name", ["a", "MyName", "my.name", "123-abc", "example.com/gpu", "a" * 63, "a.b/c_d"]
)
def test_qualified_name_has_no_errors(name: str) -> None:
    assert qualified_name_errors(name) == []


@pytest.mark.parametrize(
    ("name", "errors"),
    [
        ("", ["name part must be non-empty"]),
        ("/x", ["prefix part must be non-empty"]),
        ("/", ["prefix part must be non-empty", "name part must be non-empty"]),
        ("example.com/", ["name part must be non-empty"]),
        ("a" * 64, ["name part must be no more than 63 characters"]),
    ],
)
def test_what_breaks_a_qualified_name_is_named(name: str, errors: list[str]) -> None:
    assert qualified_name_errors(name) == errors


def test_errors_of_prefix_and_name_come_together() -> None:
    errors = qualified_name_errors("A" * 254 + "/-" + "x" * 63)

    starts = [error[:30] for error in errors]
    assert starts == [
        "prefix part must be no more th",
        "prefix part a lowercase RFC 11",
        "name part must be no more than",
        "name part must consist of alph",
    ]
    assert qualified_name_errors("a/b/c")[0].startswith("a qualified name must consist")


def test_length_counts_bytes_not_characters() -> None:
    assert label_value_errors("ä" * 32)[0] == "must be no more than 63 characters"


def test_label_value_may_be_empty_but_not_begin_with_a_dash() -> None:
    assert label_value_errors("") == []
    assert label_value_errors("v1.2_x") == []
    assert len(label_value_errors("-3")) == 1


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("nvidia.com/gpu", True),
        ("cpu", False),
        ("kubernetes.io/x", False),
        ("requests.example.com/x", False),
        ("a" * 250 + ".b/x", False),
    ],
)
def test_extended_resource_lies_outside_kubernetes_and_fits_a_quota(
    name: str, extended: bool
) -> None:
    assert is_extended_resource(name) is extended


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("Null", None),
        ("yes", True),
        ("off", False),
        ("y", True),
        ("tRue", "tRue"),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("1_000", 1000),
        ("010", 8),
        ("0o10", 8),
        ("0x1F", 31),
        ("-0b11", -3),
        ("0", 0),
        ("09", 9),
        ("1.0", 1),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 18446744073709551616),
        ("1e21", 1e21),
        ("1e400", "1e400"),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("-", "-"),
        ("1.2.3", "1.2.3"),
        ("10s", "10s"),
    ],
)
def test_plain_scalar_means_what_it_means_to_go(text: str, value: object) -> None:
    resolved = resolve_plain(text)

    assert resolved == value
    assert type(resolved) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: '12'", {"a": "12"}),
        ('a: "yes"', {"a": "yes"}),
        ("a: !!str 12", {"a": "12"}),
        ("a: ! 12", {"a": 12}),
        ("a: !!int 12", {"a": 12}),
        ("a: !!map {b: 1}", {"a": {"b": 1}}),
        ("1: a\ntrue: b\nno: c\n1.5: d", {"1": "a", "true": "b", "false": "c", "1.5": "d"}),
        ("a: [1, [2, {b: 3}]]", {"a": [1, [2, {"b": 3}]]}),
        ("---\na: 1\n...\n", {"a": 1}),
        ("a: 1\n---\n", {"a": 1}),
        ("# only a remark", None),
        (b"a: \xc3\xa4", {"a": "ä"}),
        ('{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
    ],
)
def test_document_is_read_as_plain_values(text: str | bytes, value: object) -> None:
    assert read_document(text, source="x") == value


def test_json_number_with_a_fraction_stays_a_float() -> None:
    document = read_document('{"a": 1.0}', source="x")

    assert isinstance(document, dict)
    assert isinstance(document["a"], float)


def test_text_is_the_same_read_by_libyaml_and_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x [1, {b: 'c'}]\nd: *x\n"
    fast = read_document(text, source="x")
    monkeypatch.delattr("yaml.CSafeLoader", raising=False)

    assert read_document(text, source="x") == fast == {"a": [1, {"b": "c"}], "d": [1, {"b": "c"}]}
