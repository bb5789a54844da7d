"""Proves the pictures of plots: nothing overlaps or is cut, and lines differ without colour."""

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.lab.statistics import Band
from roadstead.report.plot import SHIFT, Plot, PlotLine, axis_values, svg
from roadstead.report.plot_marks import TITLE_SIZE
from roadstead.report.plot_text import TEXT_SIZE, text_width

SVG = "{http://www.w3.org/2000/svg}"
INTERVAL = "95% interval of the mean over 3 seeds"


def drawn(*lines, words=(), interval=INTERVAL, notes=()):
    plot = Plot("a <title>", "x & y", "pods per second", lines, words, interval, notes)
    return ElementTree.fromstring(svg(plot))


def line(name, *points, half=1.0):
    return PlotLine(name, tuple((x, Band(y, y - half, y + half)) for x, y in points))


def texts_of(root):
    return [each.text for each in root.iter(f"{SVG}text")]


def marked(root, name):
    return [each for each in root.iter(f"{SVG}path") if each.get("class") == name]


def place(path):
    x, y = re.search(r"translate\((\S+) (\S+)\)", path.get("transform")).groups()
    return float(x), float(y)


def boxes(root):
    """Return (left, top, right, bottom) of each text that is not empty, by its estimated width."""
    found = []
    for each in root.iter(f"{SVG}text"):
        if not (each.text or "").strip():
            continue
        is_title = each.get("class") == "title"
        size = TITLE_SIZE if is_title else TEXT_SIZE
        width = text_width(each.text, size, is_bold=is_title)
        share = {"middle": 0.5, "end": 1.0}.get(each.get("class"), 0.0)
        x, y = float(each.get("x")) - share * width, float(each.get("y"))
        found.append((x, y - 0.8 * size, x + width, y + 0.25 * size))
    return found


def do_overlap(one, other):
    left, top, right, bottom = one
    return left < other[2] and other[0] < right and top < other[3] and other[1] < bottom


def assert_legible(root):
    """Assert that texts are in the picture and overlap neither each other nor the points."""
    width, height = float(root.get("width")), float(root.get("height"))
    found = boxes(root)
    # Pixels are written to a tenth.
    assert all(x >= -0.1 and r <= width + 0.1 for x, _, r, _ in found)
    assert all(top >= 0 and bottom <= height for _, top, _, bottom in found)
    assert not [pair for pair in combinations(found, 2) if do_overlap(*pair)]
    points = [place(each) for each in marked(root, "point")]
    for x, y in points:
        assert not [box for box in found if do_overlap(box, (x - 2, y - 2, x + 2, y + 2))]


LETTERS = "first-fit W/mm and_so on, 12 iiii "
NAMES = st.builds(lambda start, size: (LETTERS * 8)[start:][:size], *[st.integers(0, 200)] * 2)
AMOUNTS = st.just(0.0) | st.floats(1e-9, 1e9) | st.floats(-1e6, -1e-6)


@st.composite
def plots(draw):
    words = tuple(draw(st.lists(NAMES, max_size=8)))
    xs = st.integers(0, len(words) - 1).map(float) if words else st.floats(1e-4, 1e8) | st.just(0.0)
    lines = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=10)):
        points = []
        for x in sorted(draw(st.lists(xs, min_size=1, max_size=12, unique=True))):
            low, mean, high = sorted(draw(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS)))
            points.append((x, Band(mean, low, high)))
        lines.append(PlotLine(name, tuple(points)))
    titles = [draw(NAMES) for _ in range(4)]
    return Plot(*titles[:3], tuple(lines), words, INTERVAL, (titles[3],))


@given(plots())
def test_texts_of_any_plot_are_inside_it_and_do_not_overlap(plot):
    assert_legible(ElementTree.fromstring(svg(plot)))


def test_a_plot_has_its_titles_and_a_point_with_an_interval_for_each_value():
    root = drawn(line("one", (1.0, 5.0), (2.0, 7.0)))

    assert {"a <title>", "x & y", "pods per second", "0", INTERVAL} <= set(texts_of(root))
    assert len(marked(root, "point")) == 2
    assert len(marked(root, "interval")) == 2 + 1
    assert "one" not in texts_of(root)


def test_intervals_are_neither_drawn_nor_named_if_there_are_none():
    root = drawn(line("one", (1.0, 5.0), half=0.0), notes=("One seed: no intervals.",))

    assert marked(root, "interval") == []
    assert INTERVAL not in texts_of(root)
    assert "One seed: no intervals." in texts_of(root)


