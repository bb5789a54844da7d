"""The plan of a run: settings, configuration, and what the cluster has beside nodes and pods."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import click

from roadstead.cli.concurrency_options import ConcurrencyOptions
from roadstead.cli.options import NO_JOURNAL, PlanOptions, config_bytes
from roadstead.config.concurrency import name_of_shards
from roadstead.config.settings import Settings, load_settings, load_settings_file
from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.given import answered_elsewhere
from roadstead.isolation import working_directory
from roadstead.nodes.pod_info import PodClasses
from roadstead.protocol.errors import InputError
from roadstead.report.paths import check_folder
from roadstead.report.result import InputDigest, digest_of_file
from roadstead.run import RunInputs, RunPlan, build_narrower, build_profiles, check_schedulers

JOURNAL_DIRECTORY = "journal"
"""Where in an output directory the journal is."""


@dataclass(frozen=True, slots=True)
class ConfigText:
    """A configuration as written, and what it is called; both empty for the default one.

    plugins, plugin_dir: the user's plugins that it may name, as `RunPlan` has them.
    """

    text: str = ""
    source: str = ""
    plugins: tuple[str, ...] = ()
    plugin_dir: str = ""


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
        click.echo(f"--shards is the old name of {now}: {now} {options.shards}", err=True)
    if options.journal == NO_JOURNAL:
        return settings.model_copy(update={"journal": None})
    if settings.journal is None and output is not None:
        settings = settings.model_copy(update={"journal": output / JOURNAL_DIRECTORY})
    if settings.journal is not None:
        check_folder(settings.journal, source="settings", field="journal")
    return settings


def read_config(options: PlanOptions) -> ConfigText:
    """The configuration that the flags name, checked. InputError where it is wrong."""
    if options.config is None and options.preset is None:
        return _of_plugins(options)
    from roadstead.config.presets import preset_text

    if options.preset is not None:
        text, source = preset_text(options.preset), f"preset {options.preset}"
    else:
        assert options.config is not None
        text, source = _text(options.config)
    return _checked(text, source, options)


def _of_plugins(options: PlanOptions) -> ConfigText:
    """No configuration is given: the user's plugins, if any, join the default ones."""
    if not options.plugin:
        return ConfigText()
    from roadstead.cli.plugin_choice import SOURCE_OF_FLAGS, choose_plugins

    return _checked(choose_plugins(options.plugin).as_config(), SOURCE_OF_FLAGS, options)


def _checked(text: str, source: str, options: PlanOptions) -> ConfigText:
    from roadstead.cli.config_notes import tell_config_notes
    from roadstead.cli.plugin_choice import choose_plugins, load_with

    chosen = choose_plugins(options.plugin, text)
    tell_config_notes(load_with(chosen, text, source))
    for name in chosen.unused_in(text):
        click.echo(f"Plugin {name} does nothing: {source} does not name it.", err=True)
    return ConfigText(text, source, chosen.paths, chosen.directory)


def _text(path: str) -> tuple[str, str]:
    content, source = config_bytes(path)
    try:
        return content.decode("utf-8-sig"), source
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", source=source) from error


def make_plan(
    options: PlanOptions, settings: Settings, config: ConfigText, cluster: ClusterFacts
) -> RunPlan:
    plan = RunPlan(
        settings,
        config.text,
        config.source,
        cluster,
        log_dir(options),
        config.plugins,
        config.plugin_dir,
        resume=options.resume,
        directory=working_directory(),
    )
    check_schedulers(plan)
    if plan.config_text:
        # Addresses and certificates of extenders.
        build_narrower(plan)
    # A plugin that cannot be built is reported before actors are started for it.
    profiles = build_profiles(plan, PodClasses()) if plan.plugins else {}
    if settings.workers and not any(map(answered_elsewhere, profiles.values())):
        click.echo(
            f"workers: {settings.workers} will be asked nothing: they ask plugins of yours that "
            "look at one node at a time, and there is none.",
            err=True,
        )
    return plan


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
    click.echo(f"workers: {chosen.workers}, since {chosen.why}", err=True)
    settings = plan.settings.model_copy(update={"workers": chosen.workers})
    return replace(plan, settings=settings)


def without_auto(concurrency: ConcurrencyOptions) -> None:
    """InputError where workers are to be chosen, and nodes and pods come only in the run."""
    if concurrency.chooses_workers:
        raise InputError("takes a number here: nodes and pods come in the run", source="--workers")


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
    digests = []
    if config.source:
        digest = hashlib.sha256(config.text.encode()).hexdigest()
        digests.append(InputDigest(config.source, digest))
    if options.settings is not None:
        digests.append(digest_of_file(options.settings))
    return tuple(digests)
