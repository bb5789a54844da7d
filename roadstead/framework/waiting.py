"""Pods that wait for Permit, for plugins to read, and plugins' recorded decisions about them.

A plugin must not call the core (`roadstead.attempts`) that calls it. So it reads the waiting pods
of its process here, and records its decision: `allow` or `reject`. The core applies the decisions
at the end of the call in which they were recorded, including those recorded meanwhile, and returns
the effects of all.

Upstream: Handle.IterateOverWaitingPods, GetWaitingPod and RejectWaitingPod, and WaitingPod's Allow
and Reject (pkg/scheduler/framework/runtime/waiting_pods_map.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from roadstead.facts.pod import PodFacts, PodIdentity


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod that waits for Permit.

    plugins: sorted names of the plugins that it still waits for (upstream's GetPendingPlugins).
    """

    pod: PodIdentity
    facts: PodFacts
    node_name: str
    plugins: tuple[str, ...]


PodPredicate = Callable[[PodFacts], bool]
"""Whether a plugin's decision applies to a pod with these facts."""


@dataclass(frozen=True, slots=True)
class PermitDecision:
    """A plugin's decision about a pod. reason: of a refusal; None if the plugin allows the pod.

    chosen: in place of a UID, selects pods by facts, including those that have a node but have not
    reached Permit yet.
    """

    uid: str
    plugin: str
    reason: str | None = None
    chosen: PodPredicate | None = None


Find = Callable[[str], WaitingPod | None]
"""Returns the waiting pod of a UID."""
Each = Callable[[], Iterable[WaitingPod]]
"""Returns all waiting pods."""
BeforePermit = Callable[[], Iterable[PodFacts]]
"""Returns the facts of pods that have a node but have not reached Permit yet."""


class WaitingPods:
    """The waiting pods of one process; none until a core is connected by `connect`."""

    __slots__ = ("_before_permit", "_decisions", "_each", "_find")

    def __init__(self) -> None:
        self._find: Find = _find_none
        self._each: Each = tuple
        self._before_permit: BeforePermit = tuple
        self._decisions: list[PermitDecision] = []

    def connect(self, find: Find, each: Each, before_permit: BeforePermit = tuple) -> None:
        """Connect a core's functions: one waiting pod by UID, and all of them in order of arrival.

        before_permit: the facts of pods that have a node but have not reached Permit yet.
        """
        self._find, self._each, self._before_permit = find, each, before_permit

    def get(self, uid: str) -> WaitingPod | None:
        """Return a pod if it waits, else None."""
        return self._find(uid)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(self._each())

    def before_permit(self) -> Iterator[PodFacts]:
        """Iterate over the facts of pods that have a node but have not reached Permit yet."""
        return iter(self._before_permit())

    def allow(self, uid: str, plugin: str) -> None:
        """Record that `plugin` allows a pod; ignored if the pod does not wait for the plugin."""
        self._decisions.append(PermitDecision(uid, plugin))

    def reject(self, uid: str, plugin: str, reason: str) -> None:
        """Record that `plugin` refuses a pod; ignored if the pod does not wait."""
        self._decisions.append(PermitDecision(uid, plugin, reason))

    def reject_where(self, chosen: PodPredicate, plugin: str, reason: str) -> None:
        """Record that `plugin` refuses the chosen pods that wait or are on their way to Permit.

        They are chosen at the end of the current call, when all its decisions are known.
        """
        self._decisions.append(PermitDecision("", plugin, reason, chosen))

    def pop_decisions(self) -> list[PermitDecision]:
        """Remove and return the recorded decisions, in order."""
        decisions, self._decisions = self._decisions, []
        return decisions


def _find_none(uid: str) -> WaitingPod | None:
    return None
