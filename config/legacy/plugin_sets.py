"""Plugin sets of a translated profile: every extension point is listed, multiPoint is off."""

from __future__ import annotations

from typing import Any

from roadstead.config.intree import EXTENSION_POINTS


class PluginSets:
    """Plugins per extension point, each once, in order of their addition."""

    def __init__(self) -> None:
        # By extension point: plugin → weight, None for 1.
        self._sets: dict[str, dict[str, int | None]] = {}

    def add(self, name: str, points: str, weight: int | None = None) -> None:
        """Enable a plugin at some points (separated by spaces); `weight` is used at `score`."""
        for point in points.split():
            assert point in EXTENSION_POINTS, point
            listed = self._sets.setdefault(point, {})
            listed.setdefault(name, weight if point == "score" else None)

    def has(self, name: str, point: str) -> bool:
        return name in self._sets.get(point, {})

    def names(self) -> set[str]:
        """Return every plugin that is enabled anywhere."""
        return {name for listed in self._sets.values() for name in listed}

    def document(self) -> dict[str, Any]:
        """Return the sets as `plugins` of a v1 profile."""
        sets = {
            point: {"enabled": [_plugin(name, weight) for name, weight in listed.items()]}
            for point, listed in self._sets.items()
        }
        return {"multiPoint": {"disabled": [{"name": "*"}]}, **sets}


def _plugin(name: str, weight: int | None) -> dict[str, Any]:
    return {"name": name} if weight is None else {"name": name, "weight": weight}
