"""HintMap: the events that plugins of all profiles registered, and the answers of their hints.

Upstream: buildQueueingHintMap of pkg/scheduler/scheduler.go, and buildEventMap and
isEventOfInterest of pkg/scheduler/backend/queue/scheduling_queue.go (1.34).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import group_key
from roadstead.framework.events import (
    NODE_ADD,
    ClusterEvent,
    Hint,
    HintError,
    ObjectChange,
    QueueingHint,
    RegisteredEvent,
)

if TYPE_CHECKING:
    from roadstead.framework.profile import Profile

Hints = tuple[Hint[object] | None, ...]
"""The hints of one plugin for one event; None for a registration without a hint."""

WITHOUT_NODES = "no nodes"
"""Stands for the plugin that rejected a pod if there were no nodes: adding a node may help."""


@dataclass(frozen=True, slots=True, eq=False)
class OccurredEvent:
    """An event that occurred, with the object that changed; compared by identity.

    spares_gangs: the event does not requeue pods of gangs.
    """

    event: ClusterEvent
    change: ObjectChange[object]
    spares_gangs: bool = False


class HintMap:
    """The registered events of all profiles by scheduler name; the queue calls their hints.

    cluster: facts that hints read besides the changed object. The owner replaces them when they
    change.
    """

    def __init__(self, profiles: Mapping[str, Profile], cluster: ClusterFacts) -> None:
        self.cluster = cluster
        without_nodes = {WITHOUT_NODES: (RegisteredEvent(NODE_ADD),)}
        # By scheduler name, then by plugin.
        self._registered = {
            name: profile.registered_events() | without_nodes for name, profile in profiles.items()
        }
        # Caches: by (scheduler name, plugin, event), by (plugin, event), and by event.
        self._hints: dict[tuple[str, str, ClusterEvent], Hints] = {}
        self._is_registered: dict[tuple[str, ClusterEvent], bool] = {}
        self._of_interest: dict[ClusterEvent, bool] = {}
        self._with_may_matter = tuple(
            (plugin, each)
            for by_plugin in self._registered.values()
            for plugin, registered in by_plugin.items()
            for each in registered
            if each.may_matter is not None
        )

    def may_help(self, plugin: str, occurred: OccurredEvent, pod: PodFacts) -> bool:
        """Whether the event may help the pod, according to a plugin that rejected it.

        Also true if a hint fails, and for a pod of no profile: a retry in vain is better than a pod
        that is stuck.
        """
        if occurred.spares_gangs and group_key(pod) is not None:
            return False
        if occurred.event.is_wildcard or pod.scheduler_name not in self._registered:
            return True
        hints = self._hints_for(pod.scheduler_name, plugin, occurred.event)
        return any(hint is None or self._hint_queues(hint, occurred.change, pod) for hint in hints)

    def is_registered(self, plugin: str, occurred: OccurredEvent) -> bool:
        """Whether a plugin registered the event, in any profile."""
        key = (plugin, occurred.event)
        known = self._is_registered.get(key)
        if known is None:
            scheduler_names = self._registered
            known = any(self._hints_for(name, plugin, occurred.event) for name in scheduler_names)
            self._is_registered[key] = known
        return known

    def may_matter(self, pod: PodFacts, assigned: PodFacts, rejected_by: Sequence[str]) -> bool:
        """Whether a pod on a node may matter to a pod that these plugins rejected.

        Plugins of all profiles are called, since upstream ignores profiles here. Also true if one
        of them fails.
        """
        return any(
            (each.whoever_rejected or plugin in rejected_by) and self._matters(each, pod, assigned)
            for plugin, each in self._with_may_matter
        )

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile registered the event."""
        known = self._of_interest.get(event)
        if known is None:
            known = self._of_interest[event] = event.is_wildcard or any(
                each.event.matches(event)
                for by_plugin in self._registered.values()
                for registered in by_plugin.values()
                for each in registered
            )
        return known

    def _hints_for(self, scheduler_name: str, plugin: str, event: ClusterEvent) -> Hints:
        """Return the hints of the registered events that match; () if none does."""
        key = (scheduler_name, plugin, event)
        known = self._hints.get(key)
        if known is None:
            by_plugin = self._registered[scheduler_name]
            registered: tuple[RegisteredEvent, ...] = by_plugin.get(plugin, ())
            known = tuple(each.hint for each in registered if each.event.matches(event))
            self._hints[key] = known
        return known

    def _matters(self, registered: RegisteredEvent, pod: PodFacts, assigned: PodFacts) -> bool:
        may_matter = registered.may_matter
        try:
            return may_matter is not None and may_matter(pod, assigned, self.cluster)
        except HintError:
            return True

    def _hint_queues(self, hint: Hint[object], change: ObjectChange[object], pod: PodFacts) -> bool:
        try:
            return hint(pod, change, self.cluster) is QueueingHint.QUEUE
        except HintError:
            return True
