"""`roadstead bench simulate`: scenarios of tiny sizes, their figures, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from roadstead.bench.calibration import Calibration, calibrate
from roadstead.cli import bench_simulate
from roadstead.cli.bench_simulate import chosen_plans, figures_of
from roadstead.protocol.errors import InputError
from roadstead.scenario.bench_plans import BENCH_PLANS, SECOND_US, Floor, PoissonSize, poisson
from roadstead.simulator.summary import RunSummary, waits_of
from tests.cli.conftest import Run

TINY = PoissonSize(nodes=3, arrivals=40, life_us=5 * SECOND_US, horizon_us=100 * SECOND_US)
PLANS = {each.name: each for each in BENCH_PLANS}


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = tuple(replace(each, make=lambda _: poisson(TINY)) for each in BENCH_PLANS)
    monkeypatch.setattr(bench_simulate, "BENCH_PLANS", plans)
    monkeypatch.setattr(bench_simulate, "calibrate", lambda: calibrate(1_000))


def summary(processor_s: float, endings: int) -> RunSummary:
    return RunSummary(
        "s", "default", 0, 1, 1_000, 1_000, 0, 0, {"done": endings - 5, "lost": 5},
        waits_of([]), {}, 0, 3, processor_s,
    )  # fmt: skip


def figures(
    floor: Floor, processor_s: float, peak_bytes: int = 1
) -> bench_simulate.ScenarioFigures:
    plan = replace(PLANS["ten-classes"], floor=floor)
    calibration = Calibration(1, 2.1, 2.1)
    return figures_of(plan, summary(processor_s, 600), calibration, peak_bytes)


def test_a_table_has_floors_values_the_machine_and_the_calibration(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Processes of pytest-xdist have a width, which would wrap the names of scenarios.
    monkeypatch.delenv("COLUMNS", raising=False)
    result = run("bench", "simulate")

    assert result.exit_code == 0
    assert "20 million additions took" in result.stdout
    assert "Commit" in result.stdout
    assert "cores" in result.stdout
    for part in ("8,000 events/s", "2,500 events/s", "5,000 nodes, single arrivals of 10 classes"):
        assert part in result.stdout
    assert "1,000,000" not in result.stdout, "the slow scenario ran"
    assert "--openb PATH names its trace" in result.stderr


def test_json_has_the_same_figures_and_nothing_else(run: Run) -> None:
    result = run("bench", "simulate", "all-distinct", "--json")

    document = json.loads(result.stdout)
    (found,) = document["scenarios"]
    assert found["name"] == "all-distinct"
    assert found["floor"] == {"figure": "events_per_s", "value": 2_500.0, "memory_bytes": 0}
    assert found["pods"] <= found["events"] <= 2 * found["pods"]
    assert found["pending"] == 0
    assert document["machine"]["cores"] >= 1


def test_events_are_arrivals_and_departures_and_seconds_are_calibrated() -> None:
    found = figures(Floor("events_per_s", 800.0), 2.0)

    assert (found.events, found.losses) == (1_600, 5)
    assert found.events_per_s == pytest.approx(800.0)
    assert found.is_reached
    assert found.calibrated_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("floor", "peak_bytes", "is_reached"),
    [
        (Floor("events_per_s", 801.0), 1, False),
        (Floor("processor_s", 2.0), 1, True),
        (Floor("processor_s", 1.9), 1, False),
        (Floor("processor_s", 2.0, 100), 100, True),
        (Floor("processor_s", 2.0, 100), 101, False),
    ],
)
def test_a_floor_bounds_rate_time_and_memory(
    floor: Floor, peak_bytes: int, is_reached: bool
) -> None:
    assert figures(floor, 2.0, peak_bytes).is_reached is is_reached


def test_slow_and_openb_add_scenarios() -> None:
    def names(*, has_openb: bool, slow: bool) -> list[str]:
        return [each.name for each in chosen_plans((), has_openb=has_openb, slow=slow)]

    assert names(has_openb=False, slow=False) == ["ten-classes", "all-distinct"]
    assert names(has_openb=True, slow=True) == [*PLANS]


@pytest.mark.parametrize(
    ("name", "message"),
    [("tens", "is not a scenario of the bench"), ("openb", "needs --openb PATH")],
)
def test_names_that_can_not_be_played_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chosen_plans([name], has_openb=False, slow=False)


@pytest.mark.parametrize(
    "option",
    [
        ("--runs", 2),
        ("--list",),
        ("--compare", "old.json"),
        ("--seed", 2),
        ("--timeout", 10),
        ("--mode", "shared"),
    ],
)
def test_options_of_other_workloads_are_refused(run: Run, option: tuple[object, ...]) -> None:
    result = run("bench", "simulate", *option)

    assert result.exit_code == 2
    assert "apply to `bench simulate`" in result.stderr


def test_slow_is_refused_without_simulate(run: Run) -> None:
    result = run("bench", "ten-classes", "--slow")

    assert result.exit_code == 2
    assert "--slow needs `bench simulate`" in result.stderr
