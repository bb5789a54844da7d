"""A study that gives known figures, and sweeps of it."""

from roadstead.lab import sweep as sweeps
from roadstead.lab.studies import Parameter, Study

STUDY = Study(
    "toy",
    "a toy <study>",
    (
        Parameter("number", 2, "number (how many)", 1, 1_000_000),
        Parameter("wait_s", 2, "age of the view (how old)", 0, 1000),
        Parameter("word", "a", "", choices=("a", "b")),
    ),
    lambda values, seed: {"busyness": values["number"] + seed, "other": 0.0},
    ("busyness",),
)


def swept(axes, seeds=(0, 1), study=STUDY):
    sweep = sweeps.make_sweep(study, axes, {}, seeds, source="x")
    return sweeps.sweep_result(sweep, dict(enumerate(study.run(*run) for run in sweep.runs())))
