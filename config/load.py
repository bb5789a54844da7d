"""Load a KubeSchedulerConfiguration: decode, default, validate, build.

The stages, their order and what each refuses follow kube-scheduler 1.34
(cmd/kube-scheduler/app/options/configfile.go, pkg/scheduler/scheduler.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from roadstead.config.build import build, complete, points_table
from roadstead.config.decode import decode
from roadstead.config.defaults import set_defaults
from roadstead.config.errors import ConfigError
from roadstead.config.model import SchedulerConfig
from roadstead.config.validation import validate
from roadstead.config.wire import sorted_keys, to_document
from roadstead.protocol.errors import InputError

NO_EXTRA_PLUGINS: Final[Mapping[str, Iterable[str]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration that passed every stage.

    `document` is the defaulted document as `kube-scheduler --write-config-to` would print it
    (plain values, keys sorted); `config` is what the core reads.
    """

    config: SchedulerConfig
    document: Mapping[str, Any]
    source: str

    def effective(self) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """Profile → extension point → plugins in execution order, with weights at `score`."""
        return effective_plugins(self.config)


def load_config(
    text: str | bytes,
    *,
    source: str,
    extra_plugins: Mapping[str, Iterable[str]] = NO_EXTRA_PLUGINS,
) -> LoadedConfig:
    """Load a configuration from YAML or JSON text.

    `extra_plugins`: user plugin → the extension points it implements. Raises ConfigError (an
    InputError) whose `stage` is decode, validate or build, with every problem found there;
    ValueError if an extra plugin bears an in-tree name or an unknown extension point.
    """
    points_of = points_table(extra_plugins)
    config = set_defaults(decode(text, source=source))
    problems = validate(config)
    if problems:
        raise ConfigError("validate", problems, source=source)
    config = complete(config, source=source)
    built = build(config, points_of, source=source)
    return LoadedConfig(built, sorted_keys(to_document(config)), source)


def load_config_file(
    path: str | Path, *, extra_plugins: Mapping[str, Iterable[str]] = NO_EXTRA_PLUGINS
) -> LoadedConfig:
    """`load_config` of a file; raises InputError if it cannot be read."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"cannot be read: {reason}", source=str(path)) from None
    return load_config(content, source=str(path), extra_plugins=extra_plugins)


def effective_plugins(config: SchedulerConfig) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Profile → extension point → plugins in execution order, with weights at `score`."""
    return {
        profile.scheduler_name: {
            point: [
                {"name": ref.name, "weight": ref.weight} if point == "score" else {"name": ref.name}
                for ref in profile.plugins[point]
            ]
            for point in sorted(profile.plugins)
        }
        for profile in config.profiles
    }
