"""The options of `roadstead stress` that define a sweep.

omega, extra-slots and policies are studies, models of the literature; a cell is the cluster of such
a model, a phase a period of it with a load of its own (`roadstead.lab.studies`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from roadstead.cli.options import Callback, ray_address_option

FLAGS: Final = {
    "schedulers": "Numbers of schedulers (omega: of batch schedulers).",
    "staleness": "Maximum age of the cluster state used for a decision, in seconds.",
    "batch": "Pods (omega: jobs) in a batch of a scheduler.",
    "decision-time": "Simulated decision time per job, in seconds (omega: of service schedulers).",
    "load": "Used share of the cell (omega), or the load of each phase (policies).",
    "conflicts": "What counts as a conflict: fit, version.",
    "transaction": "How the pods of a job are bound: incremental, all-or-nothing.",
    "mode": "Concurrency mode: exact, shared, partitioned (policies: the partition policy).",
}
"""Flags that stand for a parameter of the study; one value sets it, several are swept."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The definition of a sweep; flags override the file, and the file overrides the preset."""

    preset: str | None = None
    file: Path | None = None
    study: str | None = None
    engine: str | None = None
    vary: tuple[str, ...] = ()
    seeds: int | None = None
    first_seed: int | None = None
    schedulers: str | None = None
    staleness: str | None = None
    batch: str | None = None
    decision_time: str | None = None
    load: str | None = None
    conflicts: str | None = None
    transaction: str | None = None
    mode: str | None = None

    def flags(self) -> dict[str, str | None]:
        """The values of the flags that stand for parameters."""
        return {flag: getattr(self, flag.replace("-", "_")) for flag in FLAGS}


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Place of the runs of a sweep, and whether it continues a stopped one.

    jobs: maximum number of runs at a time; None: chosen by the free cores.
    """

    jobs: int | None = None
    ray_address: str | None = None
    settings: Path | None = None
    resume: bool = False


def _flag(name: str, text: str) -> Callable[[Callback], Callback]:
    return click.option(f"--{name}", metavar="V,…", help=text)


sweep_parameters: Final[tuple[Callable[[Callback], Callback], ...]] = (
    click.option("--preset", metavar="NAME", help="Included sweep; --list shows all."),
    click.option(
        "--file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Sweep in YAML, with the keys title, study, engine, vary, set, seeds.",
    ),
    click.option(
        "--study",
        metavar="NAME",
        help="omega (the default), extra-slots, policies, or product (the default with --cluster "
        "or --trace); --list describes each.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["model", "virtual", "inline", "ray"]),
        help="model: the models of the literature (the default of their studies). The others run "
        "Roadstead itself: virtual in simulated time, inline in this process (the default), ray in "
        "processes of Ray. inline and ray measure real time: their runs run one after another.",
    ),
    *(_flag(name, text) for name, text in FLAGS.items()),
    click.option(
        "--vary",
        multiple=True,
        metavar="NAME=V,…",
        help="Any parameter of the study (see --list): one value sets it, several are swept.",
    ),
    click.option(
        "--seeds",
        type=click.IntRange(1, 1000),
        metavar="N",
        help="Number of runs of each combination, each with its own seed [default: 3, or the "
        "preset's].",
    ),
    click.option(
        "--first-seed", type=click.IntRange(0), metavar="N", help="First seed [default: 0]."
    ),
)

job_parameters: Final[tuple[Callable[[Callback], Callback], ...]] = (
    click.option(
        "--jobs",
        type=click.IntRange(1, 10_000),
        metavar="N",
        help="Number of runs at a time. By default one, and one for each CPU once that saves more "
        "than 15 s; on a cluster one for each free CPU. The results do not depend on it.",
    ),
    ray_address_option,
    click.option(
        "--settings",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="roadstead.yaml file with the sections ray and deadlines; options override it.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Continue the stopped sweep in the --output folder: runs whose results it holds are "
        "not repeated.",
    ),
)
