"""Pods that wait for Permit, as plugins see them, and the mailbox for what they say of them.

A plugin must not call the core that calls it. So it looks here at the pods that wait in its
process, and leaves its word: `allow` or `reject`. The core heeds the words at the end of the call
in which they were left, those that follow from heeding included, and hands out the effects of all.

Upstream: Handle.IterateOverWaitingPods, GetWaitingPod and RejectWaitingPod, and WaitingPod's Allow
and Reject (pkg/scheduler/framework/runtime/waiting_pods_map.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from roadstead.facts.pod import PodFacts, PodIdentity


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """plugins: those that it still waits for (upstream's GetPendingPlugins), sorted."""

    pod: PodIdentity
    facts: PodFacts
    node_name: str
    plugins: tuple[str, ...]


Chosen = Callable[[PodFacts], bool]


@dataclass(frozen=True, slots=True)
class Word:
    """What a plugin says of a pod; reason: None lets it go, as far as this plugin is concerned.

    chosen: in place of a UID, all such pods, those included that have a node and come to Permit.
    """

    uid: str
    plugin: str
    reason: str | None = None
    chosen: Chosen | None = None


Find = Callable[[str], WaitingPod | None]
Each = Callable[[], Iterable[WaitingPod]]
Coming = Callable[[], Iterable[PodFacts]]


class WaitingPods:
    """Of one process. Without a core, which shows its pods, none wait and words are kept."""

    __slots__ = ("_coming", "_each", "_find", "_words")

    def __init__(self) -> None:
        self._find: Find = _find_none
        self._each: Each = tuple
        self._coming: Coming = tuple
        self._words: list[Word] = []

    def show(self, find: Find, each: Each, coming: Coming = tuple) -> None:
        """A core shows its waiting pods: by UID, and all in the order in which they came.

        coming: the facts of pods that have a node and come to Permit.
        """
        self._find, self._each, self._coming = find, each, coming

    def get(self, uid: str) -> WaitingPod | None:
        """A pod, if it waits."""
        return self._find(uid)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(self._each())

    def coming(self) -> Iterator[PodFacts]:
        """The facts of pods that have a node and come to Permit."""
        return iter(self._coming())

    def allow(self, uid: str, plugin: str) -> None:
        """`plugin` lets a pod go. Nothing comes of it for one that does not wait for the plugin."""
        self._words.append(Word(uid, plugin))

    def reject(self, uid: str, plugin: str, reason: str) -> None:
        """`plugin` refuses a pod. Nothing comes of it for one that does not wait."""
        self._words.append(Word(uid, plugin, reason))

    def reject_where(self, chosen: Chosen, plugin: str, reason: str) -> None:
        """`plugin` refuses all pods of such facts that wait, or have a node and come to Permit.

        They are chosen when all that the same call decided is known.
        """
        self._words.append(Word("", plugin, reason, chosen))

    def take(self) -> list[Word]:
        """What was said since the last call, in order."""
        words, self._words = self._words, []
        return words


def _find_none(uid: str) -> WaitingPod | None:
    return None
