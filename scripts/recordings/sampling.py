"""Replaying a recorded sequence in which nodes are sampled, by one goroutine upstream.

A step records, beside the fields of every sequence, the order in which nodes were visited, the
first node, the number of evaluated nodes and the feasible ones. The kernel keeps no list of the
nodes that it visited: fields about single nodes are not compared for its decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.node_search import FilteredNodes, NodeSearch, OrderedNodes
from roadstead.framework.found_nodes import SearchResult
from roadstead.framework.profile import Profile
from roadstead.local.decision_paths import DecisionPath
from scripts.recordings.cases import Case
from scripts.recordings.result import Json, listed
from scripts.recordings.sequence import STEPS, Replay, step_of

PERCENTAGE = "percentageOfNodesToScore"
MAX_BEST = 20
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


@dataclass(frozen=True, slots=True)
class Search:
    """The node search of one pod. order: all nodes; visited: the feasible ones found.

    start, next_start: the index where this search began, and where the next one will.
    evaluated: how many nodes were visited, feasible or not.
    """

    order: tuple[str, ...]
    start: int
    next_start: int
    evaluated: int
    visited: tuple[str, ...]


class WatchedSearch(NodeSearch):
    """A NodeSearch that records the last search of each pod."""

    def __init__(self, shares: Mapping[str, int]) -> None:
        super().__init__(shares)
        self.samples: dict[str, Search] = {}

    def search(
        self, profile: Profile, pod: PodInCycle, order: OrderedNodes, found: FilteredNodes
    ) -> SearchResult:
        result = super().search(profile, pod, order, found)
        name_of = dict(zip(order.arrivals.tolist(), order.nodes, strict=True))
        evaluated = result.found_nodes.evaluated
        considered = len(order.nodes) if found.considered is None else len(found.considered)
        self.samples[pod.key] = Search(
            order=tuple(node.name for node in order.nodes),
            start=self.start,
            next_start=result.next_start,
            evaluated=considered if evaluated is None else len(evaluated),
            visited=tuple(name_of[each].name for each in result.found_nodes.remaining.tolist()),
        )
        return result


def watched_search(case: Case) -> WatchedSearch | None:
    """Return the node search of a recording that samples nodes; None if it does not."""
    share = case.document.get(PERCENTAGE)
    if share is None:
        return None
    assert isinstance(share, int)
    return WatchedSearch({each.scheduler_name: share for each in case.config.profiles})


class SampledReplay(Replay):
    """A sequence with sampling; after each batch, the start is set to the recorded one."""

    def __init__(self, case: Case, path: DecisionPath, node_search: WatchedSearch) -> None:
        super().__init__(case, path)
        self._node_search = node_search
        self._order: list[object] = []
        self._next_starts: dict[str, int] = {}

    def _decide(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        decisions = super()._decide(pods)
        self._next_starts = {decisions[-1].pod.key: self._node_search.start}
        return decisions

    def _step(self, at: int, decision: Decision) -> tuple[Json, Json]:
        recorded, key = self._steps[at], decision.pod.key
        self._order = listed(recorded.get("order", self._order))
        ours, theirs = step_of(decision, None), recorded | {"order": self._order}
        if decision.diagnosis is not None:
            del ours["bestSize"]
        search = self._node_search.samples.pop(key, None)
        if search is not None:
            if "best" in ours:
                ours["best"] = listed(ours["best"])[:MAX_BEST]
            return self._named(ours | _search_fields(search)), self._named(theirs)
        # The kernel searched: only the decisions and the start of the next search are known.
        if key in self._next_starts:
            ours["next"] = self._next_starts[key]
        del ours["best"]
        return ours, {name: value for name, value in theirs.items() if name in ours}

    def _compare(self, at: int, decision: Decision) -> bool:
        has_left = super()._compare(at, decision)
        ours = self.result.ours[STEPS][-1]
        return has_left or ours.get("next", self._steps[at]["next"]) != self._steps[at]["next"]

    def _schedule(self, at: int) -> int:
        decided_count = super()._schedule(at)
        self._node_search.samples.clear()
        if decided_count:
            start = self._steps[at + decided_count - 1]["next"]
            assert isinstance(start, int)
            self._node_search.start = start
        return decided_count


def _search_fields(search: Search) -> Json:
    """Return a search in the form of a recorded step."""
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
    """Return 64-bit FNV-1a over names, each followed by a newline, in hexadecimal."""
    value = _FNV_OFFSET
    for byte in "".join(f"{name}\n" for name in names).encode():
        value = (value ^ byte) * _FNV_PRIME % 2**64
    return f"{value:016x}"
