"""A docstring begins with an imperative or a noun phrase."""

import ast
import re

import pytest

from tests.docs.modules import PRODUCT, ROOT, modules_in

VERBS = frozenset(
    [
        "Adds",
        "Allocates",
        "Appends",
        "Applies",
        "Breaks",
        "Builds",
        "Chooses",
        "Collects",
        "Compares",
        "Compiles",
        "Computes",
        "Converts",
        "Decides",
        "Ends",
        "Evaluates",
        "Executes",
        "Fills",
        "Finds",
        "Keeps",
        "Kills",
        "Lays",
        "Loads",
        "Loses",
        "Makes",
        "Maps",
        "Measures",
        "Merges",
        "Moves",
        "Normalizes",
        "Parses",
        "Picks",
        "Plants",
        "Prints",
        "Publishes",
        "Puts",
        "Reads",
        "Receives",
        "Refuses",
        "Renames",
        "Restores",
        "Scans",
        "Schedules",
        "Sends",
        "Shows",
        "Shuts",
        "Starts",
        "Stores",
        "Translates",
        "Tries",
        "Watches",
        "Writes",
    ]
)
"""Verbs in the third person, which are no nouns."""

VERBS_OR_NOUNS = frozenset(
    [
        "Answers",
        "Caches",
        "Calls",
        "Changes",
        "Checks",
        "Commits",
        "Copies",
        "Counts",
        "Cuts",
        "Estimates",
        "Filters",
        "Lists",
        "Runs",
        "Empties",
    ]
)
"""Verbs in the third person, unless one of `AFTER_A_NOUN` follows: "Counts of events"."""

AFTER_A_NOUN = frozenset(
    ["and", "at", "by", "for", "from", "in", "of", "on", "over", "since", "that", "to", "with"]
)

FREE_RELATIVES = frozenset(["How", "It", "Not", "This", "What", "When", "Where", "Which", "Why"])


def is_plain(text):
    """Whether a text begins with an imperative or a noun phrase, as far as words show it."""
    words = re.findall(r"[\w'-]+", text)[:2]
    first, second = (*words, "", "")[:2]
    if first in VERBS_OR_NOUNS:
        return second in AFTER_A_NOUN or text.startswith(f"{first}:")
    return first not in VERBS and first not in FREE_RELATIVES


def first_lines():
    """Yield (module:line, first line) of each docstring of a module, class or function."""
    for path, module in modules_in(*PRODUCT, "scripts").items():
        for node in ast.walk(module.tree):
            if not isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                continue
            if text := ast.get_docstring(node):
                yield f"{path.relative_to(ROOT)}:{node.body[0].lineno}", text.split("\n")[0]


def test_docstrings_begin_with_an_imperative_or_a_noun_phrase():
    lines = list(first_lines())

    assert len(lines) > 3000
    assert [(place, line) for place, line in lines if not is_plain(line)] == []


@pytest.mark.parametrize(
    "text", ["Applies records in order.", "Counts rounds.", "What a call costs.", "How it ended."]
)
def test_third_persons_and_free_relatives_are_found(text):
    assert not is_plain(text)


@pytest.mark.parametrize(
    "text",
    ["Apply records in order.", "Counts of events.", "What-if questions.", "Cost of a call."],
)
def test_imperatives_and_noun_phrases_are_not(text):
    assert is_plain(text)
