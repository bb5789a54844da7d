"""The plan of a run: settings, configuration, and cluster objects other than nodes and pods."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from roadstead.api.config_source import Document, config_bytes, config_notes
from roadstead.api.gate_notes import gate_notes
from roadstead.config.settings import Settings
from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.worker_results import worker_calls
from roadstead.isolation import working_directory
from roadstead.nodes.pod_class import PodClasses
from roadstead.protocol.errors import InputError
from roadstead.report.paths import check_folder
from roadstead.report.result import InputDigest
from roadstead.run import RunPlan, build_node_search, build_profiles, check_schedulers

OnNote: TypeAlias = Callable[[str], None]
"""Called with each note on an input that is accepted."""


@dataclass(frozen=True, slots=True)
class ConfigText:
    """The text of a configuration and its name; both are empty for the default one.

    plugins, plugin_dir: the user's plugins that the text may name, as in `RunPlan`.
    """

    text: str = ""
    source: str = ""
    plugins: tuple[str, ...] = ()
    plugin_dir: str = ""

    def digests(self) -> tuple[InputDigest, ...]:
        """The digest of the text; none for the default configuration."""
        if not self.source:
            return ()
        return (InputDigest(self.source, hashlib.sha256(self.text.encode()).hexdigest()),)


def read_config(
    config: Document | None, preset: str | None, plugins: tuple[str, ...], note: OnNote
) -> ConfigText:
    """Read and check a configuration. Raises InputError.

    At most one of `config` and `preset` is given. Without either, the result is the default
    configuration with the plugins added.
    """
    if config is None and preset is None:
        return _default_with_plugins(plugins, note)
    from roadstead.config.presets import preset_text

    if preset is not None:
        text, source = preset_text(preset), f"preset {preset}"
    else:
        assert config is not None
        text, source = _text_and_source(config)
    return _check_config(text, source, plugins, note)


def _default_with_plugins(plugins: tuple[str, ...], note: OnNote) -> ConfigText:
    if not plugins:
        return ConfigText()
    from roadstead.api.plugin_choice import PLUGIN_OPTION, choose_plugins

    return _check_config(choose_plugins(plugins).as_config(), PLUGIN_OPTION, plugins, note)


def _check_config(text: str, source: str, plugins: tuple[str, ...], note: OnNote) -> ConfigText:
    """Check a configuration; return it with the plugins that it may name. InputError if wrong."""
    from roadstead.api.plugin_choice import choose_plugins, load_with

    chosen = choose_plugins(plugins, text)
    for each in config_notes(load_with(chosen, text, source)):
        note(each)
    for name in chosen.unused_in(text):
        note(f"Plugin {name} is not used: {source} does not name it.")
    return ConfigText(text, source, chosen.paths, chosen.directory)


def _text_and_source(config: Document) -> tuple[str, str]:
    content, source = config_bytes(config)
    try:
        return content.decode("utf-8-sig"), source
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", source=source) from error


def check_journal(settings: Settings) -> None:
    """Check the folders of the journal and its copy. InputError if they cannot be used."""
    if settings.journal is not None:
        check_folder(settings.journal, source="settings", field="journal")
    elif settings.journal_copy is not None:
        raise InputError(
            "needs a journal to copy: set journal (--journal DIR), too",
            source="settings",
            field="journal_copy",
            value=f'"{settings.journal_copy}"',
        )


def make_plan(
    settings: Settings,
    config: ConfigText,
    cluster: ClusterFacts,
    note: OnNote,
    *,
    log_dir: str = "",
    resume: bool = False,
) -> RunPlan:
    """Make the plan of a run, and check what can be checked before it. Raises InputError."""
    plan = RunPlan(
        settings,
        config_text=config.text,
        config_source=config.source,
        cluster=cluster,
        log_dir=log_dir,
        plugins=config.plugins,
        plugin_dir=config.plugin_dir,
        resume=resume,
        directory=working_directory(),
    )
    check_schedulers(plan)
    if plan.config_text:
        # Checks addresses and certificates of extenders.
        build_node_search(plan)
    # A plugin that cannot be built is reported before actors are started for it.
    profiles = build_profiles(plan, PodClasses()) if plan.plugins else {}
    if plan.plugins:
        from roadstead.framework.user_plugins import digests_of

        # Each process compares the code that it imports with these.
        plan = replace(plan, plugin_digests=digests_of(plan.plugins))
    # Workers run only plugins whose results for a node depend on that node alone.
    if settings.workers and not any(map(worker_calls, profiles.values())):
        note(
            "workers: no plugin of this run answers node by node. The workers "
            f"({settings.workers}) can only list the best nodes of a cluster of 20,000 nodes or "
            "more."
        )
    for text in gate_notes(cluster.devices, plan.gates()):
        note(text)
    return plan
