"""Proves the report of a sweep of a scenario: lines, ranges over the seeds, and bounds."""

import re

from roadstead.lab.scenario_sweep import ScenarioSweep, SweepRow, spreads
from roadstead.report.plot import svg
from roadstead.report.scenario_sweep_page import scenario_sweep_page
from roadstead.report.scenario_sweep_plots import LINES_MAX, sweep_plots, titles, varying_metrics

SIZES = ("fleet.0.generate.nodes", (9, 10))
CONFIGS = ("config", ("default", "binpack"))


def swept(*axes):
    planned = ScenarioSweep("small", axes, (0, 1))
    rows = [
        SweepRow(
            values, seed, {"pending": 10.0 * number + seed, "lost": 0.0, "wait_p50_s web": seed}
        )
        for number, (values, seed) in enumerate(planned.runs())
    ]
    return planned, rows


def test_a_metric_is_drawn_over_the_first_key_with_its_range_over_the_seeds():
    planned, rows = swept(SIZES, CONFIGS)

    (plot,) = sweep_plots(planned, spreads(rows), ["pending"])

    assert (plot.title, plot.x_title) == (
        "Pods that wait at the horizon by fleet.0.generate.nodes",
        "fleet.0.generate.nodes",
    )
    assert [each.name for each in plot.lines] == ["config default", "config binpack"]
    (x, band), _ = plot.lines[0].points
    assert (x, band.low, band.mean, band.high) == (9, 0, 5.5, 11)
    assert plot.categories == ()


def test_values_that_are_no_numbers_are_categories():
    values = ("plugin", (None, "mine.py", ["a:B", "c:D"]))

    (plot,) = sweep_plots(*_with_points(values), ["pending"])

    assert plot.categories == ("null", "mine.py", '["a:B", "c:D"]')
    assert svg(plot)


def _with_points(*axes):
    planned, rows = swept(*axes)
    return planned, spreads(rows)


def test_metrics_that_never_change_are_named_only():
    planned, rows = swept(SIZES)
    varying, same = varying_metrics(spreads(rows))

    assert (varying, same) == (["pending", "wait_p50_s web"], ["lost"])
    page = scenario_sweep_page(planned, rows, {})
    assert "The same in every run: lost." in page
    assert page.count("<svg") == 2
    assert not re.search(r"(src|href)=|<script|url\(", page)


def test_a_stopped_sweep_is_marked_as_stopped():
    planned, rows = swept(SIZES)

    assert "3 of 4 runs" in scenario_sweep_page(planned, rows[:3], {})


def test_a_sweep_without_a_key_has_a_table_alone():
    page = scenario_sweep_page(*swept(), {})

    assert "<svg" not in page
    assert "<th>pending</th>" in page


def test_a_plot_has_a_bounded_number_of_lines():
    others = ("seed_like", tuple(range(LINES_MAX + 3)))

    (plot,) = sweep_plots(*_with_points(SIZES, others), ["pending"])

    assert len(plot.lines) == LINES_MAX
    assert plot.notes == (f"The first {LINES_MAX} of {LINES_MAX + 3} lines; the table has all.",)


def test_titles_name_the_owner_or_resource():
    assert titles("utilization cpu")[0] == "Utilization of cpu"
    assert titles("wait_p99_s web")[0] == "99% quantile of waits of web"
    assert titles("new_metric") == ("new_metric", "")
