"""The libraries, by expressions that hold, and by errors at run time."""

from __future__ import annotations

import pytest

from roadstead.cel.doubles import double_text
from roadstead.cel.network import NetworkError, parse_address, parse_network
from roadstead.cel.regexes import RegexError, compile_regex, find_all
from roadstead.cel.semver import SemverError, parse_loose_semver, parse_semver
from roadstead.cel.times import parse_duration, parse_timestamp, timestamp_text
from roadstead.cel.urls import UrlError, parse_url
from roadstead.cel.values import DurationValue, Uint, encoded_key, equal
from tests.cel.evaluating import evaluate, holds


def test_equality_knows_numbers_of_all_types_and_nothing_else_across_types() -> None:
    assert equal(1, Uint(1))
    assert equal(1, 1.0)
    assert not equal(True, 1)
    assert not equal("1", 1)
    assert not equal(float("nan"), float("nan"))
    assert equal([1, {"a": None}], [1.0, {"a": None}])
    assert encoded_key(True) != encoded_key(1)


def test_doubles_are_printed_like_go() -> None:
    assert [double_text(number) for number in (1.0, 1.5, 1e6, 1e-5, 123456.0, 1e21)] == [
        *("1", "1.5", "1e+06", "1e-05", "123456", "1e+21")
    ]


def test_false_and_true_absorb_errors() -> None:
    holds(
        "!(1 / 0 == 1 && false)",
        "1 / 0 == 1 || true",
        "[1, 0].exists(x, 1 / x == 1)",
        "!([0, 2].all(x, 4 / x > 9))",
    )
    assert evaluate("1 / 0 == 1 && true") == "division by zero"
    assert evaluate("[0, 1].all(x, 1 / x == 1)") == "division by zero"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("a.2.3", 'Invalid character(s) found in major number "a"'),
        ("1.02.3", 'Minor number must not contain leading zeroes "02"'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.99999999999999999999", 'strconv.ParseUint: parsing "99999999999999999999": value'),
    ],
)
def test_versions_that_are_none_are_refused(text: str, error: str) -> None:
    with pytest.raises(SemverError) as caught:
        parse_semver(text)
    assert str(caught.value).startswith(error)


def test_versions_are_ordered_by_precedence() -> None:
    texts = [
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-11",
        "1.0.0-a",
        "1.0.0-a.1",
        "1.0.0-b",
        "1.0.0",
        "1.0.1",
        "1.2.0",
        "2.0.0",
    ]
    versions = [parse_semver(text) for text in texts]

    for at, version in enumerate(versions):
        assert [version.cmp(other) for other in versions] == [
            (at > place) - (at < place) for place in range(len(versions))
        ]
    assert parse_semver("1.0.0+a") == parse_semver("1.0.0+b")
    assert str(parse_loose_semver("v01.2")) == "1.2.0"


