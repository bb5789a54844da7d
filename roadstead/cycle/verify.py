"""Verifier: all hard filters of one pod for one node, on the binder's own table.

    verify ──► something is known of the class ──► a quick yes ──► Success
                        │ no                            │ no
                        └───────────────────────────────┴──► PreFilter, Filter over the one row

What a scheduler decided on may be old; what is committed is checked here, against authoritative
counts. Filters run over a view of the one row; a plugin that looks across nodes gets its summary
from the whole table. Of a class that comes again, what NODE facts say is kept for all rows, and
PreFilter's outcome as long as no pod came or went that it may depend on.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.evaluation import Summaries
from roadstead.framework.plugin import FilterPlugin, Plugin, Reads
from roadstead.framework.profile import Profile
from roadstead.nodes.columns import Bools
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import NodeTable, Table
from roadstead.protocol.status import SUCCESS, Status, unresolvable

_NARROWED = unresolvable("node(s) didn't satisfy the plugins that narrow the nodes")

WORTHWHILE = 3
"""Pods of a class after which what NODE facts say is found for all rows at once."""

MAX_KNOWN = 4096
"""Classes of which something is kept; the one found longest ago is dropped."""


@dataclass(slots=True)
class _Known:
    """What was found of a class. inputs: what it depends on besides pods; changes: pods that came
    and went before. live: filters beyond NODE facts that are not skipped; passes: bool[row], what
    the others said, once that was found. harmless: classes that cannot change PreFilter's outcome.
    """

    inputs: tuple[int, Hashable]
    changes: int
    summaries: Summaries
    status: Status
    state: CycleState
    named: frozenset[str]
    live: tuple[FilterPlugin, ...] = ()
    passes: Bools | None = None
    times: int = 0
    harmless: set[PodInfo] = field(default_factory=set)


class Verifier:
    """Runs PreFilter and Filter for single nodes; PreFilter once per class and summaries."""

    def __init__(self, table: NodeTable, profiles: Mapping[str, Profile]) -> None:
        self._table = table
        self._profiles = profiles
        self._known: dict[PodInfo, _Known] = {}

    def verify(self, facts: PodFacts, node_name: str) -> Status:
        """Success, or the first refusal. KeyError for an unknown node or profile."""
        profile = self._profiles[facts.scheduler_name]
        info = self._table.classes.info(facts)
        row = self._table.row_of(node_name)
        known = self._pre_filtered(profile, info)
        if not known.status.is_success:
            return known.status
        if known.named and node_name not in known.named:
            return _NARROWED
        if self._admits(known, profile, info, row):
            return SUCCESS
        return _filtered(profile, info, known.state, self._table.view(np.array([row])))

    def _admits(self, known: _Known, profile: Profile, info: PodInfo, row: int) -> bool:
        """A quick yes, from what is known of the class; a no says nothing."""
        known.times += 1
        if known.passes is None:
            if known.times < WORTHWHILE:
                return False
            known.passes = _standing(profile, info, known.state, self._table)
            known.live = tuple(
                plugin
                for plugin in profile.filter
                if plugin.reads is not Reads.NODE and plugin.name not in known.state.skip_filter
            )
        admitted = (plugin.admits(info, self._table, row) for plugin in known.live)
        return bool(known.passes[row]) and all(admitted)

    def _pre_filtered(self, profile: Profile, info: PodInfo) -> _Known:
        """PreFilter's outcome, kept while what it depends on stays what it was."""
        inputs = self._table.node_version, profile.known_state(info)
        known = self._known.get(info)
        same = known is not None and known.inputs == inputs
        if known is not None and same and self._is_as_it_was(known, profile, info):
            return known
        changes = self._table.columns.changes
        found = {p.name: p.filter_summary(info, self._table) for p in profile.summarizes_filter}
        summaries = {name: summary for name, summary in found.items() if summary is not None}
        if known is not None and same and known.summaries == summaries:
            known.changes = changes
            return known
        state = CycleState(len(self._table))
        state.filter_summaries.update(summaries)
        status, named = _pre_filter(profile, state, info)
        known = _Known(inputs, changes, summaries, status, state, named)
        self._known.pop(info, None)
        self._known[info] = known
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return known

    def _is_as_it_was(self, known: _Known, profile: Profile, info: PodInfo) -> bool:
        """Whether all pods that came or went since are of no concern to PreFilter."""
        changed = self._table.columns.class_changed
        for other, number in reversed(changed.items()):
            if number <= known.changes:
                break
            if other not in known.harmless:
                if any(each.filter_affected_by(info, other) for each in _filtering(profile)):
                    return False
                known.harmless.add(other)
        known.changes = self._table.columns.changes
        return True


def _filtering(profile: Profile) -> tuple[Plugin, ...]:
    """The plugins whose PreFilter looks across nodes."""
    return tuple(p for p in profile.cross_node if p in profile.filter or p in profile.pre_filter)


def _standing(profile: Profile, info: PodInfo, state: CycleState, table: NodeTable) -> Bools:
    """Which rows pass all filters that read NODE facts: bool[row]."""
    passes: Bools = np.ones(len(table), dtype=np.bool_)
    for plugin in profile.filter:
        if plugin.reads is Reads.NODE and plugin.name not in state.skip_filter:
            codes = plugin.filter(state, info, table).codes
            if codes is not None:
                passes &= codes == 0
    return passes


def _filtered(profile: Profile, info: PodInfo, state: CycleState, row: Table) -> Status:
    for plugin in profile.filter:
        if plugin.name in state.skip_filter:
            continue
        result = plugin.filter(state, info, row)
        if result.codes is not None and result.codes[0]:
            refused = result.statuses[int(result.codes[0]) - 1]
            return Status(refused.code, refused.reasons, plugin.name)
    return SUCCESS


def _pre_filter(
    profile: Profile, state: CycleState, info: PodInfo
) -> tuple[Status, frozenset[str]]:
    """(first refusal or Success, node names that plugins narrow to; empty for all)."""
    named: frozenset[str] = frozenset()
    for plugin in profile.pre_filter:
        result = plugin.pre_filter(state, info)
        if result.status.is_skip:
            state.skip_filter.add(plugin.name)
        elif not result.status.is_success:
            return Status(result.status.code, result.status.reasons, plugin.name), named
        elif result.node_names is not None:
            named = result.node_names if not named else named & result.node_names
            if not named:
                return unresolvable(
                    "node(s) didn't satisfy the plugins that narrow the nodes"
                ), named
    return SUCCESS, named
