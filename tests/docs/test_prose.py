"""Difficult idioms stay rare in docstrings, comments and pages; the glossary is short."""

import ast
import re
from functools import cache

import pytest

from tests.docs.modules import PRODUCT, ROOT, comments_in, modules_in

PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md")
MOST_TERMS = 40
CODE = (*PRODUCT, "scripts")

# Most uses per 1,000 words: (words, in docstrings and comments, in pages).
BUDGETS = {
    "tell": (r"tells?|told|telling", 0.02, 0.02),
    "stand": (r"stands?|stood|standing", 0.1, 0.03),
    "go on": (r"go(?:es|ne)? on", 0.01, 0.04),
    "come": (r"comes?|came|coming", 0.14, 0.06),
    "say": (r"says?|said", 0.09, 0.05),
    "look at": (r"looks? at|looked at", 0.02, 0.02),
    "hear": (r"hears?|heard", 0.01, 0.02),
    "settle": (r"settles?|settled", 0.01, 0.03),
    "beside": (r"beside", 0.02, 0.08),
    "whatever": (r"whatever|whoever", 0.07, 0.07),
    "nobody": (r"nobody|somebody", 0.01, 0.02),
    "kind": (r"kinds?", 0.7, 0.2),
}


def _docstrings(tree):
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else []:
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                yield str(each.value.value)


@cache
def _of_code():
    comments = comments_in(*CODE)
    texts = []
    for path, module in modules_in(*CODE).items():
        texts += _docstrings(module.tree)
        texts += [text for _, text in comments[path]]
    return "\n".join(texts)


@cache
def _of_pages():
    pages = (path.read_text() for each in PAGES for path in sorted(ROOT.glob(each)))
    # Manifests and output are no prose.
    return re.sub(r"^```.*?^```", "", "\n".join(pages), flags=re.DOTALL | re.MULTILINE)


def per_thousand(pattern, text):
    words = len(re.findall(r"[A-Za-z']+", text))
    return 1000 * len(re.findall(rf"\b(?:{pattern})\b", text, re.IGNORECASE)) / words


@pytest.mark.parametrize("idiom", BUDGETS)
def test_no_idiom_exceeds_its_budget(idiom):
    pattern, in_code, in_pages = BUDGETS[idiom]

    assert per_thousand(pattern, _of_code()) <= in_code, f'"{idiom}" in docstrings and comments'
    assert per_thousand(pattern, _of_pages()) <= in_pages, f'"{idiom}" in README and docs'


def test_the_glossary_is_short_and_in_order():
    rows = re.findall(r"^\| (?!term|-)(.*?) \|", (ROOT / "docs/GLOSSARY.md").read_text(), re.M)

    assert 20 < len(rows) <= MOST_TERMS
    assert rows == sorted(rows)


def test_changes_are_short_lines():
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()

    assert [line for line in lines if len(line) > 220] == []