def test_addresses_and_networks() -> None:
    assert parse_network("10.1.2.3/8").masked() == parse_network("10.0.0.0/8")
    assert parse_network("10.0.0.0/8").has(parse_address("10.9.9.9"))
    assert not parse_network("10.0.0.0/8").has(parse_address("::1"))
    assert parse_network("10.0.0.0/8").has_network(parse_network("10.2.0.0/16"))
    for text in ("", "1.2.3", "01.2.3.4", "::ffff:1.2.3.4", "fe80::1%eth0", "1:2", "1.2.3.4.5"):
        with pytest.raises(NetworkError):
            parse_address(text)
    for text in ("10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "x/8", "::ffff:1.2.3.4/99"):
        with pytest.raises(NetworkError):
            parse_network(text)


def test_urls() -> None:
    url = parse_url("https://user@a.example:80/b c?k=1&k=2")

    assert (url.scheme, url.host, url.hostname, url.port) == (
        *("https", "a.example:80", "a.example", "80"),
    )
    assert url.escaped_path == "/b%20c"
    assert url.query == (("k", ("1", "2")),)
    for text in ("", "relative", "https://a:b/", "http://%zz/", ":x", "http://a\n/"):
        with pytest.raises(UrlError):
            parse_url(text)


def test_patterns_are_those_of_re2() -> None:
    assert find_all("a1b22", "[0-9]+") == ["1", "22"]
    assert find_all("abab", "b*") == ["", "b", "b"]
    assert find_all("aaa", "a", 2) == ["a", "a"]
    with pytest.raises(RegexError, match="missing closing ]"):
        compile_regex("[")


@pytest.mark.parametrize("method", ["hasValue", "isLoopback", "getHost", "masked", "major"])
def test_null_has_no_methods_although_the_checker_accepts_it(method: str) -> None:
    error = f"no such overload: {method}(null_type)"
    assert evaluate(f"type(null.{method}()) == int") == error


def test_durations_and_times() -> None:
    assert parse_duration("1h1.5s") == DurationValue(3_601_500_000_000)
    assert parse_duration("-0") == DurationValue(0)
    assert [parse_duration(text) for text in ("", "1", "1d", "s", "9999999h")] == [None] * 5
    assert [parse_timestamp(text) for text in ("", "2024-01-01", "2024-13-01T00:00:00Z")] == [
        None
    ] * 3
    moment = parse_timestamp("2024-02-29T12:34:56.5+02:00")
    assert moment is not None
    assert timestamp_text(moment) == "2024-02-29T12:34:56.5+02:00"
    # Go accepts offsets of up to 24 hours and 60 minutes; Python's `timezone` does not.
    far = parse_timestamp("2024-02-29T12:00:00+24:60")
    assert far is not None
    assert timestamp_text(far) == "2024-02-29T12:00:00+25:00"
    holds(
        'timestamp("2024-01-01T00:00:00Z") + duration("24h") == timestamp("2024-01-02T00:00:00Z")',
        'timestamp("2024-02-29T12:00:00Z").getHours("America/New_York") == 7',
        'timestamp("2024-02-29T12:00:00Z").getHours("-08:00") == 4',
        'timestamp("2024-02-29T12:00:00Z").getHours("25:00") == 13',
    )
    assert evaluate('timestamp(0).getHours("No/Where") == 1') == "unknown time zone No/Where"


def test_quantities_and_versions_of_devices() -> None:
    holds(
        'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("39Gi"))',
        'device.capacity["gpu.example.com"].cores.asApproximateFloat() == 0.5',
        'quantity("1").add(quantity("500m")).compareTo(quantity("1500m")) == 0',
        'quantity("1").sub(2).asInteger() == -1',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.9.0"))',
        'device.attributes["gpu.example.com"].?firmware.optMap(v, v.major()).orValue(7) == 7',
    )
    assert evaluate('quantity("1").compareTo(quantity("x")) == 0') == (
        "quantities must match the regular expression "
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


def test_computed_quantities_are_unknown_on_the_right_as_upstream() -> None:
    holds('quantity("1").add(1) == quantity("2")')
    assert evaluate('quantity("2") == quantity("1").add(1)') == "no such overload"


def test_a_value_that_upstream_cannot_convert_is_an_error_where_it_is_read() -> None:
    # A conditional unwraps an optional and wraps it again, which fails for a quantity.
    choice = '(true ? optional.of(quantity("1")) : optional.none())'
    error = "unsupported conversion to ref.Val: (*resource.Quantity)1"
    holds(
        f"[?{choice}].size() == 1",
        f"optional.unwrap([{choice}]).size() == 1",
        f"[?{choice}].exists(x, true)",
        f'[?{choice}] == [quantity("1")]',
        f'has({{?"a": {choice}}}.a)',
    )
    for expression in (
        f"[?{choice}][0].isInteger()",
        f"type([?{choice}][0]) == int",
        f"[?{choice}].exists(x, x.isInteger())",
        f"optional.unwrap([{choice}])[0].isInteger()",
        f"[?{choice}].reverse()[0].isInteger()",
        f"cel.bind(x, [?{choice}][0], x.isInteger())",
        f'{{?"a": {choice}}}.a.isInteger()',
        f"{{?1: {choice}}}[1].isInteger()",
        f'{choice} == optional.of(quantity("1"))',
    ):
        assert evaluate(expression) == error, expression
    result = evaluate(f'false ? device.attributes["x.y"].z : {choice}')
    assert result == f"CEL result of type optional_type could not be converted to bool: {error}"


def test_a_bool_key_that_exists_is_named() -> None:
    assert evaluate("[1, 2].transformMapEntry(i, v, {true: v}).size() == 1") == (
        "insert failed: key true already exists"
    )


def test_formats_validate_texts() -> None:
    holds(
        'format.dns1123Label().validate("abc") == optional.none()',
        'format.dns1123Label().validate("A_b").hasValue()',
        'format.named("uuid").hasValue() && !format.named("nothing").hasValue()',
        'format.labelValue().validate("").hasValue() == false',
        'format.qualifiedName().validate("a.example/b") == optional.none()',
        'format.date().validate("2024-02-30").hasValue()',
        'format.uri().validate("x").hasValue() && !format.byte().validate("YQ==").hasValue()',
        'format.datetime().validate("2024-01-01T00:00:00Z") == optional.none()',
    )


def test_an_empty_bound_list_grows_as_upstream() -> None:
    holds("cel.bind(x, [], x + [1] == [1])", "cel.bind(x, [1], x + [2] == [1, 2] && x == [1])")


def test_a_double_is_compared_with_an_integer_as_a_double() -> None:
    # 2**53 + 1 has no double of its own; cel-go 0.26 rounds it (common/types/compare.go).
    holds(
        "dyn(9007199254740993) == dyn(9007199254740992.0)",
        "dyn(9007199254740992.0) == dyn(9007199254740993u)",
        "9007199254740993 <= 9007199254740992.0",
        "!(9007199254740993 > 9007199254740992.0)",
        "dyn(9007199254740992.0) in [9007199254740993]",
        "[9007199254740992.0].exists(x, dyn(9007199254740993) in [x])",
        # A list of literals is a hash set, in which doubles stand for integers that they equal.
        "!(dyn(9007199254740993) in [9007199254740992.0])",
        "dyn(9007199254740992) in [9007199254740992.0]",
        "9007199254740993 > dyn(9007199254740992)",
        "dyn(9007199254740993) != dyn(9007199254740992u)",
    )


@pytest.mark.parametrize(
    ("zone", "part"),
    [("1_0:00", "1_0"), (" 1:00", " 1"), ("1:a", "a"), ("a:00", "a"), (":30", ""), ("١:00", "١")],
)
def test_an_offset_from_utc_consists_of_two_integers_of_go(zone: str, part: str) -> None:
    error = f'strconv.Atoi: parsing "{part}": invalid syntax'
    assert evaluate(f'timestamp(0).getHours("{zone}") == 1') == error
