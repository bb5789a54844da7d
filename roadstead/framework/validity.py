"""Validity: until when what was found of a class of pods holds.

    found ──► the same inputs? ──► did a pod come or go that may change it? ──► holds
                    │ no                          │ yes
                    └─────────────────────────────┴──► it is found anew

Rows that changed are another matter: an evaluation looks at those again by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from roadstead.framework.plugin import Plugin
from roadstead.framework.profile import Profile, concern, effects_of
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import NodeTable

Inputs = tuple[int, Hashable]
"""The version of the nodes' own facts, and what plugins know of the pod beside the table."""


def inputs_of(table: NodeTable, profile: Profile, pod: PodInfo) -> Inputs:
    """What a finding depends on besides pods, as it stands now."""
    return table.node_version, profile.known_state(pod)


@dataclass(slots=True)
class Validity:
    """Of one finding. changes: pods that came and went before it (`Columns.changes`).

    harmless: kinds or classes (`Profile.kind_or_class`) of pods that cannot change it.
    """

    inputs: Inputs
    changes: int
    harmless: set[int] = field(default_factory=set)

    def holds(
        self, table: NodeTable, profile: Profile, plugins: Iterable[Plugin], pod: PodInfo
    ) -> bool:
        """Whether no pod came or went since that concerns `plugins`; asked with equal inputs."""
        columns = table.columns
        for other, number in reversed(columns.class_changed.items()):
            if number <= self.changes:
                break
            if self.is_changed_by(other, profile, plugins, pod):
                return False
        self.changes = columns.changes
        return True

    def is_changed_by(
        self, other: PodInfo, profile: Profile, plugins: Iterable[Plugin], pod: PodInfo
    ) -> bool:
        """Whether pods of another class may change what plugins say of this one on other rows."""
        key = profile.kind_or_class(other)
        if key in self.harmless:
            return False
        if concern(effects_of(plugins, other), pod):
            return True
        self.harmless.add(key)
        return False
