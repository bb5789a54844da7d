"""PlacedClasses: classes that were placed in a batch, and whether they affect another class.

The effect of a class (`Plugin.effect`) is a value that determines for which other pods a placement
changes results. Of pods with equal effects only one is compared: a thousand pods that differ in
their claims mostly have one effect.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice

from roadstead.framework.plugin import Effect
from roadstead.framework.profile import Profile, any_may_change
from roadstead.nodes.pod_class import PodClass


class _Effects:
    """Distinct effects of placed classes for one profile, in order (`distinct`).

    classes_read: number of placed classes whose effects it includes.
    """

    __slots__ = ("classes_read", "distinct")

    def __init__(self) -> None:
        self.distinct: dict[tuple[Effect, ...], None] = {}
        self.classes_read = 0


class PlacedClasses:
    """Placed classes in order of their first placement."""

    __slots__ = ("_classes", "_compared", "_effects")

    def __init__(self) -> None:
        self._classes: dict[PodClass, None] = {}
        self._effects: dict[Profile, _Effects] = {}
        # By signature: number of effects that were compared with the class and do not affect it.
        self._compared: dict[Hashable, int] = {}

    def __bool__(self) -> bool:
        return bool(self._classes)

    def add(self, classes: Iterable[PodClass]) -> None:
        """Record that pods of these classes were placed."""
        self._classes.update(dict.fromkeys(classes))

    def may_affect(self, signature: Hashable, pod: PodClass, profile: Profile) -> bool:
        """Whether a placement may have changed the answers of a class for other rows.

        Effects that were compared with the class and do not affect it are not compared again.
        """
        effects = self._effects_for(profile)
        known = self._compared.get(signature, 0)
        if known == len(effects):
            return False
        if any(any_may_change(each, pod) for each in islice(effects, known, None)):
            return True
        self._compared[signature] = len(effects)
        return False

    def _effects_for(self, profile: Profile) -> dict[tuple[Effect, ...], None]:
        effects = self._effects.setdefault(profile, _Effects())
        if effects.classes_read < len(self._classes):
            for each in islice(self._classes, effects.classes_read, None):
                effects.distinct.setdefault(profile.effects(each))
            effects.classes_read = len(self._classes)
        return effects.distinct
