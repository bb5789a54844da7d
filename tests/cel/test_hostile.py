"""Hostile expressions: each ends with a result or an error, within bounds of time and memory."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.cel.limits import EXPRESSION_MAX_BYTES
from tests.cel.evaluating import compile_error, evaluate

EXCEEDED = "operation cancelled: actual cost limit exceeded"
TOKENS = [
    *("device", "driver", "attributes", "capacity", "x", "y", "size", "all", "exists", "map"),
    *("filter", "has", "cel", "bind", "optMap", "sortBy", "dyn", "string", "int", "quantity"),
    *("format", "matches", "find", "lists", "range", "flatten", "sets", "contains", "orValue"),
    *('"a"', "'b'", 'r"c"', 'b"d"', '"""e"""', "1", "2u", "3.5", "0x1F", "true", "false", "null"),
    *("(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "!", "-", "+", "*", "/", "%", "==", "!="),
    *("<", "<=", ">", ">=", "&&", "||", "in", " ", "\n", "//", "#", "`", "\\", '"', "é", "\x00"),
]


@given(st.lists(st.sampled_from(TOKENS), max_size=40))
def test_any_tokens_end_with_a_result_or_an_error(tokens: list[str]) -> None:
    assert isinstance(evaluate("".join(tokens)), bool | str)


@given(st.text(max_size=200))
def test_any_text_ends_with_a_result_or_an_error(text: str) -> None:
    assert isinstance(evaluate(text), bool | str)


NESTINGS = {
    "parentheses": ("(", "true", ")"),
    "lists": ("[", "1", "]"),
    "maps": ("{1: ", "1", "}"),
    "calls": ("size(", '"a"', ")"),
    "choices": ("true ? true : ", "true", ""),
    "negations": ("!(", "true", ")"),
    "minuses": ("-(", "1", ")"),
    "indices": ("[1][", "0", "]"),
    "macros": ("[1].all(x, ", "true", ")"),
    "maps of lists": ("[1].map(x, ", "x", ")"),
    "bindings": ("cel.bind(x, 1, ", "true", ")"),
    "arguments": ('"a".contains(', '"a"', ")"),
    "dyn": ("dyn(", "1", ")"),
}


@pytest.mark.parametrize("count", [10, 100, 245, 260, 700])
@pytest.mark.parametrize("name", NESTINGS)
def test_nesting_has_an_end(name: str, count: int) -> None:
    opening, inner, closing = NESTINGS[name]
    expression = (opening * count + inner + closing * count)[:EXPRESSION_MAX_BYTES]
    before = sys.getrecursionlimit()

    result = evaluate(expression)

    assert isinstance(result, bool | str)
    if count >= 260 and len(expression) < EXPRESSION_MAX_BYTES:
        assert "recursion limit exceeded: 250" in str(result)
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize(
    ("first", "more"),
    [
        ("1 == 1", " && 1 == 1"),
        ("true", " || true"),
        ("1", " + 1"),
        ("device", ".driver"),
        ("[1]", "[0]"),
        ('"a"', '.replace("a", "b")'),
        ("optional.of(1)", ".optMap(x, x)"),
        ("[1]", ".map(x, x)"),
        ("[[1]]", ".flatten()"),
        ("true", " ? true : false"),
    ],
)
@pytest.mark.parametrize("count", [20, 249, 600])
def test_chains_have_an_end(first: str, more: str, count: int) -> None:
    expression = (first + more * count)[:EXPRESSION_MAX_BYTES]

    assert isinstance(evaluate(expression), bool | str)


def test_long_chains_are_refused_like_deep_nesting() -> None:
    for first, more in (("1", " + 1"), ("device", ".a"), ("[1]", "[0]")):
        assert "max recursion depth exceeded" not in compile_error(first + more * 250)
        assert "max recursion depth exceeded" in compile_error(first + more * 251)


def test_short_chains_of_operators_are_no_deep_nesting() -> None:
    assert evaluate(" && ".join(["true"] * 900)) is True
    assert evaluate(" + ".join(["1"] * 200) + " == 200") is True


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(9223372036854775807).size() > 0",
        "lists.range(2000000).size() > 0",
        "lists.range(1000).map(a, lists.range(1000).map(b, lists.range(1000))).size() > 0",
        "lists.range(5000).distinct().size() > 0",
        "lists.range(5000).sort().size() > 0",
        "lists.range(5000).sortBy(x, -x).size() > 0",
        "sets.contains(lists.range(5000), lists.range(5000))",
    ],
)
def test_large_lists_are_refused_by_their_cost(expression: str) -> None:
    assert evaluate(expression) == EXCEEDED


def doubled(start: str, double: str, count: int, end: str) -> str:
    """Return an expression that doubles a value so often."""
    expression = end
    for _ in range(count):
        expression = f"cel.bind(x, {double}, {expression})"
    return f"cel.bind(x, {start}, {expression})"


@pytest.mark.parametrize(
    ("start", "double"),
    [
        ('"aaaaaaaaaaaaaaaa"', "x + x"),
        ('b"aaaaaaaaaaaaaaaa"', "x + x"),
        ("[1, 2, 3, 4]", "x + x"),
        ('"aaaaaaaaaaaaaaaa"', 'x.replace("", "aaaaaaaaaaaaaaaa")'),
        ('"aaaaaaaaaaaaaaaa"', "[x, x, x, x, x, x, x, x].join()"),
        ('"aaaaaaaaaaaaaaaa"', '"%s%s%s%s".format([x, x, x, x])'),
    ],
)
def test_doubling_is_refused_by_its_cost(start: str, double: str) -> None:
    assert evaluate(doubled(start, double, 60, "x.size() > 0")) == EXCEEDED


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*)*x", "(x+x+)+y", "((a{1,20}){1,20})b"],
)
def test_patterns_match_in_linear_time(pattern: str) -> None:
    text = "a" * 4000 + "!"

    assert evaluate(f'"{text}".matches(r"{pattern}") || true') is True


@pytest.mark.parametrize(
    "pattern", ["a{1001}", "((a{100}){100}){100}", "(?=a)", r"(a)\1", "[", "("]
)
def test_patterns_that_re2_does_not_know_are_refused(pattern: str) -> None:
    assert "invalid matches argument" in compile_error(f'"a".matches(r"{pattern}")')


def test_half_of_a_surrogate_pair_is_searched_as_the_replacement_character() -> None:
    assert evaluate('"a\ud800b".matches("^a\ufffdb$")') is True
    assert evaluate('"a\ud800b".find("b") == "b"') is True
    assert evaluate('"a\ud800b".findAll("[ab]") == ["a", "b"]') is True


def test_copies_of_macros_are_bounded() -> None:
    chain = "optional.of(1)" + ".optMap(x, x + 1)" * 200

    assert "too many parts" in compile_error(f"{chain}.hasValue()")


@pytest.mark.parametrize(
    "literal",
    ["9" * 5000, "0x" + "f" * 5000, "1" * 4000 + "u", "1e" + "9" * 400, "." + "1" * 5000 + "e-5"],
)
def test_long_numbers_are_refused_or_read(literal: str) -> None:
    assert isinstance(evaluate(f"{literal} > 0"), bool | str)


@pytest.mark.parametrize(
    "text", ["1" * 5000, "1e999999999", "1." + "0" * 4000, "9" * 900 + "Ei", "-" * 3000]
)
@pytest.mark.parametrize(
    "function",
    ["int", "uint", "double", "quantity", "semver", "duration", "timestamp", "ip", "url"],
)
def test_long_texts_are_converted_or_refused(function: str, text: str) -> None:
    assert isinstance(
        evaluate(f'{function}(dyn("{text}")) == {function}(dyn("{text}"))'), bool | str
    )
