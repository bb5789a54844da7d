"""Durations, names and plain scalars as Go reads and writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.durations import Duration, parse_duration
from roadstead.config.reader import read_document
from roadstead.protocol.names import (
    is_extended_resource,
    label_value_errors,
    qualified_name_errors,
)

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


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
def test_an_invalid_duration_is_refused(text: str) -> None:
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
    assert qualified_name_errors(name) == ()


@pytest.mark.parametrize(
    ("name", "errors"),
    [
        ("", ["name part must be non-empty", NAME_RULE]),
        ("/x", ["prefix part must be non-empty"]),
        ("/", ["prefix part must be non-empty", "name part must be non-empty", NAME_RULE]),
        ("example.com/", ["name part must be non-empty", NAME_RULE]),
        ("foo_/", [f"prefix part {SUBDOMAIN_RULE}", "name part must be non-empty", NAME_RULE]),
        ("a" * 64, ["name part must be no more than 63 characters"]),
    ],
)
def test_the_error_in_a_qualified_name_is_named(name: str, errors: list[str]) -> None:
    assert [*qualified_name_errors(name)] == errors


def test_errors_of_prefix_and_name_are_reported_together() -> None:
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
    assert label_value_errors("") == ()
    assert label_value_errors("v1.2_x") == ()
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
def test_an_extended_resource_is_outside_kubernetes_and_valid_in_a_quota(
    name: str, extended: bool
) -> None:
    assert is_extended_resource(name) is extended


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: '12'", {"a": "12"}),
        ("a: y", {"a": True}),
        ("a: 010", {"a": 8}),
        ("a: 1.0", {"a": 1}),
        ("a: 1e3", {"a": 1000}),
        ("a: 1.5", {"a": 1.5}),
        ("a: 1e21", {"a": 1e21}),
        ("a: 10s", {"a": "10s"}),
        ("a: [1, [2, {b: 3.0}]]", {"a": [1, [2, {"b": 3}]]}),
        ("---\na: 1\n...\n", {"a": 1}),
        ("a: 1\n---\n", {"a": 1}),
        ("a: {<<: {b: 1, c: 2}, b: 3}", {"a": {"b": 3, "c": 2}}),
        ("# only a remark", None),
        ("", None),
        (b"a: \xc3\xa4", {"a": "ä"}),
        ('{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
        ('{"a\\ud800": "\\udfff \\ud83d\\ude00"}', {"a\ufffd": "\ufffd \U0001f600"}),
    ],
)
def test_a_document_is_read_as_the_values_that_go_would_hold(
    text: str | bytes, value: object
) -> None:
    document = read_document(text, source="x")

    assert document == value
    assert repr(document) == repr(value)


def test_json_number_with_a_fraction_stays_a_float() -> None:
    document = read_document('{"a": 1.0}', source="x")

    assert repr(document) == "{'a': 1.0}"
