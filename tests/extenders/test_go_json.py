"""The first JSON value of a reply, and Go's error where there is none."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.extenders.go_json import decode_first

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


@given(VALUES, st.sampled_from(["", " ", "\n {", " x"]))
def test_the_first_value_is_read_and_the_rest_ignored(value, rest):
    # Digits would continue a number, so a separator follows it.
    assert decode_first(f" {json.dumps(value)}\n{rest}".encode()) == value


@given(VALUES, st.data())
def test_a_truncated_value_has_an_unexpected_end(value, data):
    text = json.dumps([value])
    cut = text[: data.draw(st.integers(1, len(text) - 1))]

    with pytest.raises(ValueError, match=r"^unexpected EOF$"):
        decode_first(cut.encode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "EOF"),
        ("  ", "EOF"),
        ("not json", "invalid character 'o' in literal null (expecting 'u')"),
        ("<html>", "invalid character '<' looking for beginning of value"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("\u0663", "invalid character 'Ù' looking for beginning of value"),
        ("{a}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("[1.x]", "invalid character 'x' after decimal point in numeric literal"),
        ("[1e+]", "invalid character ']' in exponent of numeric literal"),
        ("[01]", "invalid character '1' after array element"),
        ("nul", "unexpected EOF"),
        ("'x'", "invalid character '\\'' looking for beginning of value"),
    ],
)
def test_invalid_json_has_the_error_of_go(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        decode_first(text.encode())


def test_half_a_surrogate_pair_is_replaced_as_in_go():
    assert decode_first(rb'{"Error": "\ud800"}') == {"Error": "\ufffd"}
