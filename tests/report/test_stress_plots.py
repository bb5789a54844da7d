"""Proves the plots of a sweep: the labels of their axes, and their intervals."""

import re
from dataclasses import replace

import pytest

from roadstead.cli.stress_product import METRICS, PARAMETERS
from roadstead.lab.studies import MODEL_STUDIES
from roadstead.report.stress_plots import (
    METRIC_TEXTS,
    axis_title,
    metric_text,
    plots,
    readable_name,
)
from tests.report.toy_study import STUDY, swept


def plot_of(axes, seeds=(0, 1), study=STUDY):
    done = swept(axes, seeds, study)
    (plot,) = plots(done.sweep, done.points())
    return plot


def study_of(figure, amount):
    """Return a study of one figure, whose runs give amount(seed)."""
    return replace(STUDY, run=lambda values, seed: {figure: amount(seed)}, metrics=(figure,))


def bands_of(plot):
    return [band for line in plot.lines for _, band in line.points]


def test_the_first_parameter_is_the_axis_and_the_others_are_lines():
    plot = plot_of({"number": [2, 1], "word": ["a", "b"]})

    assert plot.title == "Busyness of the schedulers by number and word"
    assert plot.x_title == "Number (how many)"
    assert plot.y_title == "Share of time spent on decisions (0 to 1)"
    assert [each.name for each in plot.lines] == ["word a", "word b"]
    assert [x for x, _ in plot.lines[0].points] == [1.0, 2.0]


def test_the_unit_of_a_parameter_is_on_its_axis_and_in_the_legend():
    assert plot_of({"wait_s": [1, 2]}).x_title == "Age of the view (seconds)"
    names = [each.name for each in plot_of({"number": [1, 2], "wait_s": [1, 1000]}).lines]
    assert names == ["wait 1 s", "wait 1,000 s"]


@pytest.mark.parametrize("study", [*MODEL_STUDIES.values()], ids=lambda study: study.name)
def test_every_figure_of_a_model_has_a_title(study):
    assert set(study.metrics) <= set(METRIC_TEXTS)


def test_every_figure_of_the_product_has_a_title():
    assert set(METRICS) <= set(METRIC_TEXTS)


def test_titles_are_words_and_not_names_of_variables():
    product = replace(STUDY, parameters=PARAMETERS)
    studies = [*MODEL_STUDIES.values(), product]

    titles = [axis_title(study, each.name) for study in studies for each in study.parameters]
    titles += [each.title for each in METRIC_TEXTS.values()]
    titles += [each.amount for each in METRIC_TEXTS.values()]

    assert [each for each in titles if "_" in each or not re.match("[A-Z]", each)] == []


def test_seconds_and_rates_are_named_as_such():
    omega, slots = MODEL_STUDIES["omega"], MODEL_STUDIES["extra-slots"]

    assert axis_title(omega, "service_job_s") == "Decision time per service job (seconds)"
    assert axis_title(slots, "tasks_per_s") == "Arrival rate of tasks (per second)"
    assert axis_title(slots, "partitions") == "Number of partitions (1: StateSync)"


def test_a_figure_without_a_title_has_its_name():
    assert metric_text("batch_no_room").title == "Batch no room"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("service_job_s", "service job (s)"),
        ("batch_schedulers", "batch schedulers"),
        ("pods_per_s", "pods/s"),
        ("s", "s"),
    ],
)
def test_names_of_table_columns_have_their_units(name, text):
    assert readable_name(name) == text


def test_intervals_are_named_with_the_number_of_seeds():
    plot = plot_of({"number": [1, 2]}, study=study_of("extra_slots", lambda seed: 100.0 + seed))

    assert plot.interval == "95% interval of the mean over 2 seeds"
    assert plot.notes == ()


def test_one_seed_has_no_intervals_and_the_plot_reports_it():
    plot = plot_of({"number": [1, 2]}, seeds=(0,))

    assert all(band.low == band.high for band in bands_of(plot))
    assert plot.notes == ("One seed: no intervals.",)


def test_seeds_with_equal_figures_have_no_intervals_and_the_plot_reports_it():
    plot = plot_of({"number": [1, 2]}, study=study_of("extra_slots", lambda seed: 5.0))

    assert plot.notes == ("The 2 seeds have the same values: no intervals.",)


def test_an_interval_is_cut_at_the_possible_values_and_the_plot_reports_it():
    plot = plot_of({"number": [1]}, study=study_of("quality", lambda seed: 0.3 + 0.4 * seed))

    (band,) = bands_of(plot)
    assert (band.low, band.high) == (0.0, 1.0)
    assert plot.interval == "95% interval of the mean over 2 seeds, cut at 0 and 1"


def test_a_negative_figure_keeps_its_interval():
    study = study_of("x", lambda seed: -1.0 - seed)

    done = swept({"number": [1]}, study=study)

    assert bands_of(plot_of({"number": [1]}, study=study)) == [done.points()[0].bands["x"]]
