"""What must hold for a pod at its commit, by the profile that placed it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """filters: (scheduler name, names of its filter plugins)."""

    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()
