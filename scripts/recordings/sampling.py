"""Replaying a recorded sequence in which nodes are sampled, by one goroutine upstream.

Besides what every sequence holds, a step says in which order nodes were visited, from which on, how
many were evaluated, and which of them were feasible. Where the kernel decides, it keeps no list of
the nodes that it visited: what is told of them one by one is left out there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.narrowing import Found, Narrower, Roster
from roadstead.framework.narrowed import Narrowing
from roadstead.framework.profile import Profile
from roadstead.local.paths import DecisionPath
from scripts.recordings.cases import Case
from scripts.recordings.result import Json, listed
from scripts.recordings.sequence import STEPS, Replay, step_of

PERCENTAGE = "percentageOfNodesToScore"
MAX_BEST = 20
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


@dataclass(frozen=True, slots=True)
class Search:
    """How the nodes of one pod were searched. order: all nodes; visited: the feasible ones found.

    start, next_start: where this search began, and where the next one does.
    evaluated: how many nodes were visited, feasible or not.
    """

    order: tuple[str, ...]
    start: int
    next_start: int
    evaluated: int
    visited: tuple[str, ...]


class WatchedNarrower(Narrower):
    """A narrower that remembers the last search of each pod."""

    def __init__(self, shares: Mapping[str, int]) -> None:
        super().__init__(shares)
        self.searches: dict[str, Search] = {}

    def narrow(self, profile: Profile, pod: PodInCycle, roster: Roster, found: Found) -> Narrowing:
        narrowing = super().narrow(profile, pod, roster, found)
        name_of = dict(zip(roster.arrivals.tolist(), roster.nodes, strict=True))
        seen = narrowing.narrowed.seen
        considered = len(roster.nodes) if found.considered is None else len(found.considered)
        self.searches[pod.key] = Search(
            order=tuple(node.name for node in roster.nodes),
            start=self.start,
            next_start=narrowing.next_start,
            evaluated=considered if seen is None else len(seen),
            visited=tuple(name_of[each].name for each in narrowing.narrowed.stays.tolist()),
        )
        return narrowing


def watched_narrower(case: Case) -> WatchedNarrower | None:
    """What samples the nodes of a recording; None where all are scored."""
    share = case.document.get(PERCENTAGE)
    if share is None:
        return None
    assert isinstance(share, int)
    return WatchedNarrower({each.scheduler_name: share for each in case.config.profiles})


class SampledReplay(Replay):
    """A sequence of searches; after a mismatch the next one starts where the recording's does."""

    def __init__(self, case: Case, path: DecisionPath, narrower: WatchedNarrower) -> None:
        super().__init__(case, path)
        self._narrower = narrower
        self._order: list[object] = []
        self._next_starts: dict[str, int] = {}

    def _decide(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        decisions = super()._decide(pods)
        self._next_starts = {decisions[-1].pod.key: self._narrower.start}
        return decisions

    def _step(self, at: int, decision: Decision) -> tuple[Json, Json]:
        recorded, key = self._steps[at], decision.pod.key
        self._order = listed(recorded.get("order", self._order))
        ours, theirs = step_of(decision, None), recorded | {"order": self._order}
        if decision.diagnosis is not None:
            del ours["bestSize"]
        search = self._narrower.searches.pop(key, None)
        if search is not None:
            if "best" in ours:
                ours["best"] = listed(ours["best"])[:MAX_BEST]
            return self._named(ours | _search_fields(search)), self._named(theirs)
        # The kernel searched: of a batch the end is known, and of each pod what is in its decision.
        if key in self._next_starts:
            ours["next"] = self._next_starts[key]
        del ours["best"]
        return ours, {name: value for name, value in theirs.items() if name in ours}

    def _compare(self, at: int, decision: Decision) -> bool:
        has_left = super()._compare(at, decision)
        ours = self.result.ours[STEPS][-1]
        return has_left or ours.get("next", self._steps[at]["next"]) != self._steps[at]["next"]

    def _schedule(self, at: int) -> int:
        settled = super()._schedule(at)
        self._narrower.searches.clear()
        if settled:
            start = self._steps[at + settled - 1]["next"]
            assert isinstance(start, int)
            self._narrower.start = start
        return settled


def _search_fields(search: Search) -> Json:
    """A search in the form of a recorded step."""
    fields: Json = {
        "order": list(search.order),
        "start": search.start,
        "next": search.next_start,
        "evaluated": search.evaluated,
    }
    if search.visited:
        fields |= {"first": search.visited[0], "last": search.visited[-1]}
        fields["digest"] = digest_of(search.visited)
    return fields


def digest_of(names: Sequence[str]) -> str:
    """64-bit FNV-1a over names, each followed by a newline, in hexadecimal."""
    value = _FNV_OFFSET
    for byte in "".join(f"{name}\n" for name in names).encode():
        value = (value ^ byte) * _FNV_PRIME % 2**64
    return f"{value:016x}"
