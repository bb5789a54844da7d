"""Proves the report of a comparison: what is drawn and named, that nothing is cut or fetched."""

import io
import re
from xml.etree import ElementTree

import pytest
from rich.console import Console

from roadstead.lab.paired import difference
from roadstead.report.paired_page import paired_page
from roadstead.report.paired_plot import DOTS_MAX, LEFT, MIDDLE, RIGHT, ROWS_MAX, difference_svg
from roadstead.report.paired_table import ROWS_MAX as TERMINAL_ROWS_MAX
from roadstead.report.paired_table import print_differences, same_in_every_pair
from roadstead.report.simulated_plots import SampledRun
from tests.report.test_plot import SVG, boxes, do_overlap, texts_of

HIGHER = difference("fragmentation cpu", [0.0, 0.1, 0.2], [1.0, 1.1, 1.25])
UNCLEAR = difference("evicted", [5.0, 9.0, 2.0], [7.0, 3.0, 4.0])
SAME = difference("placed_share", [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
ONE = difference("evicted", [5.0], [7.0])
OWNED = "wait_p99_s StatefulSet/" + "database-" * 7


def drawn(*differences):
    return ElementTree.fromstring(difference_svg("A", "B", differences))


def dots(root):
    return [float(each.get("cx")) for each in root.iter(f"{SVG}circle") if len(each)]


def test_each_pair_is_a_dot_on_its_side_of_zero():
    root = drawn(HIGHER, UNCLEAR)

    higher, unclear = dots(root)[:3], dots(root)[3:]
    assert all(MIDDLE < each <= RIGHT for each in higher)
    assert [each > MIDDLE for each in unclear] == [True, False, True]
    assert min(dots(root)) >= LEFT
    titles = [each[0].text for each in root.iter(f"{SVG}circle") if len(each)]
    assert titles[3] == "0: +2 (A 5, B 7)"


def test_a_shown_difference_has_another_colour_than_others():
    classes = [each.get("class") for each in drawn(HIGHER, UNCLEAR).iter(f"{SVG}g")]

    assert classes[:4] == ["s0", "s1", "s0", "s7"]


def test_an_interval_has_caps_and_one_pair_has_none():
    def intervals(root):
        return [each for each in root.iter(f"{SVG}path") if each.get("class") == "interval"]

    assert len(intervals(drawn(HIGHER))) == 4, "two of the row, two of the legend"
    assert intervals(drawn(ONE)) == []
    assert "no interval: one pair" in texts_of(drawn(ONE))


@pytest.mark.parametrize("name", ["evicted", OWNED, "x" * 80])
def test_no_text_overlaps_or_is_cut(name):
    each = difference(name, [-123456.7, 0.0], [1.0, 2.0])
    root = drawn(each, each, HIGHER)
    found = boxes(root)

    width = float(root.get("width"))
    assert all(left >= 0 and right <= width for left, _, right, _ in found)
    assert not any(
        do_overlap(one, other) for n, one in enumerate(found) for other in found[n + 1 :]
    )


def test_the_size_of_the_picture_is_bounded():
    many = difference("wait", [0.0] * (DOTS_MAX + 1), [1.0] * DOTS_MAX + [2.0])
    root = drawn(*[many] * (ROWS_MAX + 5))

    assert len(dots(root)) == ROWS_MAX * DOTS_MAX
    assert f"The first {ROWS_MAX} of {ROWS_MAX + 5} metrics." in texts_of(root)
    assert f"The first {DOTS_MAX} pairs of each metric." in texts_of(root)


def test_the_page_has_verdicts_and_loads_nothing():
    samples = {("pending", ""): [(0, 1.0), (3_600_000_000, 2.0)]}
    sampled = [SampledRun("A", samples), SampledRun("B", samples)]

    page = paired_page("<a>", "b", [HIGHER, UNCLEAR, SAME], sampled, ["A note."], {"python": "3"})

    assert "<b>B higher</b>" in page
    assert "no difference shown" in page
    assert "the same in every pair" in page
    assert "Pods that wait for a node" in page
    assert "&lt;a&gt; and b" in page
    assert not re.search(r"(src|href)=|<script|url\(|@import", page)
    assert "prefers-color-scheme: dark" in page


def test_a_page_without_samples_and_differences_has_no_pictures():
    page = paired_page("a", "b", [SAME], [], [], {})

    assert "<svg" not in page
    assert "All metrics are the same in every pair." in page


def test_equal_metrics_are_named_but_waits_by_owner_only_counted():
    owned = difference("wait_p99_s web", [1.0], [1.0])

    assert same_in_every_pair([UNCLEAR, SAME, owned]) == (
        "The same in every pair: placed_share, 1 wait by owner."
    )
    assert same_in_every_pair([SAME, owned]) == "All metrics are the same in every pair."
    assert same_in_every_pair([UNCLEAR]) == ""


def test_the_table_on_a_terminal_is_bounded():
    file = io.StringIO()
    many = [
        difference(f"wait_p99_s w{n}", [0.0, 1.0], [2.0, 3.0]) for n in range(TERMINAL_ROWS_MAX + 2)
    ]

    print_differences(Console(file=file, width=80), "a", "b", many)

    lines = file.getvalue().splitlines()
    assert sum("wait_p99_s" in each for each in lines) == TERMINAL_ROWS_MAX
    assert "… and 2 more metrics; --format json has all" in lines
    assert "B is higher:" in lines
