"""Validity: how long a finding about a pod class can be reused.

A finding is a cached result of the class: PreFilter's outcome, or its evaluated and scored rows.

    finding ──► equal inputs? ──► was a pod added or removed that affects it? ──► reused
                    │ no                           │ yes
                    └──────────────────────────────┴──► computed again

Changed rows are not compared here: an evaluation filters and scores those again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from roadstead.framework.plugin import Plugin
from roadstead.framework.profile import Profile, any_may_change, effects_of
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable

Inputs = tuple[int, Hashable]
"""Version of the nodes' facts, and the plugins' own state of the pod (`Profile.state_version`)."""


def inputs_of(table: NodeTable, profile: Profile, pod: PodClass) -> Inputs:
    """Return the current inputs of a finding about a pod."""
    return table.node_version, profile.state_version(pod)


def lasting_inputs_of(table: NodeTable, profile: Profile, pod: PodClass) -> Inputs:
    """Return the inputs of a finding in which Filter is still called for each pod.

    The plugins' state that only these calls read is not among them (`FilterPlugin.runs_per_pod`).
    """
    return table.node_version, profile.prefilter_state_version(pod)


@dataclass(slots=True)
class Validity:
    """Inputs of one finding, and the pods that were compared with it.

    changes: the number of changes of pods (`Columns.changes`) that it takes into account.
    unaffected_by: keys of pods' effects (`Profile.effect_key`) that do not affect it.
    """

    inputs: Inputs
    changes: int
    unaffected_by: set[int] = field(default_factory=set)

    def holds(
        self, table: NodeTable, profile: Profile, plugins: Iterable[Plugin], pod: PodClass
    ) -> bool:
        """Whether no pod that affects the answers of `plugins` was added or removed since.

        The caller has compared the inputs.
        """
        columns, unaffected = table.columns, self.unaffected_by
        key_of = profile.effect_key
        # The latest change of each class, the newest first.
        for other, change in reversed(columns.class_changed.items()):
            if change <= self.changes:
                break
            # `is_changed_by` checks this, too; here it saves a call for each class.
            if key_of(other) in unaffected:
                continue
            if self.is_changed_by(other, profile, plugins, pod):
                return False
        self.changes = columns.changes
        return True

    def is_changed_by(
        self, other: PodClass, profile: Profile, plugins: Iterable[Plugin], pod: PodClass
    ) -> bool:
        """Whether pods of another class may change the answers for this class on other nodes."""
        key = profile.effect_key(other)
        if key in self.unaffected_by:
            return False
        if any_may_change(effects_of(plugins, other), pod):
            return True
        self.unaffected_by.add(key)
        return False
