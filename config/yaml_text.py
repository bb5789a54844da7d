"""Documents as YAML text that Go's YAML and `protocol.documents` read back unchanged."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Final

import yaml

# Texts that PyYAML does not quote, but that Go's YAML reads as numbers or booleans.
_NOT_A_STRING_IN_GO: Final = re.compile(r"[yYnN]|[-+.0-9][-+.0-9a-fA-FxXoO_]*")


class _GoDumper(yaml.SafeDumper):
    """Write YAML as Go does: a text that Go would read as another type is quoted."""

    def ignore_aliases(self, data: object) -> bool:
        """Never write aliases, because the document is read by people."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Write a text, with quotes if necessary."""
        style = '"' if _NOT_A_STRING_IN_GO.fullmatch(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_GoDumper.add_representer(str, _GoDumper.represent_text)


def yaml_text(document: Mapping[str, object], *, sort_keys: bool) -> str:
    """Return a document as YAML, without wrapped lines."""
    text: str = yaml.dump(
        dict(document),
        Dumper=_GoDumper,
        sort_keys=sort_keys,
        allow_unicode=True,
        width=sys.maxsize,
    )
    return text
