"""Line numbers of the values in a YAML or JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def line_of(text: str, path: Sequence[str | int]) -> int:
    """Return the line of the key or list item at a path, or of the nearest value above it.

    The text must have passed `protocol.documents`, which bounds its depth. 0 for a text that is no
    YAML, as JSON with tabs.
    """
    node, line = _composed(text), 0
    for part in path:
        found = _below(node, part)
        if found is None:
            break
        line, node = found
    return line


@lru_cache(maxsize=4)
def _composed(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError:
        return None


def _below(node: yaml.Node | None, part: str | int) -> tuple[int, yaml.Node] | None:
    """Return the line and the node of a part of a mapping or list."""
    if isinstance(node, yaml.MappingNode) and isinstance(part, str):
        for key, value in node.value:
            if key.value == part:
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        item = node.value[part]
        return item.start_mark.line + 1, item
    return None
