"""Load a KubeSchedulerConfiguration: decode, default, validate, build.

The stages, their order and what each refuses follow kube-scheduler 1.34
(cmd/kube-scheduler/app/options/configfile.go, pkg/scheduler/scheduler.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from roadstead.config.build import apply_extenders, build, points_table
from roadstead.config.coscheduling import V1CoschedulingArgs
from roadstead.config.decode import decode, decode_document
from roadstead.config.defaults import set_defaults
from roadstead.config.errors import ConfigError
from roadstead.config.go_struct import to_document, with_sorted_keys
from roadstead.config.legacy.notes import TranslationNote
from roadstead.config.legacy.plugins import REMOVED_ARGS_MODELS
from roadstead.config.legacy.read import read_older
from roadstead.config.model import SchedulerConfig
from roadstead.config.reader import read_document
from roadstead.config.schema_args import ARGS_MODELS, Args
from roadstead.config.validation import validate

# Plugin → model of its arguments, with the plugins that only Roadstead has.
_ALL_ARGS_MODELS: Final[Mapping[str, type[Args]]] = MappingProxyType(
    {**ARGS_MODELS, **REMOVED_ARGS_MODELS, "Coscheduling": V1CoschedulingArgs}
)
NO_EXTRA_PLUGINS: Final[Mapping[str, Iterable[str]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration that passed every stage.

    `document` is the document with all defaults, as `kube-scheduler --write-config-to` would print
    it (plain values, keys sorted); `config` is its form for schedulers. `notes`: how each part of
    an older document was translated.
    """

    config: SchedulerConfig
    document: Mapping[str, Any]
    source: str
    notes: tuple[TranslationNote, ...] = ()

    def effective(self) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """Return profile → extension point → plugins in execution order; weights at `score`."""
        return {
            profile.scheduler_name: {
                point: [
                    {"name": ref.name} | ({"weight": ref.weight} if point == "score" else {})
                    for ref in profile.plugins[point]
                ]
                for point in sorted(profile.plugins)
            }
            for profile in self.config.profiles
        }


def load_config(
    text: str | bytes,
    *,
    source: str,
    extra_plugins: Mapping[str, Iterable[str]] = NO_EXTRA_PLUGINS,
    as_upstream: bool = False,
) -> LoadedConfig:
    """Load a configuration from YAML or JSON text, an older one (`config.legacy`) included.

    `extra_plugins`: user plugin → the extension points it implements. `as_upstream`: refuse what
    kube-scheduler 1.34 refuses, including older documents and Roadstead's own plugins. Raises
    ConfigError (an InputError) whose `stage` is decode, validate or build, with every problem
    found there; ValueError if an extra plugin has an in-tree name or an unknown extension point.
    """
    points_of = points_table(extra_plugins, as_upstream=as_upstream)
    notes: tuple[TranslationNote, ...] = ()
    if as_upstream:
        decoded = decode(text, source=source)
    else:
        document, notes = read_older(read_document(text, source=source), source=source)
        decoded = decode_document(document, source=source, args_models=_ALL_ARGS_MODELS)
    config = set_defaults(decoded)
    problems = validate(config)
    if problems:
        raise ConfigError("validate", problems, source=source)
    config = apply_extenders(config, source=source)
    is_set = decoded.percentage_of_nodes_to_score is not None
    built = replace(build(config, points_of, source=source), percentage_is_set=is_set)
    return LoadedConfig(built, with_sorted_keys(to_document(config)), source, notes)
