"""Escapes of half a surrogate pair become U+FFFD, as in Go; all other text stays."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.protocol.documents import read_documents
from roadstead.protocol.json_escapes import without_half_pairs

ESCAPES = ("\\ud800", "\\uDBFF", "\\udc00", "\\uDFFF", "\\u00e9", "\\\\", '\\"', "\\n", "d800", "x")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (r'"\ud800"', "\ufffd"),
        (r'"\uDC00x"', "\ufffdx"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\ud800\ud83d\ude00"', "\ufffd\U0001f600"),
        (r'"\udc00\ud800"', "\ufffd\ufffd"),
        (r'"\\ud800"', "\\ud800"),
        (r'"\\\ud800"', "\\\ufffd"),
        (r'"\u00e9"', "\u00e9"),
    ],
)
def test_half_pairs_are_replaced(text, wanted):
    assert json.loads(without_half_pairs(text)) == wanted


@settings(max_examples=200)
@given(st.lists(st.sampled_from(ESCAPES), max_size=8).map("".join))
def test_the_text_keeps_its_length_and_decodes_to_valid_unicode(inner):
    replaced = without_half_pairs(f'"{inner}"')

    assert len(replaced) == len(inner) + 2
    decoded = json.loads(replaced)
    wanted = json.loads(f'"{inner}"').encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert decoded == wanted
    decoded.encode()


def test_documents_are_valid_unicode():
    (document,) = read_documents(r'{"names": ["\ud800"], "\udc00": 1}', source="x")

    assert document == {"names": ["\ufffd"], "\ufffd": 1}
