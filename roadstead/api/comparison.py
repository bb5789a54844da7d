"""`roadstead.compare`: two configurations, plugins, runs or sweeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from roadstead.api.compared_sides import Side, sides_of
from roadstead.api.comparison_files import write_comparison
from roadstead.api.paired_runs import Comparison as Comparison
from roadstead.api.paired_runs import RunGroup, compare_finished, read_group, sweep_runs
from roadstead.api.request import ARGUMENTS
from roadstead.api.scenario import ScenarioSource, scenario_file
from roadstead.api.scenario_sweep import SweepFolder, check_new_folder
from roadstead.api.simulation import SimulationResult
from roadstead.api.sweep import SweepJobs, SweepResult, check_count, play_sweep
from roadstead.protocol.errors import InputError
from roadstead.sweeps.tasks import TaskCounts

Compared: TypeAlias = "str | os.PathLike[str] | SimulationResult | SweepResult"
"""A finished simulation or sweep, or its folder; or a configuration: a file, or the name of one."""

Plugins: TypeAlias = "str | Sequence[str]"
"""One plugin, or several, each as of `--plugin`."""


def compare(
    a: Compared | None = None,
    b: Compared | None = None,
    *,
    scenario: ScenarioSource | None = None,
    seeds: int | None = None,
    plugin: Plugins = (),
    plugin_a: Plugins = (),
    plugin_b: Plugins = (),
    jobs: int | None = None,
    ray_address: str | None = None,
    output: str | os.PathLike[str] | None = None,
    tables: bool = False,
    resume: bool = False,
    progress: Callable[[TaskCounts], None] | None = None,
) -> Comparison:
    """Return the paired differences of two finished simulations or sweeps, as `roadstead compare`.

    a, b: results, or their folders; runs with the same seed are a pair. With `scenario` they are
    configurations, each a file or the name of an included one, and the scenario is played with
    both. They may be left out if plugin_a and plugin_b, plugins of one side, differ; plugin: of
    both sides. seeds, jobs, ray_address, tables, resume and progress are then as for `sweep`.
    output: a new folder for the files. Raises InputError for invalid input, RoadsteadError if a run
    fails.
    """
    folder = None if output is None else Path(output)
    if scenario is None:
        unused: dict[str, object] = {"seeds": seeds, "jobs": jobs, "ray_address": ray_address}
        unused |= {"plugin": plugin or None, "plugin_a": plugin_a or None}
        unused |= {"plugin_b": plugin_b or None, "tables": tables or None, "resume": resume or None}
        # An argument without effect is an error: a user who passes `seeds` would otherwise read
        # the result as that of so many seeds. False is the default of flags, and no value.
        for name, value in unused.items():
            if value is not None:
                raise InputError("has no use without a scenario", source=ARGUMENTS, field=name)
        return _compare_finished(a, b, folder)
    check_count("seeds", seeds)
    file = scenario_file(scenario)
    side_a = Side(_config_name("a", a), _several(plugin_a))
    side_b = Side(_config_name("b", b), _several(plugin_b))
    compared = sides_of(file, side_a, side_b, seeds, _argument)
    sweep_folder = SweepFolder(folder, tables, resume)
    prepared, rows = play_sweep(
        file,
        compared.planned,
        _several(plugin),
        SweepJobs(jobs, ray_address),
        sweep_folder,
        progress,
    )
    comparison, groups = compared.compare(prepared, rows)
    if folder is not None:
        write_comparison(folder, comparison, groups)
    return comparison


def _compare_finished(a: Compared | None, b: Compared | None, folder: Path | None) -> Comparison:
    if folder is not None:
        check_new_folder(folder)
    groups = _group_of("a", a), _group_of("b", b)
    comparison = compare_finished(*groups)
    if folder is not None:
        write_comparison(folder, comparison, groups)
    return comparison


def _argument(name: str) -> Mapping[str, str]:
    return {"source": ARGUMENTS, "field": name}


def _several(plugins: Plugins) -> tuple[str, ...]:
    return (plugins,) if isinstance(plugins, str) else tuple(plugins)


def _config_name(name: str, config: Compared | None) -> str | None:
    if config is None:
        return None
    if not isinstance(config, str | os.PathLike):
        raise InputError("must be a configuration: a scenario is given", **_argument(name))
    return os.fspath(config)


def _group_of(name: str, compared: Compared | None) -> RunGroup:
    if compared is None:
        raise InputError("is missing", **_argument(name))
    if isinstance(compared, SimulationResult):
        return read_group(compared.directory)
    if isinstance(compared, SweepResult):
        return RunGroup.of(repr(compared), sweep_runs(compared.runs, compared.directory))
    return read_group(Path(os.fspath(compared)))
