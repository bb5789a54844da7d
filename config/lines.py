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
    for key in path:
        child = lines.child(node, key)
        if child is None:
            break
        line, node = child
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
        # Per mapping, on its first use: line and value of each key. Built once, because a large
        # mapping may have an error at every key.
        self._keys: dict[yaml.Node, dict[object, tuple[int, yaml.Node]]] = {}

    def child(self, node: yaml.Node | None, key: str | int) -> tuple[int, yaml.Node] | None:
        """Return line and node of a key of a mapping or an index of a list; None if it has none."""
        if isinstance(node, yaml.MappingNode) and isinstance(key, str):
            if node not in self._keys:
                self._keys[node] = {
                    # Of a key that is twice, the first one.
                    key_node.value: (key_node.start_mark.line + 1, value)
                    for key_node, value in reversed(node.value)
                    if isinstance(key_node, yaml.ScalarNode)
                }
            return self._keys[node].get(key)
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            item = node.value[key]
            return item.start_mark.line + 1, item
        return None
