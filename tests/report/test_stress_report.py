"""Proves the report of a sweep: page and files."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from roadstead.lab.recommend import Recommendation
from roadstead.protocol.errors import InputError
from roadstead.report.stress_output import check_stress_directory, write_stress
from roadstead.report.stress_page import page
from tests.report.toy_study import swept
from tests.tables import read_rows

VOID = {"meta", "br", "hr", "img", "link", "input"}

ADVICE = Recommendation("number 1 & no more", {"number": 1}, ("because < it is",))


def test_a_page_is_self_contained():
    text = page(swept({"number": [1, 2], "word": ["a", "b"]}), "roadstead stress", {"x": "1"})

    links = re.findall(r"(?:src|href|url)\s*[=(]", text)
    outside = [each for each in re.findall(r"https?://[^\"\s]+", text) if "w3.org" not in each]
    assert (links, outside) == ([], [])
    assert text.count("<svg") == 1
    assert "prefers-color-scheme: dark" in text
    assert "a toy &lt;study&gt;" in text


class Strict(HTMLParser):
    """Parses a page strictly; collects its open elements and its text."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.links, self.plots = [], [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.links += [given[key] for key in ("src", "href", "srcset", "data") if key in given]
        if tag == "svg":
            self.plots.append([])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        if "svg" not in self.open:
            self.wrong.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open[-1:] == ["text"]:
            self.plots[-1].append(data)


def test_a_page_is_well_formed_and_every_plot_names_its_axes_and_lines():
    found = Strict()

    found.feed(page(swept({"number": [1, 2, 40], "word": ["a", "b"]}), "x <y>", {}, ADVICE))
    found.close()

    assert (found.open, found.wrong, found.links) == ([], [], [])
    assert len(found.plots) == 1
    assert {"Number (how many), logarithmic scale", "word a", "word b", "1", "40"} <= set(
        found.plots[0]
    )
    assert "Busyness of the schedulers by number and word" in found.plots[0]


def test_a_page_has_no_control_characters_of_the_command():
    made = page(swept({"number": [1, 2]}), "x \x1b[2J\u202e", {})

    assert r"<code>x \x1b[2J\u202e</code>" in made


def test_a_page_explains_the_intervals_and_that_one_seed_has_none():
    several = page(swept({"number": [1, 2]}, seeds=(0, 1)), "x", {})
    single = page(swept({"number": [1, 2]}, seeds=(7,)), "x", {})

    assert "intervals: 95% confidence of the mean, over seeds 0, 1" in several
    assert "One seed (7), so no intervals" in single


def test_a_page_shows_the_recommendation_with_its_reasons():
    text = page(swept({"number": [1, 2]}), "x", {}, ADVICE)

    assert "Recommended: number 1 &amp; no more" in text
    assert "because &lt; it is" in text


def test_a_sweep_without_axes_has_a_table_and_no_plots():
    text = page(swept({}), "x", {})

    assert "<svg" not in text
    assert "<table>" in text


def test_files_contain_every_run_and_every_point(tmp_path):
    done = swept({"number": [1, 2]})

    write_stress(tmp_path / "out", done, "roadstead stress", {"python": "3"}, ADVICE)

    folder = tmp_path / "out"
    runs = json.loads((folder / "runs.json").read_text())
    points = json.loads((folder / "points.json").read_text())
    rows = read_rows(folder / "runs.parquet")
    assert [each["seed"] for each in runs["runs"]] == [0, 1, 0, 1]
    assert rows[3] == {
        "number": 2,
        "wait_s": 2,
        "word": "a",
        "seed": 1,
        "busyness": 3.0,
        "other": 0.0,
    }
    assert points["points"][0]["figures"]["busyness"]["mean"] == 1.5
    assert points["recommendation"]["values"] == {"number": 1}
    assert runs["vary"] == {"number": [1, 2]}
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    ElementTree.parse(folder / "plots" / "busyness.svg")


def test_a_report_may_be_overwritten_and_no_other_file(tmp_path):
    done = swept({"number": [1]})
    write_stress(tmp_path / "out", done, "x", {})
    check_stress_directory(tmp_path / "out")
    check_stress_directory(tmp_path / "new")

    (tmp_path / "out" / "notes.txt").touch()

    with pytest.raises(InputError, match="holds files that are no report of a sweep"):
        check_stress_directory(tmp_path / "out")


def test_journals_of_an_earlier_sweep_are_never_overwritten(tmp_path):
    (tmp_path / "runs").mkdir()

    with pytest.raises(InputError, match="holds journals of an earlier sweep"):
        check_stress_directory(tmp_path)


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match="is not a directory"):
        check_stress_directory(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be used"):
        check_stress_directory(tmp_path / ("long" * 100))
    with pytest.raises(InputError, match="cannot be written"):
        write_stress(tmp_path / "file" / "x", swept({}), "x", {})
