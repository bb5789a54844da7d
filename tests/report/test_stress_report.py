"""Proves the report of a sweep: plots, page, files."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from roadstead.lab.recommend import Recommendation
from roadstead.lab.statistics import Band
from roadstead.lab.studies import Parameter, Study
from roadstead.lab.sweep import make_sweep, run_sweep
from roadstead.protocol.errors import InputError
from roadstead.report.plot import Line, Plot, numbers, svg
from roadstead.report.stress_output import check_stress_directory, write_stress
from roadstead.report.stress_page import in_words, page, plain, plots
from tests.tables import read_rows

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br", "hr", "img", "link", "input"}

STUDY = Study(
    "toy",
    "a toy <study>",
    (
        Parameter("number", 2, "", 1, 1000),
        Parameter("wait_s", 2, "how long", 1, 1000),
        Parameter("word", "a", "", choices=("a", "b")),
    ),
    lambda values, seed: {"busyness": values["number"] + seed, "other": 0.0},
    ("busyness",),
)
ADVICE = Recommendation("number 1 & no more", {"number": 1}, ("because < it is",))


def swept(axes, seeds=(0, 1)):
    sweep = make_sweep(STUDY, axes, {}, seeds, source="x")
    return run_sweep(sweep, lambda done, total, now: None)


def drawn(*lines, words=()):
    root = ElementTree.fromstring(svg(Plot("a <title>", "x & y", "y", lines, words)))
    return root, [each.text for each in root.iter(f"{SVG}text")]


def line(name, *points):
    return Line(name, tuple((x, Band(y, y - 1, y + 1)) for x, y in points))


def test_a_plot_has_title_axes_a_band_and_a_line():
    root, texts = drawn(line("one", (1.0, 5.0), (2.0, 7.0)))

    assert {"a <title>", "x & y", "y", "0"} <= set(texts)
    assert len(list(root.iter(f"{SVG}polygon"))) == 1
    assert len(list(root.iter(f"{SVG}circle"))) == 2
    assert "one" not in texts


def test_several_lines_have_a_legend_and_colours_of_their_own():
    root, texts = drawn(line("one", (1.0, 5.0)), line("two", (1.0, 6.0)))

    strokes = {each.get("stroke") for each in root.iter(f"{SVG}polyline")}
    assert {"one", "two"} <= set(texts)
    assert len(strokes) == 2


def test_an_axis_over_two_decades_is_logarithmic():
    _, texts = drawn(line("one", (0.1, 1.0), (1.0, 1.0), (10.0, 1.0)))
    root, _ = drawn(line("one", (0.1, 1.0), (1.0, 1.0), (10.0, 1.0)))

    xs = [float(each.get("cx")) for each in root.iter(f"{SVG}circle")]
    assert {"0.1", "1", "10"} <= set(texts)
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)


@pytest.mark.parametrize("x", [0.0, 5.0])
def test_a_single_point_and_a_flat_line_can_be_drawn(x):
    root, texts = drawn(Line("one", ((x, Band(0.0, 0.0, 0.0)),)))

    assert len([*root.iter(f"{SVG}circle")]) == 1
    assert texts


def test_words_stand_on_the_axis_at_their_places():
    places, words = numbers(("fit", "version"))

    _, texts = drawn(line("one", *((place, 1.0) for place in places)), words=words)

    assert {"fit", "version"} <= set(texts)
    assert numbers((1, 2.5)) == ((1.0, 2.5), ())


def test_over_words_there_are_dots_side_by_side_and_no_lines():
    points = ((0.0, 1.0), (1.0, 2.0))

    root, _ = drawn(line("one", *points), line("two", *points), words=("fit", "version"))

    xs = [float(each.get("cx")) for each in root.iter(f"{SVG}circle")]
    assert not list(root.iter(f"{SVG}polyline"))
    assert len(set(xs)) == 4


def test_few_values_stand_on_the_axis_themselves_and_many_do_not():
    _, few = drawn(line("one", *((x, 1.0) for x in (1.0, 3.0, 7.0))))
    _, many = drawn(line("one", *((float(x), 1.0) for x in range(30))))

    assert {"1", "3", "7"} <= set(few)
    assert "7" not in many


def test_a_logarithmic_axis_of_many_values_has_its_powers_of_ten():
    _, texts = drawn(line("one", *((1.4**power, 1.0) for power in range(15))))

    assert {"1", "10", "100"} <= set(texts)


def test_ticks_that_would_touch_are_not_written():
    _, texts = drawn(line("one", (100.0, 1.0), (100.1, 1.0), (200.0, 1.0)))

    assert {"100", "200"} <= set(texts)
    assert "100.1" not in texts


def test_lines_of_one_colour_differ_in_their_dashes():
    root, _ = drawn(*(line(str(number), (1.0, 1.0), (2.0, 1.0)) for number in range(20)))

    looks = [
        (each.get("stroke"), each.get("stroke-dasharray")) for each in root.iter(f"{SVG}polyline")
    ]
    assert len(set(looks)) == 20


def test_figures_are_put_into_words_where_there_are_some():
    assert in_words("service_busyness") == "busyness"
    assert in_words("batch_no_room") == "batch no room"


def test_conflicts_are_called_what_they_are_for_each_study():
    assert in_words("service_conflict_fraction") == "transactions with a conflict / without"
    assert in_words("transaction_conflict_fraction") == "jobs with a conflict / jobs without"
    assert in_words("conflict_fraction") == "conflicts per pod or task placed"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("service_job_s", "service job (s)"),
        ("batch_schedulers", "batch schedulers"),
        ("pods_per_s", "pods/s"),
        ("s", "s"),
    ],
)
def test_names_are_told_with_their_unit(name, text):
    assert plain(name) == text


def test_a_page_needs_nothing_beside_itself():
    text = page(swept({"number": [1, 2], "word": ["a", "b"]}), "roadstead stress", {"x": "1"})

    links = re.findall(r"(?:src|href|url)\s*[=(]", text)
    outside = [each for each in re.findall(r"https?://[^\"\s]+", text) if "w3.org" not in each]
    assert (links, outside) == ([], [])
    assert text.count("<svg") == 1
    assert "prefers-color-scheme: dark" in text
    assert "a toy &lt;study&gt;" in text


class Strict(HTMLParser):
    """Knows what is open; holds what a reader would meet."""

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
    assert {"busyness", "number", "word a", "word b", "1", "40"} <= set(found.plots[0])


def test_a_band_of_what_is_never_negative_ends_at_zero():
    done = swept({"number": [1]}, seeds=(0, 40))

    ((_, shown),) = plots(done, done.points())[0].lines[0].points

    assert done.points()[0].bands["busyness"].low < 0.0
    assert shown.low == 0.0


def test_what_is_negative_keeps_its_band():
    below = Study("toy", "", STUDY.parameters, lambda values, seed: {"x": -1.0 - seed}, ("x",))
    done = run_sweep(
        make_sweep(below, {"number": [1]}, {}, (0, 1), source="x"), lambda done, total, now: None
    )

    assert plots(done, done.points())[0].lines[0].points[0][1] == done.points()[0].bands["x"]


def test_a_page_tells_the_recommendation_with_its_reasons():
    text = page(swept({"number": [1, 2]}), "x", {}, ADVICE)

    assert "Recommended: number 1 &amp; no more" in text
    assert "because &lt; it is" in text


def test_the_first_parameter_is_the_axis_and_the_others_are_lines():
    done = swept({"number": [2, 1], "word": ["a", "b"]})

    (plot,) = plots(done, done.points())

    assert plot.x_name == "number"
    assert [each.name for each in plot.lines] == ["word a", "word b"]
    assert [x for x, _ in plot.lines[0].points] == [1.0, 2.0]


def test_an_axis_says_what_its_parameter_is():
    done = swept({"wait_s": [1, 2]})

    assert plots(done, done.points())[0].x_name == "how long (s)"


def test_a_sweep_of_nothing_has_a_table_and_no_plots():
    text = page(swept({}), "x", {})

    assert "<svg" not in text
    assert "<table>" in text


def test_files_hold_every_run_and_every_point(tmp_path):
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


def test_a_report_may_be_written_again_and_nothing_else_is_overwritten(tmp_path):
    done = swept({"number": [1]})
    write_stress(tmp_path / "out", done, "x", {})
    check_stress_directory(tmp_path / "out")
    check_stress_directory(tmp_path / "new")

    (tmp_path / "out" / "notes.txt").touch()

    with pytest.raises(InputError, match="holds files of something else"):
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
