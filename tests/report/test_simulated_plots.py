"""Plots of simulated runs: which lines they have."""

from __future__ import annotations

from roadstead.report.simulated_plots import SampledRun, sample_plots

POINTS = [(0, 1.0), (3_600_000_000, 2.0)]


def lines_of(*runs: SampledRun) -> dict[str, list[str]]:
    """Return the names of the lines of each plot."""
    return {plot.title: [line.name for line in plot.lines] for plot in sample_plots(runs)}


def sampled(name: str, requested: float, allocatable: float) -> SampledRun:
    samples = {
        ("running", ""): POINTS,
        ("requested", "cpu"): [(at_us, requested) for at_us, _ in POINTS],
        ("allocatable", "cpu"): [(at_us, allocatable) for at_us, _ in POINTS],
    }
    return SampledRun(name, samples)


def test_what_is_allocatable_in_all_runs_is_one_line_after_those_of_the_runs() -> None:
    assert lines_of(sampled("a-0", 1.0, 8.0), sampled("b-0", 2.0, 8.0)) == {
        "Pods on nodes": ["a-0", "b-0"],
        "cpu: requested and allocatable": ["a-0 requested", "b-0 requested", "allocatable"],
    }


def test_fleets_that_differ_have_a_line_each() -> None:
    plots = lines_of(sampled("a-0", 1.0, 8.0), sampled("b-0", 2.0, 9.0))
    names = plots["cpu: requested and allocatable"]

    assert names[2:] == ["a-0 allocatable", "b-0 allocatable"]
