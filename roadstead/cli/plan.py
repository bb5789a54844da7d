"""The plan of a run, made from flags: reads what they name, then calls `api/plan.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from roadstead.api import plan as api_plan
from roadstead.api.plan import ConfigText
from roadstead.cli.concurrency_options import ConcurrencyOptions
from roadstead.cli.notes import echo_note
from roadstead.cli.options import NO_JOURNAL, RunOptions
from roadstead.config.concurrency import current_name_of_shards
from roadstead.config.settings import Settings, load_settings, load_settings_file
from roadstead.facts.cluster import ClusterFacts
from roadstead.protocol.errors import InputError
from roadstead.report.paths import JOURNAL_FOLDER, check_folder
from roadstead.report.result import InputDigest, digest_of_file
from roadstead.run import RunInputs, RunPlan


def read_settings(
    options: RunOptions,
    output: Path | None = None,
    more_overrides: Mapping[str, object] = MappingProxyType({}),
) -> Settings:
    """Read the settings file, if any; flags override it. Raises InputError.

    The journal's folder is set and checked, too.

    output: the run's output directory, which contains the journal by default. more_overrides:
    settings of other flags, by dotted name.
    """
    overrides = {**options.overrides(), **more_overrides}
    if options.settings is None:
        settings = load_settings(overrides=overrides)
    else:
        settings = load_settings_file(options.settings, overrides=overrides)
    if options.ray_address is not None and settings.runtime == "inline":
        problem = "has no use with the runtime inline, which runs in this process"
        raise InputError(problem, source="--ray-address", value=options.ray_address)
    if options.shards is not None:
        flag = "--" + current_name_of_shards(settings.mode)
        echo_note(f"--shards is the former name of {flag}: use {flag} {options.shards}")
    if options.journal == NO_JOURNAL:
        settings = settings.model_copy(update={"journal": None})
    # A journal that a flag or the settings name is used before the one in the output folder.
    elif settings.journal is None and output is not None:
        settings = settings.model_copy(update={"journal": output / JOURNAL_FOLDER})
    api_plan.check_journal(settings)
    return settings


def read_config(options: RunOptions) -> ConfigText:
    """Read and check the scheduler configuration that the flags name. Raises InputError."""
    return api_plan.read_config(options.config, options.preset, options.plugin, echo_note)


def make_plan(
    options: RunOptions, settings: Settings, config: ConfigText, cluster: ClusterFacts
) -> RunPlan:
    """Make the plan of a run. Raises InputError."""
    return api_plan.make_plan(
        settings, config, cluster, echo_note, log_dir=log_dir(options), resume=options.resume
    )


def with_maximum_workers(settings: Settings, concurrency: ConcurrencyOptions) -> Settings:
    """Return the settings; for `--workers auto`, with as many workers as cores are free.

    `Launcher.prepare` starts the runtime by them while the inputs are read; `with_workers` chooses
    the number when nodes and pods are known.
    """
    if not concurrency.chooses_workers:
        return settings
    from roadstead.cli.auto_workers import free_cores

    return settings.model_copy(update={"workers": free_cores(settings).workers})


def with_workers(
    plan: RunPlan,
    concurrency: ConcurrencyOptions,
    inputs: RunInputs,
    room_for_workers: Callable[[Settings], int | None],
) -> RunPlan:
    """Return the plan with the number of workers chosen for `--workers auto`; print the reason.

    If more workers may fit during the run, the plan has their maximum, too (`workers_max`).

    room_for_workers: returns how many workers fit on the Ray cluster that the run joined; None on
    one machine.
    """
    if not concurrency.chooses_workers:
        return plan
    from roadstead.cli.auto_workers import FreeCores, choose_workers, free_cores

    # Counting free cores may ask the Ray cluster, so it is done only if workers may save time.
    def free() -> FreeCores:
        return free_cores(plan.settings, room_for_workers(plan.settings))

    chosen = choose_workers(plan, inputs, free)
    settings = plan.settings.model_copy(update={"workers": chosen.workers})
    note = f"workers: {chosen.workers}; {chosen.why}"
    if chosen.maximum <= chosen.workers:
        echo_note(note)
        return replace(plan, settings=settings)
    echo_note(f"{note}; up to {chosen.maximum} if CPUs of the Ray cluster become free")
    return replace(plan, settings=settings, workers_max=chosen.maximum)


def refuse_auto_workers(concurrency: ConcurrencyOptions) -> None:
    """Raise InputError for `--workers auto`: `bench` adds nodes and pods only during its runs."""
    if concurrency.chooses_workers:
        raise InputError(
            "must be a number: bench adds nodes and pods during the run", source="--workers"
        )


def log_dir(options: RunOptions) -> str:
    """Return the absolute path of the folder of logs; "" without logs.

    Actors may have another working directory. Raises InputError if the folder cannot be written.
    """
    if options.log is None:
        return ""
    check_folder(options.log, source="--log")
    return str(options.log.resolve())


def plan_digests(options: RunOptions, config: ConfigText) -> tuple[InputDigest, ...]:
    """Return the digests of the configuration and of the settings file, of each if it is given."""
    settings_digests = () if options.settings is None else (digest_of_file(options.settings),)
    return (*config.digests(), *settings_digests)
