"""A configuration as text: the document, its plugins by extension point, its translation notes."""

from __future__ import annotations

import json
from typing import Final

from roadstead.config.load import LoadedConfig
from roadstead.config.model import ProfileConfig
from roadstead.config.yaml_text import yaml_text

# In the order in which they run for one pod.
_EXTENSION_POINTS: Final = (
    *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind"),
)


def document_text(loaded: LoadedConfig, output_format: str) -> str:
    """Return the complete document, with every default."""
    if output_format == "json":
        return json.dumps(loaded.document, indent=2, ensure_ascii=False)
    return yaml_text(loaded.document, sort_keys=True).rstrip("\n")


def notes_text(loaded: LoadedConfig, output_format: str) -> str:
    """Return notes on how each part of an older document was translated."""
    if output_format == "json":
        notes = [note.document() for note in loaded.notes]
        return json.dumps(notes, indent=2, ensure_ascii=False)
    return "\n".join(map(str, loaded.notes))


def effective_text(loaded: LoadedConfig, output_format: str) -> str:
    """Return the plugins of each extension point."""
    if output_format == "json":
        return json.dumps(loaded.effective(), indent=2, ensure_ascii=False)
    return "\n\n".join(_table(profile) for profile in loaded.config.profiles)


def _table(profile: ProfileConfig) -> str:
    width = max(map(len, _EXTENSION_POINTS))
    lines = [f"profile {profile.scheduler_name}"]
    for point in _EXTENSION_POINTS:
        names = [
            f"{ref.name} (weight {ref.weight})" if point == "score" else ref.name
            for ref in profile.plugins[point]
        ] or ["-"]
        lines.append(f"  {point:<{width}}  {names[0]}")
        lines += [f"  {'':<{width}}  {name}" for name in names[1:]]
    return "\n".join(lines)