def test_an_interval_reaches_from_its_lower_to_its_upper_bound():
    root = drawn(PlotLine("", ((1.0, Band(5.0, 0.0, 10.0)),)))

    interval = marked(root, "interval")[0].get("d")
    low, high = map(float, re.match(r"M\S+ (\S+)V(\S+?)M", interval).groups())
    ticks = {each.text: float(each.get("y")) - 4 for each in root.iter(f"{SVG}text")}
    assert (low, high) == (ticks["0"], ticks["10"])


def test_axes_of_amounts_start_at_zero():
    root = drawn(line("one", (1.0, 1_000.0), (2.0, 1_001.0)))

    assert {"0", "1,000"} <= set(texts_of(root))


def test_several_lines_have_a_legend_below_the_data():
    root = drawn(line("one", (1.0, 5.0)), line("two", (1.0, 6.0)))

    lowest = max(y for _, y in map(place, marked(root, "point")))
    names = {each.text: float(each.get("y")) for each in root.iter(f"{SVG}text")}
    assert names["one"] > lowest
    assert names["two"] > lowest


def test_lines_can_be_distinguished_without_colour():
    root = drawn(*(line(str(number), (1.0, 1.0), (2.0, 1.0)) for number in range(28)))

    looks = set()
    for group in root.iter(f"{SVG}g"):
        (drawn_line,) = group.iter(f"{SVG}polyline") if group.get("class") != "axis" else (None,)
        if drawn_line is not None:
            marker = next(each for each in group.iter(f"{SVG}path") if each.get("transform"))
            looks.add((drawn_line.get("stroke-dasharray"), marker.get("d")))
    assert len(looks) == 28


def test_points_with_equal_x_are_shifted_by_less_than_a_marker():
    root = drawn(*(line(str(number), (1.0, 5.0), (2.0, 5.0)) for number in range(3)))

    xs = sorted({x for x, _ in map(place, marked(root, "point"))})
    assert len(xs) == 6
    assert xs[2] - xs[0] <= 2 * SHIFT


def test_a_logarithmic_axis_is_labelled_and_broken_before_zero():
    root = drawn(line("one", (0.0, 1.0), (1.0, 1.0), (10.0, 1.0), (100.0, 1.0)))

    (joined,) = root.iter(f"{SVG}polyline")
    assert "x & y, logarithmic scale" in texts_of(root)
    assert {"0", "1", "10", "100"} <= set(texts_of(root))
    assert len(joined.get("points").split()) == 3


@pytest.mark.parametrize("x", [0.0, 5.0, 1_000_000.0])
def test_a_single_point_is_drawn_in_the_middle(x):
    root = drawn(PlotLine("one", ((x, Band(0.0, 0.0, 0.0)),)))

    assert len(marked(root, "point")) == 1
    assert_legible(root)


def test_words_are_on_the_axis_at_their_positions():
    places, words = axis_values(("fit", "version"))

    root = drawn(line("one", *((place, 1.0) for place in places)), words=words)

    assert {"fit", "version"} <= set(texts_of(root))
    assert axis_values((1, 2.5)) == ((1.0, 2.5), ())


def test_over_words_points_are_side_by_side_without_lines():
    points = ((0.0, 1.0), (1.0, 2.0))

    root = drawn(line("one", *points), line("two", *points), words=("fit", "version"))

    xs = [x for x, _ in map(place, marked(root, "point"))]
    assert not list(root.iter(f"{SVG}polyline"))
    assert len(set(xs)) == 4


def test_many_words_are_wrapped_and_do_not_overlap():
    words = ("latency-first", "50/80/95/80/50", "all-or-nothing", "a" * 60) * 2

    root = drawn(line("one", *((float(at), 1.0) for at in range(len(words)))), words=words)

    assert "latency-" in texts_of(root)
    assert_legible(root)


def test_a_picture_has_colours_for_dark_pages_and_styles_nothing_else():
    (style,) = drawn(line("one", (1.0, 1.0))).iter(f"{SVG}style")

    light, dark = style.text.split("@media (prefers-color-scheme: dark)")
    assert ".plot .page { fill: #fff }" in light
    assert ".plot .page { fill: #15181b }" in dark
    selectors = re.findall(r"(\S+)[^{}]*\{ ", style.text.replace("@media", ""))
    assert {each for each in selectors if each.startswith(".")} == {".plot"}
