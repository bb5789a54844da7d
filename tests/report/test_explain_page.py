"""Explanations as a page: well formed, self-contained, complete, and safe for hostile names."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from roadstead.cycle.explain import Explained, Explanation
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.status import Status, unresolvable
from roadstead.report.explain_page import PageOrigin, explanation_page, pending_page
from roadstead.report.explain_sections import pending_report
from tests.report.test_explain_table import explained, scored

HOSTILE = '<script>alert("x")</script><img src=//evil onerror=1>&amp;\u202e\x1b[2J'
SHOWN = '<script>alert("x")</script><img src=//evil onerror=1>&amp;\\u202e\\x1b[2J'
FACTS = PageOrigin("roadstead explain 'a <b>'", "nodes.yaml: 2 nodes", "roadstead 1")
VOID = {"meta", "br"}


class Page(HTMLParser):
    """The contents of a page as a browser sees them. cells: texts of the rows of each table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.texts: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.texts.append(data)
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data + " "

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def checked(text: str) -> Page:
    """Return the page, after checking that it is well formed and uses no scripts and no network."""
    page = Page(text)
    assert (page.open, page.wrong) == ([], [])
    assert not page.tags & {"script", "img", "link", "iframe", "object"}
    assert page.names <= {"lang", "charset", "name", "content", "class"}
    assert not any(each in text for each in ("http:", "https:", "url(", "@import"))
    assert "prefers-color-scheme: dark" in text
    return page


def test_the_table_has_every_plugin_and_node_best_first() -> None:
    page = checked(explanation_page(explained(4000, 8000), FACTS))

    head, best, other = page.tables[0]
    assert [cell.split()[0] for cell in head][:2] == ["node", "total"]
    assert {cell.split()[0] for cell in head} >= {"TaintToleration", "NodeAffinity"}
    assert (best[0].strip(), other[0].strip()) == ("n-1", "n-0")
    column = next(at for at, cell in enumerate(head) if cell.startswith("TaintToleration"))
    assert (head[column].split()[1:], best[column].split()) == (
        ["weight", "3"],
        ["300", "0", "→", "100"],
    )
    scores = [cell.split()[0] for cell in best[2:]]
    assert int(best[1]) == sum(int(each) for each in scores if each != "–")


def test_the_header_has_the_facts_of_the_headline_and_the_command_for_the_page() -> None:
    page = checked(explanation_page(explained(4000, 8000), FACTS))

    facts = ["default/p", "2 of 2 nodes are feasible", "n-1 has the highest total", FACTS.source]
    assert {*facts, FACTS.command, FACTS.versions} <= set(page.texts)


@pytest.mark.parametrize("top", [None, 0, 2])
def test_only_top_limits_the_nodes(top: int | None) -> None:
    page = checked(explanation_page(scored(30, 3), FACTS, top))

    assert len(page.tables[0]) == 1 + (top or 30)
    assert ("… and 28 more nodes; --top 0 shows all" in page.texts) == bool(top)


def test_nodes_filtered_out_are_listed_by_plugin_and_reason() -> None:
    page = checked(explanation_page(explained(4000, *[500] * 5, taint="gpu"), FACTS))

    rows = [[cell.strip() for cell in row] for row in page.tables[-1][1:]]
    assert rows == [
        ["NodeResourcesFit", "Insufficient cpu", "5 n-1, n-2, n-3, n-4, n-5"],
        ["TaintToleration", "node(s) had untolerated taint {gpu: }", "1 n-0"],
    ]


def hostile(*cpu_milli: int) -> Explanation:
    explanation = explained(*cpu_milli)
    names = tuple(f"{name}{HOSTILE}" for name in explanation.names)
    lines = tuple(replace(line, plugin=line.plugin + HOSTILE) for line in explanation.scores)
    refused = replace(unresolvable(HOSTILE), plugin=HOSTILE)
    gate = Status(refused.code, (HOSTILE,), HOSTILE)
    statuses = tuple(None if each is None else refused for each in explanation.statuses)
    return replace(
        explanation,
        pod_key=HOSTILE,
        names=names,
        scores=lines,
        statuses=statuses,
        pre_enqueue=gate,
    )


def test_text_from_inputs_is_escaped_everywhere() -> None:
    facts = PageOrigin(HOSTILE, HOSTILE, HOSTILE)
    identity = PodIdentity("u", "default", HOSTILE)
    group = Explained(((identity, PodFacts()),), hostile(4000, 500))
    error = Explained(((PodIdentity("v", "default", "w"), PodFacts()),), None, HOSTILE)
    report = pending_report([group, error], input_pods=2, is_after_run=False)

    for text in (explanation_page(hostile(4000, 500), facts), pending_page(report, facts)):
        page = checked(text)

        assert page.text.count(SHOWN) >= 8
        assert HOSTILE not in text


def test_a_page_of_pending_pods_has_a_section_for_each_reason() -> None:
    pods = tuple((PodIdentity(f"u{at}", "default", f"p-{at}"), PodFacts()) for at in range(500))
    group = Explained(pods, explained(500, 500))
    report = pending_report([group], input_pods=500, is_after_run=True)

    page = checked(pending_page(report, FACTS))

    assert "500 of 500 pending pods are still pending after the run" in page.texts
    assert "Pods without a controller, 500 pods" in page.texts
    assert any("default/p-499" in each for each in page.texts)


def test_a_page_without_pending_pods_reports_it() -> None:
    page = checked(pending_page(pending_report([], input_pods=0, is_after_run=False), FACTS))

    assert "No pod is pending: every pod has a node." in page.texts
