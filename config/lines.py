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
    lines = _lines_of(text)
    node, line = lines.root, 0
    for part in path:
        found = lines.below(node, part)
        if found is None:
            break
        line, node = found
    return line


@lru_cache(maxsize=4)
def _lines_of(text: str) -> _LineIndex:
    try:
        return _LineIndex(yaml.compose(text, Loader=_Loader))
    except yaml.YAMLError:
        return _LineIndex(None)


class _LineIndex:
    """The nodes of a text. root: None for a text that is no YAML, or empty."""

    def __init__(self, root: yaml.Node | None) -> None:
        self.root = root
        # For each mapping that was asked for, since a large one may have an error at every key.
        self._keys: dict[yaml.Node, dict[object, tuple[int, yaml.Node]]] = {}

    def below(self, node: yaml.Node | None, part: str | int) -> tuple[int, yaml.Node] | None:
        """Return the line and the node of a part of a mapping or list."""
        if isinstance(node, yaml.MappingNode) and isinstance(part, str):
            if node not in self._keys:
                self._keys[node] = {
                    # Of a key that is twice, the first one.
                    key.value: (key.start_mark.line + 1, value)
                    for key, value in reversed(node.value)
                    if isinstance(key, yaml.ScalarNode)
                }
            return self._keys[node].get(part)
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            item = node.value[part]
            return item.start_mark.line + 1, item
        return None
