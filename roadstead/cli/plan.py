"""The plan of a run: settings, configuration, and what the cluster has beside nodes and pods."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

from roadstead.cli.options import STDIN, PlanOptions
from roadstead.config.settings import Settings, load_settings, load_settings_file
from roadstead.facts.cluster import ClusterFacts
from roadstead.protocol.errors import InputError
from roadstead.report.result import InputDigest, digest_of_file
from roadstead.run import RunPlan


@dataclass(frozen=True, slots=True)
class ConfigText:
    """A configuration as written, and what it is called; both empty for the default one."""

    text: str = ""
    source: str = ""


def read_settings(options: PlanOptions) -> Settings:
    """The settings file, if any, with flags over it. InputError where either is wrong."""
    if options.settings is None:
        return load_settings(overrides=options.overrides())
    return load_settings_file(options.settings, overrides=options.overrides())


def read_config(options: PlanOptions) -> ConfigText:
    """The configuration that the flags name, checked. InputError where it is wrong."""
    if options.config is None and options.preset is None:
        return ConfigText()
    from roadstead.config.load import load_config
    from roadstead.config.presets import preset_text

    if options.preset is not None:
        return ConfigText(preset_text(options.preset), f"preset {options.preset}")
    assert options.config is not None
    content, source = _content(options.config)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", source=source) from error
    load_config(text, source=source)
    return ConfigText(text, source)


def _content(path: str) -> tuple[bytes, str]:
    if path == STDIN:
        return sys.stdin.buffer.read(), "standard input"
    try:
        return Path(path).read_bytes(), path
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from error


def make_plan(
    options: PlanOptions, settings: Settings, config: ConfigText, cluster: ClusterFacts
) -> RunPlan:
    return RunPlan(settings, config.text, config.source, cluster, log_dir(options))


def log_dir(options: PlanOptions) -> str:
    """The folder of the logs, "" for none; actors may run in another working directory."""
    return str(options.log.resolve()) if options.log is not None else ""


def plan_digests(options: PlanOptions, config: ConfigText) -> tuple[InputDigest, ...]:
    """Digests of the configuration and the settings file, where they were given."""
    digests = []
    if config.source:
        digest = hashlib.sha256(config.text.encode()).hexdigest()
        digests.append(InputDigest(config.source, digest))
    if options.settings is not None:
        digests.append(digest_of_file(options.settings))
    return tuple(digests)
