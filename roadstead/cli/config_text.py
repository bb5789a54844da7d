"""A configuration as text: the document, which plugins run where, what became of older parts."""

from __future__ import annotations

import json
import re
import sys
from typing import Final

import yaml

from roadstead.config.load import LoadedConfig
from roadstead.config.model import ProfileConfig

# The order in which a pod meets them.
_POINTS_OF_A_CYCLE: Final = (
    *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind"),
)

# Beyond what PyYAML quotes by itself: words and numbers of Go's YAML that PyYAML takes for texts.
_READ_OTHERWISE: Final = re.compile(r"[yYnN]|[-+.0-9][-+.0-9a-fA-FxXoO_]*")


class _GoDumper(yaml.SafeDumper):
    """YAML as Go prints it: a text that Go would read as anything else stands in double quotes."""

    def ignore_aliases(self, data: object) -> bool:
        """Never an alias: the document is for people."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """A text, quoted where it has to be."""
        style = '"' if _READ_OTHERWISE.fullmatch(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_GoDumper.add_representer(str, _GoDumper.represent_text)


def document_text(loaded: LoadedConfig, output_format: str) -> str:
    """The whole document, every default filled in."""
    if output_format == "json":
        return json.dumps(loaded.document, indent=2, ensure_ascii=False)
    text: str = yaml.dump(
        dict(loaded.document),
        Dumper=_GoDumper,
        sort_keys=True,
        allow_unicode=True,
        width=sys.maxsize,
    )
    return text.rstrip("\n")


def notes_text(loaded: LoadedConfig, output_format: str) -> str:
    """What became of each part of an older document."""
    if output_format == "json":
        notes = [note.document() for note in loaded.notes]
        return json.dumps(notes, indent=2, ensure_ascii=False)
    return "\n".join(map(str, loaded.notes))


def effective_text(loaded: LoadedConfig, output_format: str) -> str:
    """Which plugins run at which extension point."""
    if output_format == "json":
        return json.dumps(loaded.effective(), indent=2, ensure_ascii=False)
    return "\n\n".join(_table(profile) for profile in loaded.config.profiles)


def _table(profile: ProfileConfig) -> str:
    width = max(map(len, _POINTS_OF_A_CYCLE))
    lines = [f"profile {profile.scheduler_name}"]
    for point in _POINTS_OF_A_CYCLE:
        names = [
            f"{ref.name} (weight {ref.weight})" if point == "score" else ref.name
            for ref in profile.plugins[point]
        ] or ["-"]
        lines.append(f"  {point:<{width}}  {names[0]}")
        lines += [f"  {'':<{width}}  {name}" for name in names[1:]]
    return "\n".join(lines)
