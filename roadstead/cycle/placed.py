"""Placed: the classes placed in the course of a batch, and whether that matters to another one.

Pods of equal effects (`Plugin.effect`) affect the same others, so that one of them is asked about:
a thousand pods that differ in their claims are mostly one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice

from roadstead.framework.plugin import Effect
from roadstead.framework.profile import Profile, concern
from roadstead.nodes.pod_class import PodClass


class _Effects:
    """The effects that placed classes have as a profile sees them, in order."""

    __slots__ = ("found", "of_placed")

    def __init__(self) -> None:
        self.found: dict[tuple[Effect, ...], None] = {}
        self.of_placed = 0


class Placed:
    """Classes in the order in which they were placed first."""

    __slots__ = ("_asked_about", "_classes", "_effects")

    def __init__(self) -> None:
        self._classes: dict[PodClass, None] = {}
        self._effects: dict[Profile, _Effects] = {}
        self._asked_about: dict[Hashable, int] = {}

    def __bool__(self) -> bool:
        return bool(self._classes)

    def add(self, classes: Iterable[PodClass]) -> None:
        """Pods of these classes were placed."""
        self._classes.update(dict.fromkeys(classes))

    def matters_to(self, signature: Hashable, pod: PodClass, profile: Profile) -> bool:
        """Whether a placement may have changed more for a class than its own row.

        What was found not to matter is not asked about again.
        """
        effects = self._seen_by(profile)
        known = self._asked_about.get(signature, 0)
        if known == len(effects):
            return False
        if any(concern(each, pod) for each in islice(effects, known, None)):
            return True
        self._asked_about[signature] = len(effects)
        return False

    def _seen_by(self, profile: Profile) -> dict[tuple[Effect, ...], None]:
        effects = self._effects.setdefault(profile, _Effects())
        if effects.of_placed < len(self._classes):
            for each in islice(self._classes, effects.of_placed, None):
                effects.found.setdefault(profile.effects(each))
            effects.of_placed = len(self._classes)
        return effects.found
