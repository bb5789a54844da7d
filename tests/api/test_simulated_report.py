"""Which runs the report of a simulation shows over time."""

from __future__ import annotations

from pathlib import Path

from roadstead.api.run_folder import RecordedRun
from roadstead.api.simulated_report import drawn_runs


def test_each_configuration_has_as_many_of_the_runs_that_are_drawn() -> None:
    runs = [
        (Path(f"{config}-{seed}"), RecordedRun(name=f"{config}-{seed}", config=config, seed=seed))
        for config in ("default", "spread")
        for seed in range(5)
    ]

    assert [run.name for _, run in drawn_runs(runs)] == [
        *(f"default-{seed}" for seed in range(3)),
        *(f"spread-{seed}" for seed in range(3)),
    ]
    assert drawn_runs(runs[:2]) == runs[:2]
