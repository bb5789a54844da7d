"""The plan of a run, from flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from roadstead.api import plan as plans
from roadstead.api.plan import ConfigText
from roadstead.cli.concurrency_options import ConcurrencyOptions
from roadstead.cli.notes import echo_note
from roadstead.cli.options import NO_JOURNAL, PlanOptions
from roadstead.config.concurrency import name_of_shards
from roadstead.config.settings import Settings, load_settings, load_settings_file
from roadstead.facts.cluster import ClusterFacts
from roadstead.protocol.errors import InputError
from roadstead.report.paths import check_folder
from roadstead.report.result import InputDigest, digest_of_file
from roadstead.run import RunInputs, RunPlan

JOURNAL_DIRECTORY = "journal"
"""Where in an output directory the journal is."""


def read_settings(
    options: PlanOptions,
    output: Path | None = None,
    more_overrides: Mapping[str, object] = MappingProxyType({}),
) -> Settings:
    """The settings file, if any, with flags over it. InputError where either is wrong.

    output: where a run that has an output directory keeps its journal, unless told otherwise.
    more_overrides: of flags that are not among the options.
    """
    overrides = {**options.overrides(), **more_overrides}
    if options.settings is None:
        settings = load_settings(overrides=overrides)
    else:
        settings = load_settings_file(options.settings, overrides=overrides)
    if options.shards is not None:
        now = "--" + name_of_shards(settings.mode)
        echo_note(f"--shards is the former name of {now}: use {now} {options.shards}")
    if options.journal == NO_JOURNAL:
        return settings.model_copy(update={"journal": None})
    if settings.journal is None and output is not None:
        settings = settings.model_copy(update={"journal": output / JOURNAL_DIRECTORY})
    if settings.journal is not None:
        check_folder(settings.journal, source="settings", field="journal")
    return settings


def read_config(options: PlanOptions) -> ConfigText:
    """The configuration that the flags name, checked. InputError where it is wrong."""
    return plans.read_config(options.config, options.preset, options.plugin, echo_note)


def make_plan(
    options: PlanOptions, settings: Settings, config: ConfigText, cluster: ClusterFacts
) -> RunPlan:
    """The plan of a run. InputError where a part of it is wrong."""
    return plans.make_plan(
        settings, config, cluster, echo_note, log_dir=log_dir(options), resume=options.resume
    )


def at_most(settings: Settings, concurrency: ConcurrencyOptions) -> Settings:
    """Settings for which room is made before it is known how many workers there will be."""
    if not concurrency.chooses_workers:
        return settings
    from roadstead.cli.auto_workers import free_cores

    return settings.model_copy(update={"workers": free_cores(settings)})


def with_workers(plan: RunPlan, concurrency: ConcurrencyOptions, inputs: RunInputs) -> RunPlan:
    """The plan with as many workers as pay, where that was asked for; says why on stderr."""
    if not concurrency.chooses_workers:
        return plan
    from roadstead.cli.auto_workers import choose_workers, free_cores

    chosen = choose_workers(plan, inputs, cores=free_cores(plan.settings))
    echo_note(f"workers: {chosen.workers}; {chosen.why}")
    settings = plan.settings.model_copy(update={"workers": chosen.workers})
    return replace(plan, settings=settings)


def without_auto(concurrency: ConcurrencyOptions) -> None:
    """InputError where workers are to be chosen, and nodes and pods come only in the run."""
    if concurrency.chooses_workers:
        raise InputError(
            "must be a number: bench adds nodes and pods during the run", source="--workers"
        )


def log_dir(options: PlanOptions) -> str:
    """The folder of the logs, "" for none; actors may run in another working directory.

    InputError where it cannot be written.
    """
    if options.log is None:
        return ""
    check_folder(options.log, source="--log")
    return str(options.log.resolve())


def plan_digests(options: PlanOptions, config: ConfigText) -> tuple[InputDigest, ...]:
    """Digests of the configuration and the settings file, where they were given."""
    settings = () if options.settings is None else (digest_of_file(options.settings),)
    return (*config.digests(), *settings)
