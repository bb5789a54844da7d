"""Reading a configuration from a file, standard input, a mapping, a preset or plugins."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from roadstead.protocol.errors import InputError

if TYPE_CHECKING:
    from roadstead.config.load import LoadedConfig

STDIN: Final = "-"

Document: TypeAlias = "str | os.PathLike[str] | Mapping[str, object]"
"""A path, or the content of such a file as a mapping."""


def config_bytes(config: Document) -> tuple[bytes, str]:
    """Return (content, name for errors) of a file, standard input or mapping. Raises InputError."""
    if isinstance(config, Mapping):
        return document_text(config, "config").encode(), "config"
    from roadstead.config.files import MAX_TEXT_BYTES, read_bytes

    if config == STDIN:
        # One byte more than is accepted, so that the reader refuses a longer text.
        return sys.stdin.buffer.read(MAX_TEXT_BYTES + 1), "standard input"
    path = os.fspath(config)
    return read_bytes(path, MAX_TEXT_BYTES), path


def document_text(document: Mapping[str, object], source: str) -> str:
    """Return a mapping as JSON, which is also YAML. Raises InputError for other values."""
    try:
        return json.dumps(document, default=_path_text)
    except (TypeError, ValueError) as error:
        raise InputError(f"is no JSON document: {error}", source=source) from error


def _path_text(value: object) -> str:
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise TypeError(f"{type(value).__name__} is not a type of JSON")


def load_effective(
    config: Document | None, preset: str | None, plugins: tuple[str, ...]
) -> LoadedConfig:
    """Load the configuration of a file or preset, or the default one with plugins.

    Raises ConfigError.
    """
    # Imported here: the schema and YAML take a third of a second to import.
    from roadstead.api.plugin_choice import PLUGIN_OPTION, choose_plugins, load_with
    from roadstead.config.presets import preset_text

    if config is not None:
        content, source = config_bytes(config)
    elif preset is None and plugins:
        content, source = choose_plugins(plugins).as_config().encode(), PLUGIN_OPTION
    else:
        preset = preset or "default"
        content, source = preset_text(preset).encode(), f"preset {preset}"
    chosen = choose_plugins(plugins, content.decode(errors="replace"))
    return load_with(chosen, content, source)


def config_notes(loaded: LoadedConfig) -> list[str]:
    """Return a note for each part of an older document (Policy, v1beta3, …) that was translated."""
    return [f"{loaded.source}: {note}" for note in loaded.notes]
