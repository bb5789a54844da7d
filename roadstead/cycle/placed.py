"""Placed: the classes placed in the course of a batch, and whether that matters to another one.

Pods of one effect (`Plugin.effect`) affect the same others, so that one of them is asked about: a
thousand pods that differ in their claims are mostly one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice

from roadstead.framework.profile import Profile
from roadstead.nodes.pod_info import PodInfo


class _Effects:
    """One for each effect that placed classes have as a profile sees it, in order."""

    __slots__ = ("first", "of_placed")

    def __init__(self) -> None:
        self.first: dict[Hashable, PodInfo] = {}
        self.of_placed = 0


class Placed:
    """Classes in the order in which they were placed first."""

    __slots__ = ("_asked_about", "_classes", "_effects")

    def __init__(self) -> None:
        self._classes: dict[PodInfo, None] = {}
        self._effects: dict[Profile, _Effects] = {}
        self._asked_about: dict[Hashable, int] = {}

    def __bool__(self) -> bool:
        return bool(self._classes)

    def add(self, classes: Iterable[PodInfo]) -> None:
        """Pods of these classes were placed."""
        self._classes.update(dict.fromkeys(classes))

    def matters_to(self, signature: Hashable, pod: PodInfo, profile: Profile) -> bool:
        """Whether a placement may have changed more for a class than its own row.

        What was found not to matter is not asked about again.
        """
        effects = self._seen_by(profile)
        known = self._asked_about.get(signature, 0)
        if known == len(effects):
            return False
        if any(
            profile.may_be_changed_by(pod, each) for each in islice(effects.values(), known, None)
        ):
            return True
        self._asked_about[signature] = len(effects)
        return False

    def _seen_by(self, profile: Profile) -> dict[Hashable, PodInfo]:
        effects = self._effects.setdefault(profile, _Effects())
        if effects.of_placed < len(self._classes):
            for each in islice(self._classes, effects.of_placed, None):
                effects.first.setdefault(profile.effect(each), each)
            effects.of_placed = len(self._classes)
        return effects.first
