"""Names in backticks on the pages exist in the sources: functions, classes, modules, settings."""

import re
from functools import cache

import pytest

from roadstead.actors.metrics import METRICS
from tests.docs.modules import PRODUCT
from tests.docs.pages import ROOT, camel_case, pages, prose_of, words_of_sources

SPAN = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"@?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(.*\))?")
FILE = re.compile(r".*\.(?:py|md|csv|json|jsonl|yaml|toml|html|parquet|go|sh|svg)")
WORDS = r"\w*[a-z]_\w+|_\w+|[A-Z]+_\w+|[a-z]+[A-Z]\w*|[A-Z]\w*[a-z]\w*[A-Z]\w*|[A-Z][a-z]{3,}\w*"
IDENTIFIER = re.compile(WORDS)
CLASS = re.compile(r"^class (\w+)(?:\[.*\])?(?:\(([^)]*)\))?:\n((?: .*\n|\n)*)", re.MULTILINE)
MEMBER = re.compile(r"^    (?:async )?(?:def )?(\w+)\b(?: ?[(:=])|self\.(\w+)", re.MULTILINE)

ELSEWHERE = {
    "GetWaitingPod",
    "IterateOverWaitingPods",
    "IfHealthyBudget",
    "limitedResources",
    "minResources",
    "podGroupBackoffSeconds",
    "RAY_JOB_STOP_WAIT_TIME_S",
    "batch_instance",
    "failedNodes",
    "failedAndUnresolvableNodes",
    "polars",
    "ray_roadstead_scheduler_bound_pods_total",
}
"""Names of Kubernetes, Ray, data sets and libraries that the sources do not use."""


def identifiers_in(text):
    """Yield the names in backticks, as lists of the words between the dots."""
    for span in SPAN.findall(prose_of(text)):
        found = NAME.fullmatch(span)
        if found is None or FILE.fullmatch(span):
            continue
        parts = found[1].split(".")
        if len(parts) > 1 or IDENTIFIER.fullmatch(parts[0]):
            yield parts


@cache
def known_words():
    names = words_of_sources() | {camel_case(word) for word in words_of_sources()} | ELSEWHERE
    metrics = {each.full_name for each in METRICS}
    return names | metrics


@cache
def classes():
    """Return class name → (the words of its definitions, the names of its bases)."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for folder in PRODUCT:
        for path in (ROOT / folder).rglob("*.py"):
            for name, bases, body in CLASS.findall(path.read_text()):
                members, all_bases = found.setdefault(name, (set(), set()))
                members.update(name for names in MEMBER.findall(body) for name in names)
                all_bases.update(re.findall(r"\w+", bases))
    return found


def has_member(name, member):
    members, bases = classes()[name]
    return member in members or any(has_member(base, member) for base in bases & set(classes()))


@pytest.mark.parametrize("page", pages())
def test_every_name_on_the_page_exists(page):
    named = list(identifiers_in((ROOT / page).read_text()))

    assert [".".join(parts) for parts in named if not known_words().issuperset(parts)] == []


@pytest.mark.parametrize("page", pages())
def test_classes_on_the_page_have_the_named_members(page):
    named = [parts for parts in identifiers_in((ROOT / page).read_text()) if len(parts) == 2]

    assert [
        f"{name}.{member}"
        for name, member in named
        if name in classes() and not has_member(name, member)
    ] == []


def test_the_names_from_elsewhere_are_not_in_the_sources():
    assert ELSEWHERE & words_of_sources() == set()
