"""Lexer, parser and macros: what an expression means, and where it is wrong."""

from __future__ import annotations

import pytest

from roadstead.cel.lexer import END, tokens_of, unquoted
from roadstead.cel.parser import parse
from roadstead.cel.tree import Call, Comprehension, Literal, Select, copied, qualified_name, walk
from tests.cel.evaluating import compile_error, evaluate, holds


def test_spaces_and_comments_are_no_tokens() -> None:
    tokens, issues = tokens_of("a // b\n\t== 1")

    assert [token.text for token in tokens] == ["a", "==", "1", END]
    assert [token.offset for token in tokens] == [0, 8, 11, 12]
    assert issues == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a\\tb"', "a\tb"),
        ("r'a\\tb'", "a\\tb"),
        ('"""a\r\nb"""', "a\nb"),
        ('"\\x41\\u0042\\U00000043\\104"', "ABCD"),
        ('""', ""),
    ],
)
def test_strings_are_unquoted(text: str, value: str) -> None:
    assert unquoted(text, is_bytes=False) == value


def test_bytes_are_bytes_and_strings_are_characters() -> None:
    holds('b"é".size() == 2', '"é".size() == 1', r'b"\377" == b"\xff"', r'"\377" == "ÿ"')
    assert "invalid unicode code point" in compile_error(r'"\ud800" == ""')
    assert "unable to unescape string" in compile_error(r'b"\u0041" == b""')


def test_operators_bind_as_in_the_grammar() -> None:
    holds(
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "10 - 3 - 2 == 5",
        "-1 - -1 == 0",
        "--1 == 1",
        "!!true",
        "1 < 2 == true",
        "false && false || true",
        "true || false && false",
        "false ? false : true ? true : false",
        "1 in [1] == true",
        "[1, 2, ] == [1, 2]",
        "-5 / 2 == -2",
    )


def test_conjunctions_are_balanced() -> None:
    root = parse(" && ".join("abcdefgh"))

    depths = {id(root): 1}
    for node in walk(root):
        for child in node.children():
            depths[id(child)] = depths[id(node)] + 1
    assert max(depths.values()) == 4


def test_a_select_of_names_is_a_qualified_name() -> None:
    assert qualified_name(parse("a.b.c")) == "a.b.c"
    assert qualified_name(parse("a().b")) is None


def test_macros_become_comprehensions() -> None:
    fold = parse("[1].all(x, x > 0)")
    test = parse("has(a.b)")
    call = parse("a.bind(x, 1, x)")

    assert isinstance(fold, Comprehension)
    assert fold.variable == "x"
    assert isinstance(test, Select)
    assert test.is_test
    assert isinstance(call, Call), "only cel.bind is a macro"


def test_a_copy_shares_no_node_with_its_original() -> None:
    source = "[1].map(x, has(x.a) ? {1: 'b'}[1] : optional.of(M{f: 2}).orValue(x.?c))"
    root = parse(source)
    nodes = list(walk(root))
    copies = list(walk(copied(root)))

    assert [type(node) for node in copies] == [type(node) for node in nodes]
    assert not {id(node) for node in nodes} & {id(node) for node in copies}


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("", "1:0: Syntax error: mismatched input '<EOF>' expecting"),
        ("true true", "1:6: Syntax error: extraneous input 'true' expecting <EOF>"),
        ("(1", "1:3: Syntax error: missing ')' at '<EOF>'"),
        ("device.", "1:8: Syntax error: no viable alternative at input '.'"),
        ("a $ b", "1:3: Syntax error: token recognition error at: '$'"),
        ('"open', "1:1: Syntax error: token recognition error at: '\"open'"),
        ("for == 1", "1:1: reserved identifier: for"),
        ("99999999999999999999 == 1", "1:1: invalid int literal"),
        ("1e999 == 1.0", "1:1: invalid double literal"),
        ("has(1)", "1:5: invalid argument to has() macro"),
        ("[1].all(1, true)", "1:9: argument must be a simple name"),
        ("[1].map(1, true)", "1:9: argument is not an identifier"),
        ("[1].all(x, x, true)", "1:12: duplicate variable name: x"),
        ("[1].all(__result__, true)", "1:9: iteration variable overwrites accumulator variable"),
        ("cel.bind(1, 2, true)", "1:10: cel.bind() variable names must be simple identifiers"),
        ("'a'.sortBy(x, x) == []", "1:1: sortBy can only be applied to"),
    ],
)
def test_errors_name_the_place(expression: str, text: str) -> None:
    assert f"ERROR: <input>:{text}" in compile_error(expression)


def test_errors_show_the_line_with_a_mark() -> None:
    assert compile_error("1 ==\n  foo").endswith("\n |   foo\n | ..^")
    # Wide characters get wide marks.
    lines = compile_error("true &&\n  é.b").splitlines()
    assert lines[:3] == [
        "compilation failed: ERROR: <input>:2:3: Syntax error: token recognition error at: 'é'",
        " |   é.b",
        " | ..＾",
    ]


def test_literals_keep_their_types() -> None:
    nodes = walk(parse("[1, 1.0, 'a', b'a', true, null]"))
    names = [type(node.value).__name__ for node in nodes if isinstance(node, Literal)]

    assert names == ["int", "float", "str", "bytes", "bool", "NoneType"]
    assert evaluate("type(1u) == uint") is True
