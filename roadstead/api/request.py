"""The configuration and the settings that a call of the Python API passes for a run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from roadstead.api.config_source import Document, document_text
from roadstead.api.plan import OnNote, check_journal, make_plan, read_config
from roadstead.config.settings import Settings, load_settings, load_settings_file
from roadstead.facts.cluster import ClusterFacts
from roadstead.protocol.errors import InputError
from roadstead.report.result import InputDigest, digest_of_file
from roadstead.run import RunPlan

if TYPE_CHECKING:
    from roadstead.api.moment import RunMoment

Runtime = Literal["inline", "ray"]
ARGUMENTS = "arguments"
"""Source of an error about an argument of the Python API."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The common arguments of the methods of `Cluster`, as they describe them.

    moment: of a simulated run; its configuration and settings are used where none are given.
    """

    config: Document | None
    preset: str | None
    plugin: tuple[str, ...]
    settings: Document | None
    seed: int | None
    runtime: Runtime | None
    moment: RunMoment | None = None

    def plan(self, cluster: ClusterFacts, note: OnNote) -> tuple[RunPlan, tuple[InputDigest, ...]]:
        """Return the plan, and the digests of configuration and settings. Raises InputError."""
        check_not_both(self.config, self.preset)
        settings, digests = self._settings()
        if self.moment is not None and self.config is None and self.preset is None:
            if self.plugin:
                rule = "needs a config or preset: the configuration of the run has its own plugins"
                raise InputError(rule, source=ARGUMENTS, field="plugin")
            config = self.moment.config
        else:
            config = read_config(self.config, self.preset, self.plugin, note)
        return make_plan(settings, config, cluster, note), (*config.digests(), *digests)

    def _settings(self) -> tuple[Settings, tuple[InputDigest, ...]]:
        arguments: dict[str, object] = {"seed": self.seed, "runtime": self.runtime}
        digests: tuple[InputDigest, ...] = ()
        if self.settings is None and self.moment is not None:
            overrides = {name: value for name, value in arguments.items() if value is not None}
            settings = self.moment.settings.model_copy(update=overrides)
        elif self.settings is None:
            settings = load_settings(overrides=arguments, overrides_source=ARGUMENTS)
        elif isinstance(self.settings, Mapping):
            text = document_text(self.settings, "settings")
            digests = (InputDigest("settings", hashlib.sha256(text.encode()).hexdigest()),)
            settings = load_settings(
                text, source="settings", overrides=arguments, overrides_source=ARGUMENTS
            )
        else:
            path = Path(os.fspath(self.settings))
            settings = load_settings_file(path, overrides=arguments, overrides_source=ARGUMENTS)
            digests = (digest_of_file(path),)
        check_journal(settings)
        if "runtime" not in settings.model_fields_set:
            # The command line defaults to Ray; here, processes are only started on request.
            settings = settings.model_copy(update={"runtime": "inline"})
        return settings, digests


def check_not_both(config: Document | None, preset: str | None) -> None:
    """Raise InputError if both are given."""
    if config is not None and preset is not None:
        raise InputError("exclude each other", source=ARGUMENTS, field="config and preset")
