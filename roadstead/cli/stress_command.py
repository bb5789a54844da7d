"""`roadstead stress`: the conflict lab: sweeps over schedulers, staleness, batch and more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import (
    Callback,
    Form,
    SourceOptions,
    format_option,
    gathered,
    source_parameters,
)
from roadstead.cli.session import Session

FLAGS: Final = {
    "schedulers": "Numbers of schedulers (omega: of batch schedulers).",
    "staleness": "How old the state may be on which is decided, in seconds.",
    "batch": "Pods (omega: jobs) that a scheduler decides at a time.",
    "decision-time": "Simulated decision time per job, in seconds (omega: of service schedulers).",
    "load": "Part of the cell that is used (omega), or the load of each phase (policies).",
    "conflicts": "fit, version: what counts as a conflict.",
    "transaction": "incremental, all-or-nothing.",
    "mode": "exact, shared, partitioned (policies: where to look first).",
}
"""Flags that stand for a parameter of the study; one value sets it, several are swept."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """What to sweep; a flag goes before the file, which goes before the preset."""

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
        """The flags that stand for parameters."""
        return {flag: getattr(self, flag.replace("-", "_")) for flag in FLAGS}


def _flag(name: str, text: str) -> Callable[[Callback], Callback]:
    return click.option(f"--{name}", metavar="V,…", help=text)


sweep_parameters: Final[tuple[Callable[[Callback], Callback], ...]] = (
    click.option("--preset", metavar="NAME", help="A sweep that is known; see below."),
    click.option(
        "--file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A sweep in YAML: title, study, engine, vary, set, seeds.",
    ),
    click.option(
        "--study",
        metavar="NAME",
        help="omega (the default), extra-slots, policies, or product.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["model", "virtual", "inline", "ray"]),
        help="model: the models of the literature. The others run the product: virtual in "
        "simulated time, inline in this process, ray in processes.",
    ),
    *(_flag(name, text) for name, text in FLAGS.items()),
    click.option(
        "--vary",
        multiple=True,
        metavar="NAME=V,…",
        help="Any parameter of the study: one value sets it, several are swept.",
    ),
    click.option(
        "--seeds", type=click.IntRange(1, 1000), metavar="N", help="Repeats [default: 3]."
    ),
    click.option(
        "--first-seed", type=click.IntRange(0), metavar="N", help="Seed of the first [default: 0]."
    ),
)


@click.command("stress", cls=ReportingCommand)
@gathered("asked", SweepOptions, sweep_parameters)
@gathered("source", SourceOptions, source_parameters)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write runs (Parquet, JSON), report.html and, of the product, journals.",
)
@format_option
@click.pass_obj
def stress_command(
    session: Session,
    *,
    asked: SweepOptions,
    source: SourceOptions,
    output: Path | None,
    form: Form,
) -> None:
    """Sweep over many schedulers at once, and see what conflicts cost.

    Models reproduce the published figures of Omega and ParSync. With --cluster, --pods or --trace
    the product itself schedules what is given, in every combination, and a mode, a number of
    schedulers and a batch are recommended for it.

    \b
    Presets: quick, omega-decision-time, omega-schedulers, omega-choices,
      omega-trace, parsync-schedulers, parsync-gap, parsync-variance,
      parsync-partitions, parsync-policies, constraint-heavy

    \b
    Examples:
      roadstead stress --preset quick
      roadstead stress --preset omega-choices --output out
                                           # out/report.html
      roadstead stress --decision-time 0.1,1,10 --vary placement=pack
      roadstead stress --preset constraint-heavy --output heavy
      roadstead check heavy                # 0 violations
      roadstead stress --trace openb.trace --schedulers 1,2,4 --batch 256,1024
                                           # and what to take for it

    Exit status: 0 done, 1 a run failed, 2 wrong input.
    """
    from roadstead.cli import stressing

    if source.trace is not None or source.cluster or source.pods:
        source.check()
        asked = replace(asked, study=asked.study or "product")
    stressing.stress(session, asked, source, stressing.Target(form, output))
