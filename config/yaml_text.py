"""Documents as YAML text that Go's YAML and `protocol.documents` read back unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

_WIDTH_MAX: Final = 2**31 - 1
"""The longest line that libyaml takes."""

# Python's emitter takes three times as long, for results of many thousands of pods.
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# Texts that PyYAML does not quote, but that Go's YAML reads as numbers or booleans.
_NOT_A_STRING_IN_GO: Final = re.compile(r"[yYnN]|[-+.0-9][-+.0-9a-fA-FxXoO_]*")


class _GoDumper(_Dumper):  # type: ignore[misc]
    """Write YAML as Go does: a text that Go would read as another type is quoted."""

    def ignore_aliases(self, data: object) -> bool:
        """Never write aliases, because the document is read by people."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Write a text, with quotes if necessary."""
        style = '"' if _NOT_A_STRING_IN_GO.fullmatch(text) else None
        node: yaml.ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", text, style=style)
        return node


_GoDumper.add_representer(str, _GoDumper.represent_text)


def yaml_text(document: Mapping[str, object], *, sort_keys: bool) -> str:
    """Return a document as YAML, without wrapped lines."""
    text: str = yaml.dump(
        dict(document),
        Dumper=_GoDumper,
        sort_keys=sort_keys,
        allow_unicode=True,
        width=_WIDTH_MAX,
    )
    return text
